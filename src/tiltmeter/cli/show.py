"""`tiltmeter show`: what a run directory holds."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from rich import box
from rich.table import Table

from tiltmeter.cli.run_input import PredictionColumns, is_table, read_runs
from tiltmeter.cli.terminal import (
    AskedCurve,
    Json,
    Level,
    Save,
    Switch,
    plain_console,
    print_json,
    print_result,
    print_rows,
    print_table,
)
from tiltmeter.leaders.classes import ClassLeaders, class_leaders
from tiltmeter.leaders.difference import ALL
from tiltmeter.leaders.exact import maker_of, revived
from tiltmeter.leaders.headline import RATES, amounts, capital, term
from tiltmeter.leaders.leaders import Leaders, leaders
from tiltmeter.leaders.phases import Undecided
from tiltmeter.leaders.points import described_held_out
from tiltmeter.names import better_of
from tiltmeter.plugins import PARTS, plugin
from tiltmeter.record import check
from tiltmeter.record.labelled import array_to_json, label_from_json, label_to_json, values_to_json
from tiltmeter.record.trajectory import Trajectory
from tiltmeter.shown_text import group_name

#: Group curves that the table shows, where they exist.
SHOWN = ("loss", "error", "positive_rate")
#: Those that it shows of a training set that is used many times.
SHOWN_OF_SET = ("loss", "error", "training_loss")
#: With more groups than this, each has its own row.
WIDE = 2
#: What the table of a measured run shows of every group, and the heads of its columns.
MEASURES = ("positive_rate", "tpr", "fpr", "error", "loss", "squared_error")
SHORT = {"positive_rate": "selected", "tpr": "TPR", "fpr": "FPR"}


class Summary:
    """The results for one run; computed once, printed as text or JSON.

    Without a `curve` the question of the run is answered, and else what is clear in the decisions before the loss.
    """

    def __init__(self, trajectory: Trajectory, curve: str | None = None, level: float = 0.05) -> None:
        trajectory = revived(trajectory)
        self.trajectory = trajectory
        first = curve or next((name for name in ("loss", "error") if name in trajectory), "loss")
        values = trajectory[first]
        extra = [str(dim) for dim in values.dims if dim not in ("time", "group", "seed")]
        comparable = "group" in values.dims and values.sizes["group"] > 1 and not extra
        asked = () if curve is None else (curve,)
        self.leaders: Leaders | None = leaders(trajectory, *asked, level=level) if comparable else None
        self.curve = first if self.leaders is None else self.leaders.curve
        several = self.curve == "loss" and "class_loss" in trajectory
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
            found["before"] = led.headline.before
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
        scales, limit = self.scales()
        if scales is not None:
            found["timescales"] = {str(name): values_to_json(scales[name].values) for name in scales}
        if limit is not None:
            found["stability_limit"] = values_to_json(limit.values)
        found["final"] = {
            name: {"dims": list(last.dims), "values": values_to_json(last.values)}
            for name, last in ((n, c.isel(time=-1)) for n, c in self.trajectory.items())
        }
        return found

    def scales(self) -> tuple[xr.Dataset | None, xr.DataArray | None]:
        """The time scales of online theory, and the largest stable learning rate, also on a fixed set; else None."""
        maker = maker_of(self.trajectory)
        return (None, None) if maker is None else maker.scales(self.trajectory)

    def print(self, as_json: bool = False, why: bool = False) -> None:
        """On stdout: JSON, or the sentence and then the table; with `why` every difference and its limits."""
        if as_json:
            print_json(self.to_json())
            return
        print_result(self.sentence)
        for line in [] if self.classes is None else str(self.classes).splitlines()[1:]:
            print(line)
        if self.leaders is not None and self.leaders.basis not in ("exact", "values"):
            print_table(self._group_table())
        else:
            self._print_table()
        if why and self.leaders is not None:
            self._print_why(self.leaders)
        scales, limit = self.scales()
        stable = "" if limit is None else f"training is stable below lr = {_range(limit)}."
        if scales is not None:
            words = [f"tau_{name} = {_range(scales[name])}" for name in ("M", "R", "Q")]
            stable = f"Time scales {', '.join(words)}; {stable}"
        if stable:
            print(capital(stable))

    def _print_why(self, judged: Leaders) -> None:
        """Every difference at the end with its limits, since when it is clear, and when it is not clear who leads."""
        table = Table(box=box.SIMPLE_HEAD)
        table.add_column("measure", overflow="fold")
        table.add_column("difference", overflow="fold")
        for head in ("gap", "limits", "clear since"):
            table.add_column(head, justify="right")
        for row in judged.to_json()["differences"]:
            pair = [group_name(group) if group != ALL else ALL for group in map(label_from_json, row["pair"])]
            gap, low, high = (_signed(row["curve"], row[name]) for name in ("gap", "low", "high"))
            since = "not clear" if row["since"] is None else f"{judged.clock} {row['since']:,.4g}"
            table.add_row(capital(term(row["curve"])), f"{pair[0]} minus {pair[1]}", gap, f"{low} to {high}", since)
        print_table(table)
        print(
            "Rates in percentage points. Of runs whose groups are alike, at most "
            f"{100 * judged.level:g} of 100 have any clear difference."
        )
        for doubt in self.doubts:
            print(doubt)

    def _print_table(self) -> None:
        names = dict.fromkeys((*(SHOWN_OF_SET if "training_loss" in self.trajectory else SHOWN), self.curve))
        averaged = {name: self._averaged(name) for name in names if name in self.trajectory}
        shown = {name: values for name, values in averaged.items() if values is not None}
        if not shown:
            return
        first = next(iter(shown.values()))
        groups = first.coords["group"].values.tolist()
        if len(groups) > WIDE:  # one row for each group at the last evaluation
            last = np.stack([values.values[-1] for values in shown.values()], axis=1)
            rows = [[group_name(group), *_digits(row)] for group, row in zip(groups, last, strict=True)]
            print_rows(["group", *(name.replace("_", " ") for name in shown)], rows, ["group"])
            return
        heads = [f"{name} {group}".replace("_", " ") for name in shown for group in groups]
        times = first.coords["time"].values
        # Values beside a crossing are those of the evaluation that is nearest to it.
        marks = {float(times[0]): "first", float(times[-1]): "last"}
        for crossing in () if self.leaders is None else self.leaders.changes:
            marks.setdefault(float(crossing.time), f"{crossing.leader_before} -> {crossing.leader_after}")
        rows = []
        for moment in sorted(marks):
            parts = [values.sel(time=moment, method="nearest").values for values in shown.values()]
            rows.append([f"{moment:.4g}", marks[moment], *_digits(np.concatenate(parts))])
        print_rows([self.trajectory.clock, "", *heads], rows, [""])

    def _averaged(self, name: str) -> xr.DataArray | None:
        """Return a curve over time and groups, averaged over seeds; None if it has other dimensions."""
        values = self.trajectory[name]
        values = values.mean("seed") if "seed" in values.dims else values
        return values.transpose("time", "group") if set(values.dims) == {"time", "group"} else None

    def _group_table(self) -> Table:
        """One row for each group: its rates and loss at the last evaluation, and the headline's curve as a line."""
        unbounded = plain_console(1000)
        for width in (16, 8):
            table = self._group_table_with(width)
            if unbounded.measure(table).minimum <= plain_console().width:
                return table
        return self._group_table_with(0)

    def _group_table_with(self, width: int) -> Table:
        """The same with lines of so many characters; without lines for 0."""
        narrow = width < 16
        table = Table(box=box.SIMPLE_HEAD, pad_edge=not narrow, collapse_padding=narrow)
        rows = {name: values for name in MEASURES if (values := self._averaged_if_there(name)) is not None}
        groups = next(iter(rows.values())).coords["group"].values.tolist()
        longest = max(len(word) for group in groups for word in group_name(group).split() or [""])
        table.add_column("group", overflow="fold", min_width=min(longest, 24))
        if _people(self.trajectory):
            table.add_column("people", justify="right")
        for name in rows:
            table.add_column(SHORT.get(name, name.replace("_", " ")), justify="right")
        course = self._averaged(self.curve)
        course = None if course is None or course.sizes["time"] < 2 or not width else course
        if course is not None:
            head = f"{SHORT.get(self.curve, term(self.curve))} over training"
            table.add_column(head, max_width=max(width, *map(len, head.split())) if narrow else None)
        against = {} if self.leaders is None else _against_all(self.leaders, self.curve)
        if against:
            table.add_column("than others", max_width=6 if narrow else None)
        lines = [] if course is None else sparks(course.values.T, width)
        people = _people(self.trajectory)
        for place in self._worst_first(rows, groups, against):
            group = groups[place]
            cells = [_cell(name, float(values.values[-1, place])) for name, values in rows.items()]
            verdict = [against.get(group, "not judged")] if against else []
            count = [f"{people[group]:,}" if group in people else ""] if people else []
            table.add_row(group_name(group), *count, *cells, *([lines[place]] if lines else []), *verdict)
        return table

    def _worst_first(
        self, rows: Mapping[str, xr.DataArray], groups: Sequence[Any], against: Mapping[Any, str]
    ) -> list[int]:
        """The places of the groups, the worst off in the declared rate first, those too small to judge last."""
        last = rows[self.curve].values[-1] if self.curve in rows else np.zeros(len(groups))
        sign = 1.0 if better_of(self.curve, self.trajectory[self.curve]) == "higher" else -1.0
        small = [bool(against) and group not in against for group in groups]
        return sorted(range(len(groups)), key=lambda place: (small[place], sign * float(np.nan_to_num(last[place]))))

    def _averaged_if_there(self, name: str) -> xr.DataArray | None:
        return self._averaged(name) if name in self.trajectory else None


def _digits(values: np.ndarray) -> list[str]:
    return [f"{float(value):.4f}" for value in values]


def _against_all(judged: Leaders, curve: str) -> dict[Any, str]:
    """For each group that is compared with all others, whether it is clearly higher or lower at the end."""
    words = {1: "higher", -1: "lower", 0: "not clear"}
    return {
        one.pair[0]: words[int(one.sign[-1])]
        for one in judged.differences_in(curve)
        if one.pair[1] == ALL and one.judged
    }


def _people(run: Trajectory) -> dict[Any, int]:
    """How many held-out points every group has, as far as the origin says."""
    sizes = described_held_out(run).get("sizes")
    try:
        return {label_from_json(group): int(size) for group, size in sizes or []}
    except (KeyError, TypeError, ValueError):  # what stands in a file may be anything
        return {}


def _signed(curve: str, value: float | None) -> str:
    """A difference with its sign: percentage points of a rate."""
    if value is None:
        return "no data"
    text = f"{100 * value:.1f}" if curve in RATES else f"{value:.3g}"
    return text.replace("-", "\N{MINUS SIGN}")


def _cell(name: str, value: float) -> str:
    if not np.isfinite(value):
        return "no data"
    return amounts(name, value)[0] if name in RATES else f"{value:.3g}"


def sparks(courses: np.ndarray, width: int = 16) -> list[str]:
    """Courses (group, time) as lines of block characters, on one scale.

    >>> sparks(np.array([[0.0, 0.5, 1.0], [1.0, 1.0, 1.0]]))
    ['▁▅█', '███']
    """
    blocks = "▁▂▃▄▅▆▇█"
    finite = courses[np.isfinite(courses)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    span = (high - low) or 1.0
    places = np.unique(np.linspace(0, courses.shape[1] - 1, min(width, courses.shape[1])).round().astype(int))
    return [
        "".join(
            blocks[min(int((value - low) / span * len(blocks)), len(blocks) - 1)] if np.isfinite(value) else " "
            for value in course[places]
        )
        for course in courses
    ]


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
        f"Between {low:.4g} and {high:.4g} it is not clear who leads: {', '.join(pairs)}."
        for (low, high), pairs in same.items()
    ]


def save_pictures(summary: Summary, paths: Sequence[Path]) -> None:
    """Draw the run's curve, with its phases and time scales if known, to every path."""
    if not paths:
        return
    from tiltmeter import plot

    if "class" in summary.trajectory[summary.curve].dims:
        draw(plot.class_curves(summary.trajectory, summary.curve), paths)
        return
    draw(
        plot.curves(summary.trajectory, curve=summary.curve, leaders=summary.leaders, timescales=summary.scales()[0]),
        paths,
    )


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
    curve: AskedCurve = None,
    level: Level = 0.05,
    save: Save = (),
    follow: Switch = False,
    why: Switch = False,
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
    why
        Also print the statistics: every difference with its limits, and since when it is clear.
    ahead
        The file of `tiltmeter train` that made the run: also forecast its rest from the last checkpoint.
    """
    if ahead is not None:
        if follow:
            raise ValueError("--ahead looks once: leave out --follow.")
        _ahead(run, ahead, curve, level, save, json)
        return
    if follow:
        for _ in growing(run):
            _show(run, curve, level, (), json)
    else:
        _show(run, curve, level, save, json, columns, why)
    if follow and save:
        _show(run, curve, level, save, json)


def _ahead(run: Path, config: Path, curve: str | None, level: float, save: tuple[Path, ...], json: bool) -> None:
    """What the run holds so far, and its rest as forecast from where it stands."""
    from tiltmeter.cli.train_config import TrainingFile, read_config
    from tiltmeter.forecast.nowcast import nowcast

    file = TrainingFile.of(read_config(config), config.parent)
    rest = nowcast(run, file.network(), file.data, file.held_out, file.recipe, watch=file.watch)
    summary = Summary(rest, curve, level)
    save_pictures(summary, save)
    if not json:
        _show(run, curve, level, (), json)
        print(f"From step {int(rest[summary.curve].time[0])} on, as forecast from the weights and the optimiser there:")
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
    curve: str | None,
    level: float,
    save: tuple[Path, ...],
    json: bool,
    columns: PredictionColumns = PredictionColumns(),
    why: bool = False,
) -> None:
    (loaded,) = read_runs([run], columns).values()
    if not isinstance(loaded, Trajectory):
        tell = plugin(PARTS, "equilibrium-text")
        if save:
            raise ValueError(
                f"{run} holds no curves over time to draw: try `tm.theory.plot.equilibrium_sweep` in Python."
            )
        if tell is None or "error" not in loaded or not {"group"} <= set(loaded["error"].dims) <= {"group", "samples"}:
            # A dataset from elsewhere: print xarray's own description.
            curves = {str(name): array_to_json(curve) for name, curve in loaded.items()}
            if json:
                print_json({"curves": curves})
            else:
                print(loaded)
        else:
            tell(loaded, json)
        return
    summary = Summary(loaded, curve, level)
    save_pictures(summary, save)
    summary.print(as_json=json, why=why)
    if not json and not is_table(run):
        print(check(run))
