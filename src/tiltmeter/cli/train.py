"""`tiltmeter train`: train a network on grouped data, with a probe."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from tiltmeter.cli.kept_forecast import kept_forecast
from tiltmeter.cli.show import Summary, save_pictures
from tiltmeter.cli.table_file import Guesses, read_task
from tiltmeter.cli.terminal import AskedCurve, Json, Save, Switch
from tiltmeter.cli.train_config import train_as_told


def train(
    config: Path,
    *,
    to: Path | None = None,
    resume: Switch = False,
    seeds: int | None = None,
    arm: Annotated[str | None, Parameter("--with")] = None,
    curve: AskedCurve = None,
    save: Save = (),
    why: Switch = False,
    guesses: Guesses = Guesses(),
    json: Json = False,
) -> None:
    """Train a network on a table, or as a TOML file describes it, and report who leads and when that changes.

    Parameters
    ----------
    config
        A table (.csv, .parquet, .feather), whose network is that of `tiltmeter init`; or a TOML file with tables
        [data], [model], [training], [evaluations].
    to
        Save the run and its checkpoints in this directory.
    resume
        Continue the run in that directory.
    seeds
        Train so many times with other batches, from the same initial weights: what is said is about such trainings.
    arm
        Train with an intervention of the table of `tiltmeter advise`, as thresholds-by-group.
    why
        Also print the statistics: every difference with its limits, and since when it is clear.
    """
    task = read_task(config, guesses)
    kept = kept_forecast(Path(task.name), task.tables)
    trajectory = train_as_told(
        task.tables, task.folder, to=to, resume=resume, forecast=kept if arm is None else None, arm=arm, seeds=seeds
    )
    if trajectory.diverged is not None:
        print(f"Diverged at step {float(trajectory.diverged.min()):g}: lower the learning rate.", file=sys.stderr)
    if to is not None:
        print(f"Saved to {to}", file=sys.stderr)
    summary = Summary(trajectory, curve)
    save_pictures(summary, save)
    summary.print(as_json=json, why=why)
    if task.guessed and not json:
        print(task.guessed)
    if to is not None and not json:
        print(f"Next: tiltmeter report {to}")
