"""The explorer: theory, runs and forecasts on a page of this machine, opened by `tiltmeter explore`.

- `server`: the web server; `locks`: who may ask it, and for what; `routes`: every address; `state` and
  `worker_process`: work that takes long, in its own process.
- `run_rows`, `run_curves`, `run_judgement`: a folder of run directories, as the page shows it.
- `lessons` (one TOML file each) and `single_file`: a page that works without the program.
- `page`: plain ES modules and CSS, served as they are. `page/theory` is the closed form of the two-group model; a test
  holds it equal to `predict`.
"""
