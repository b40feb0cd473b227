"""Summary: what a trajectory says, in words, as a short table and as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import numpy as np
import xarray as xr
from rich import box
from rich.table import Table

from tiltmeter.analysis.class_crossings import ClassCrossings, class_crossings
from tiltmeter.analysis.crossings import Crossings, crossings
from tiltmeter.analysis.difference import ALL
from tiltmeter.analysis.exact import linear_theory_of, revived, theory_of
from tiltmeter.analysis.phases import Phases, phases
from tiltmeter.analysis.statements import Standing
from tiltmeter.cli.terminal import print_table
from tiltmeter.record.labelled import label_to_json, values_to_json
from tiltmeter.record.trajectory import Trajectory

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
        two = "group" in values.dims and values.sizes["group"] == 2
        comparable = "group" in values.dims and values.sizes["group"] > 1 and not extra
        self.phases: Phases | None = phases(trajectory, curve, level=level) if comparable and two else None
        self.crossings: Crossings | None = None
        if comparable:
            self.crossings = crossings(trajectory, curve, level=level) if self.phases is None else self.phases.crossings
        self.theory = theory_of(trajectory)
        several = curve == "loss" and "class_loss" in trajectory
        self.classes: ClassCrossings | None = class_crossings(trajectory) if several and comparable else None
        over = f" over a grid of {', '.join(extra)}" if extra else ""
        answers = [found for found in (self.phases, self.crossings) if found is not None]  # a result too
        self.sentence = str(answers[0]) if answers else f"{len(trajectory)} curves{over}."
        self.doubts = (
            [] if self.crossings is None else [f"In the noise: {doubt}." for doubt in self.crossings.undecided]
        )

    def to_json(self) -> dict[str, Any]:
        """Everything that the text shows, for machines."""
        found: dict[str, Any] = {
            "sentence": self.sentence,
            "source": self.trajectory.origin.source,
            "clock": self.trajectory.clock,
            "curve": self.curve,
        }
        if self.crossings is not None:
            found["crossings"] = [_plain(asdict(crossing)) for crossing in self.crossings]
            found["undecided"] = [_plain(asdict(doubt)) for doubt in self.crossings.undecided]
            judged = self.crossings.standing
            if judged is not None:
                found["level"], found["scope"], found["basis"] = judged.level, judged.scope, judged.basis
                found["stretches"] = [
                    {"pair": _plain(list(one.pair)), **_plain(asdict(stretch))}
                    for one in judged.differences
                    for stretch in one.stretches
                ]
        if self.classes is not None:
            for name in ("same_class", "classes"):
                kinds = getattr(self.classes, name)
                found[f"{name}_crossings"] = [
                    {"of": label_to_json(key), "crossings": [_plain(asdict(c)) for c in one]}
                    for key, one in kinds.items()
                ]
        if self.phases is not None:
            found["phases"] = [_plain(asdict(phase)) for phase in self.phases]
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
        for crossing in self.crossings or ():
            nearest = float(times[np.abs(times - crossing.time).argmin()])
            marks.setdefault(nearest, f"{crossing.leader_before} -> {crossing.leader_after}")
        for time in sorted(marks):
            cells = []
            for values in shown.values():
                cells += [f"{value:.4f}" for value in values.sel(time=time, method="nearest").values]
            table.add_row(f"{time:.4g}", marks[time], *cells)
        return table

    def _averaged(self, name: str) -> xr.DataArray | None:
        """Return a curve over time and groups, averaged over seeds; None if it has other dimensions."""
        values = self.trajectory[name]
        values = values.mean("seed") if "seed" in values.dims else values
        return values.transpose("time", "group") if set(values.dims) == {"time", "group"} else None

    def _long_table(self, shown: dict[str, xr.DataArray]) -> Table:
        """Return a table with one row per group at the last look, and what is shown about it against all others."""
        table = Table(box=box.SIMPLE_HEAD)
        table.add_column("group")
        for name in shown:
            table.add_column(name.replace("_", " "), justify="right")
        judged = None if self.crossings is None else self.crossings.standing
        groups = next(iter(shown.values())).coords["group"].values.tolist()
        against = [_against_all(judged, self.curve, group) for group in groups]
        told = any(against)  # few groups are compared in pairs, which the sentence tells
        if told:
            table.add_column(f"{self.curve} against the mean of all, at the end")
        for place, (group, verdict) in enumerate(zip(groups, against, strict=True)):
            cells = [f"{float(values.values[-1, place]):.4f}" for values in shown.values()]
            table.add_row(str(group), *cells, *((verdict or "not judged",) if told else ()))
        return table


def _against_all(judged: Standing | None, curve: str, group: Any) -> str:
    for one in () if judged is None else judged.of(curve):
        if one.pair == (group, ALL) and one.judged:
            limits = f"{one.lower[-1]:+.3f} to {one.upper[-1]:+.3f}"
            word = {1: "above", -1: "below", 0: "no difference shown"}[int(one.sign[-1])]
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
