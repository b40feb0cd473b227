"""`tiltmeter show`: what a run directory holds."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from json import dumps
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from rich import box
from rich.table import Table

from tiltmeter.cli.run_input import PredictionColumns, is_table, read_runs
from tiltmeter.cli.terminal import Curve, Json, Level, Save, Switch, print_table
from tiltmeter.leaders.classes import ClassLeaders, class_leaders
from tiltmeter.leaders.difference import ALL
from tiltmeter.leaders.exact import linear_theory_of, revived, theory_of
from tiltmeter.leaders.headline import capital
from tiltmeter.leaders.leaders import Leaders, leaders
from tiltmeter.leaders.phases import Undecided
from tiltmeter.record import check
from tiltmeter.record.labelled import array_to_json, label_to_json, values_to_json
from tiltmeter.record.trajectory import Trajectory
from tiltmeter.shown_text import group_name

#: Group curves that the table shows, where they exist.
SHOWN = ("loss", "error", "positive_rate")
#: Those that it shows of a training set that is used many times.
SHOWN_OF_SET = ("loss", "error", "training_loss")
#: With more groups than this, each has its own row.
WIDE = 2


class Summary:
    """The results for one run in one curve; computed once, printed as text or JSON."""

    def __init__(self, trajectory: Trajectory, curve: str = "loss", level: float = 0.05) -> None:
        trajectory = revived(trajectory)
        self.trajectory, self.curve = trajectory, curve
        values = trajectory[curve]
        extra = [str(dim) for dim in values.dims if dim not in ("time", "group", "seed")]
        comparable = "group" in values.dims and values.sizes["group"] > 1 and not extra
        self.leaders: Leaders | None = leaders(trajectory, curve, level=level) if comparable else None
        self.theory = theory_of(trajectory)
        several = curve == "loss" and "class_loss" in trajectory
        self.classes: ClassLeaders | None = class_leaders(trajectory) if several and comparable else None
        over = f" over a grid of {', '.join(extra)}" if extra else ""
        self.sentence = f"{len(trajectory)} curves{over}." if self.leaders is None else str(self.leaders)
        self.doubts = [] if self.leaders is None else _doubts(self.leaders.undecided)

    def to_json(self) -> dict[str, Any]:
        """Everything that the text shows, for machines."""
        found: dict[str, Any] = {
            "sentence": self.sentence,
            "source": self.trajectory.origin.source,
            "clock": self.trajectory.clock,
            "curve": self.curve,
        }
        led = self.leaders
        if led is not None:
            found["headline"] = led.headline.to_json()
            found["crossings"] = [_plain(asdict(change)) for change in led.changes]
            found["undecided"] = [_plain(asdict(doubt)) for doubt in led.undecided]
            found["phases"] = [_plain(asdict(phase)) for phase in led.phases]
            if led.basis != "exact":
                found["level"], found["scope"], found["basis"] = led.level, led.scope, led.basis
                found["stretches"] = [
                    {"pair": _plain(list(one.pair)), **_plain(asdict(stretch))}
                    for one in led.differences
                    for stretch in one.stretches
                ]
        if self.classes is not None:
            for name in ("same_class", "classes"):
                kinds = getattr(self.classes, name)
                found[f"{name}_crossings"] = [
                    {"of": label_to_json(key), "crossings": [_plain(asdict(c)) for c in one.changes]}
                    for key, one in kinds.items()
                ]
        if self.theory is not None and not self.theory[1].scheduled:
            from tiltmeter.theory.stability import stability_limit, timescales

            scales = timescales(*self.theory)
            found["timescales"] = {str(name): values_to_json(scales[name].values) for name in scales}
            found["stability_limit"] = values_to_json(stability_limit(*self.theory).values)
        fixed = self.fixed_limit()
        if fixed is not None:
            found["stability_limit"] = values_to_json(fixed.values)
        found["final"] = {
            name: {"dims": list(last.dims), "values": values_to_json(last.values)}
            for name, last in ((n, c.isel(time=-1)) for n, c in self.trajectory.items())
        }
        return found

    def fixed_limit(self) -> xr.DataArray | None:
        """The stability limit of descent or SGD on a fixed training set; None for anything else."""
        found = linear_theory_of(self.trajectory)
        if found is None or found[2] is None:
            return None
        from tiltmeter.problem.full_batch import Flow
        from tiltmeter.theory.stability import stability_limit

        if isinstance(found[1], Flow):
            return None
        return stability_limit(*found)

    def print(self, as_json: bool = False) -> None:
        """On stdout: JSON, or the sentence and then the table."""
        if as_json:
            print(json.dumps(self.to_json(), indent=2, allow_nan=False))
            return
        print(self.sentence)
        for doubt in self.doubts:
            print(doubt)
        for line in [] if self.classes is None else str(self.classes).splitlines()[1:]:
            print(line)
        table = self._table()
        if table is not None:
            print_table(table)
        fixed = self.fixed_limit()
        if fixed is not None:
            print(f"Training is stable below lr = {_range(fixed)}.")
        if self.theory is not None and not self.theory[1].scheduled:
            from tiltmeter.theory.stability import stability_limit, timescales

            scales, limit = timescales(*self.theory), stability_limit(*self.theory)
            words = [f"tau_{name} = {_range(scales[name])}" for name in ("M", "R", "Q")]
            print(f"Time scales {', '.join(words)}; training is stable below lr = {_range(limit)}.")

    def _table(self) -> Table | None:
        names = dict.fromkeys((*(SHOWN_OF_SET if "training_loss" in self.trajectory else SHOWN), self.curve))
        averaged = {name: self._averaged(name) for name in names if name in self.trajectory}
        shown = {name: values for name, values in averaged.items() if values is not None}
        if not shown:
            return None
        first = next(iter(shown.values()))
        if first.sizes["group"] > WIDE:
            return self._long_table(shown)
        table = Table(box=box.SIMPLE_HEAD)
        table.add_column(self.trajectory.clock, justify="right")
        table.add_column("")
        for name, values in shown.items():
            for group in values.coords["group"].values:
                table.add_column(f"{name} {group}".replace("_", " "), justify="right")
        times = first.coords["time"].values
        marks = {float(times[0]): "first", float(times[-1]): "last"}
        for crossing in () if self.leaders is None else self.leaders.changes:
            nearest = float(times[np.abs(times - crossing.time).argmin()])
            marks.setdefault(nearest, f"{crossing.leader_before} -> {crossing.leader_after}")
        for moment in sorted(marks):
            cells = []
            for values in shown.values():
                cells += [f"{value:.4f}" for value in values.sel(time=moment, method="nearest").values]
            table.add_row(f"{moment:.4g}", marks[moment], *cells)
        return table

    def _averaged(self, name: str) -> xr.DataArray | None:
        """Return a curve over time and groups, averaged over seeds; None if it has other dimensions."""
        values = self.trajectory[name]
        values = values.mean("seed") if "seed" in values.dims else values
        return values.transpose("time", "group") if set(values.dims) == {"time", "group"} else None

    def _long_table(self, shown: dict[str, xr.DataArray]) -> Table:
        """Return a table with one row per group at the last evaluation, and what is shown about it against all
        others."""
        table = Table(box=box.SIMPLE_HEAD)
        table.add_column("group")
        for name in shown:
            table.add_column(name.replace("_", " "), justify="right")
        judged = self.leaders
        groups = next(iter(shown.values())).coords["group"].values.tolist()
        against = [_against_all(judged, self.curve, group) for group in groups]
        told = any(against)  # few groups are compared in pairs, which the sentence tells
        if told:
            table.add_column(f"{self.curve} against the mean of all, at the end")
        for place, (group, verdict) in enumerate(zip(groups, against, strict=True)):
            cells = [f"{float(values.values[-1, place]):.4f}" for values in shown.values()]
            table.add_row(str(group), *cells, *((verdict or "not judged",) if told else ()))
        return table


def _against_all(judged: Leaders | None, curve: str, group: Any) -> str:
    for one in () if judged is None else judged.of(curve).differences:
        if one.pair == (group, ALL) and one.judged:
            limits = f"{one.lower[-1]:+.3f} to {one.upper[-1]:+.3f}"
            word = {1: "above", -1: "below", 0: "not clear"}[int(one.sign[-1])]
            return f"{word} ({limits})"
    return ""


def _range(values: xr.DataArray) -> str:
    flat = np.unique(np.round(values.values, 12).ravel())
    if flat.size <= 3:
        return ", ".join(f"{value:.4g}" for value in flat)
    return f"{flat[0]:.4g} to {flat[-1]:.4g}"


def _plain(value: Any) -> Any:
    """Labels and numbers of a frozen result as JSON."""
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_plain(part) for part in value]
    if isinstance(value, float):
        return values_to_json(np.asarray(value))
    return label_to_json(value)


def _doubts(undecided: tuple[Undecided, ...]) -> list[str]:
    """A line for each interval; one for all that several pairs of groups have in common."""
    if len({one.pair for one in undecided}) < 2:
        return [capital(f"{one}.") for one in undecided]
    same: dict[tuple[float, float], list[str]] = {}
    for one in undecided:
        same.setdefault((one.low, one.high), []).append(" or ".join(map(group_name, one.pair)))
    return [
        f"Not clear between {low:.4g} and {high:.4g} who leads: {', '.join(pairs)}."
        for (low, high), pairs in same.items()
    ]


def save_pictures(summary: Summary, paths: Sequence[Path]) -> None:
    """Draw the run's curve, with its phases and time scales if known, to every path."""
    if not paths:
        return
    from tiltmeter import plot
    from tiltmeter.theory.stability import timescales

    if "class" in summary.trajectory[summary.curve].dims:
        draw(plot.class_curves(summary.trajectory, summary.curve), paths)
        return
    scales = timescales(*summary.theory) if summary.theory and not summary.theory[1].scheduled else None
    draw(plot.curves(summary.trajectory, curve=summary.curve, leaders=summary.leaders, timescales=scales), paths)


def draw(chart: Any, paths: Sequence[Path]) -> None:
    """Write the chart to every path, and report it."""
    from tiltmeter import plot

    for path in paths:
        plot.save(chart, path)
        print(f"Drew {path}", file=sys.stderr)


#: Seconds between two looks at a run that is being written.
PAUSE = 0.5


def show(
    run: Path,
    *,
    curve: Curve = "loss",
    level: Level = 0.05,
    save: Save = (),
    follow: Switch = False,
    ahead: Path | None = None,
    columns: PredictionColumns = PredictionColumns(),
    json: Json = False,
) -> None:
    """What a run directory holds, in words, as a table and as a picture.

    Parameters
    ----------
    run
        The run directory, or a table of predictions.
    follow
        Show it again whenever the run has grown, until it ends.
    ahead
        The file of `tiltmeter train` that made the run: also forecast its rest from the last checkpoint.
    """
    if ahead is not None:
        if follow:
            raise ValueError("--ahead evaluations once: leave out --follow.")
        _ahead(run, ahead, curve, level, save, json)
        return
    if follow:
        for _ in growing(run):
            _show(run, curve, level, (), json)
    else:
        _show(run, curve, level, save, json, columns)
    if follow and save:
        _show(run, curve, level, save, json)


def _ahead(run: Path, config: Path, curve: str, level: float, save: tuple[Path, ...], json: bool) -> None:
    """What the run holds so far, and its rest as forecast from where it stands."""
    from tiltmeter.cli.train_config import build_data, build_network, build_when, read_config
    from tiltmeter.forecast.nowcast import nowcast
    from tiltmeter.recipe.table import recipe_from_table
    from tiltmeter.recipe.watch import Watch

    tables = read_config(config)
    data, held_out = build_data(tables["data"], config.parent, tables["problem"])
    recipe = recipe_from_table(tables["training"], data.groups)
    network = build_network(tables, data, recipe.loss)
    rest = nowcast(run, network, data, held_out, recipe, watch=Watch(when=build_when(tables)))
    summary = Summary(rest, curve, level)
    save_pictures(summary, save)
    if not json:
        _show(run, curve, level, (), json)
        print(f"From step {int(rest[curve].time[0])} on, as forecast from the weights and the optimiser there:")
    summary.print(as_json=json)


def growing(run: Path, pause: float = PAUSE) -> Iterator[int]:
    """Yield the number of evaluations whenever there are new ones, until the run ends."""
    seen = 0
    while True:
        state = check(run)
        if not state.ok:
            raise ValueError(str(state))
        if state.evaluations > seen:
            seen = state.evaluations
            yield seen
        if state.state != "running":
            return
        time.sleep(pause)


def _show(
    run: Path,
    curve: str,
    level: float,
    save: tuple[Path, ...],
    json: bool,
    columns: PredictionColumns = PredictionColumns(),
) -> None:
    (loaded,) = read_runs([run], columns).values()
    if not isinstance(loaded, Trajectory):
        from tiltmeter.cli.equilibrium import tell

        if save:
            raise ValueError(f"{run} holds no curves over time to draw: try `plot.equilibrium_sweep` in Python.")
        if "error" not in loaded or not {"group"} <= set(loaded["error"].dims) <= {"group", "samples"}:
            # A dataset from elsewhere: print xarray's own description.
            curves = {str(name): array_to_json(curve) for name, curve in loaded.items()}
            print(dumps({"curves": curves}, indent=2, allow_nan=False) if json else loaded)
        else:
            tell(loaded, json)
        return
    summary = Summary(loaded, curve, level)
    save_pictures(summary, save)
    summary.print(as_json=json)
    if not json and not is_table(run):
        print(check(run))
