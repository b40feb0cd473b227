"""The files of a run directory: written so that nothing acknowledged is lost, read without a lock.

`recorder` takes looks in; `disk` or `memory` keeps them; `journal` says what the lines of `curves.jsonl` mean; `store`
saves and loads whole trajectories; `check` reports how a directory is doing.
"""
