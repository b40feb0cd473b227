"""The files of a run directory: written so that nothing acknowledged is lost, read without a lock.

`recorder` accepts evaluations; `disk` or `memory` keeps them; `journal` defines the lines of `curves.jsonl`; `store`
saves and loads whole trajectories; `check` reports the state of a directory."""
