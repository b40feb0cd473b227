"""Run input: what verbs take as a run, a run directory or a table of predictions with the names of its columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated

import xarray as xr
from cyclopts import Parameter

from tiltmeter.data.any_frame import ENDINGS
from tiltmeter.record import Trajectory, load

Names = Annotated[tuple[str, ...], Parameter(consume_multiple=True)]


@Parameter(name="*", negative_iterable=())
@dataclass(frozen=True, kw_only=True)
class PredictionColumns:
    """The columns of a table of predictions (.csv, .parquet, .feather), one row for each prediction."""

    label: str | None = None
    "Column with the labels, of a table of predictions."
    group: Names = ()
    "Column with the groups; several for intersections."
    score: Names = ()
    "Column with the probability of the positive label, or one for each label; without it, the column `score`."
    decision: str | None = None
    "Column with what was decided."
    step: str | None = None
    "Column with the step of the evaluation; without it, the column `step` if there is one."
    weight: str | None = None
    "Column with the weight of each point."
    seed: str | None = None
    "Column with the seed; without it, the column `seed` if there is one."
    point: str | None = None
    "Column that identifies a point, where evaluations list them in different orders."
    positive_label: str | None = None
    "Of two labels, the one that is a yes."

    @property
    def given(self) -> tuple[str, ...]:
        """The options that were used, as they are written."""
        return tuple(f"--{one.name.replace('_', '-')}" for one in fields(self) if getattr(self, one.name))


def is_table(path: Path) -> bool:
    """Whether this names a table of predictions rather than a run directory."""
    return path.suffix.lower() in ENDINGS and not path.is_dir()


def read_run(path: Path, columns: PredictionColumns = PredictionColumns()) -> Trajectory | xr.Dataset:
    """The run in a directory, or of a table of predictions."""
    if not is_table(path):
        return load(path)
    if columns.label is None or not columns.group:
        missing = "--label" if columns.label is None else "--group"
        raise ValueError(
            f"A table of predictions needs --label COLUMN and --group COLUMN. Found no {missing} for {path}."
        )
    from tiltmeter.predictions.run import run

    return run(
        path,
        label=columns.label,
        group=list(columns.group),
        score=(list(columns.score) if len(columns.score) > 1 else columns.score[0]) if columns.score else None,
        decision=columns.decision,
        step=columns.step,
        weight=columns.weight,
        seed=columns.seed,
        point=columns.point,
        positive=columns.positive_label,
    )


def read_runs(
    paths: Sequence[Path], columns: PredictionColumns = PredictionColumns()
) -> dict[str, Trajectory | xr.Dataset]:
    """Runs by the names given; columns are for tables only."""
    if columns.given and not any(map(is_table, paths)):
        raise ValueError(f"{columns.given[0]} is for a table of predictions ({', '.join(ENDINGS)}). Found none.")
    runs: dict[str, Trajectory | xr.Dataset] = {}
    for path in paths:
        if str(path) in runs:
            raise ValueError(f"Every run should be named once. Found {path} twice.")
        runs[str(path)] = read_run(path, columns)
    return runs


def read_trajectories(paths: Sequence[Path], columns: PredictionColumns = PredictionColumns()) -> dict[str, Trajectory]:
    """The same, where every run should have curves over time."""
    trajectories: dict[str, Trajectory] = {}
    for name, contents in read_runs(paths, columns).items():
        if not isinstance(contents, Trajectory):
            raise ValueError(f"{name} holds a dataset, not a run over time.")
        trajectories[name] = contents
    return trajectories
