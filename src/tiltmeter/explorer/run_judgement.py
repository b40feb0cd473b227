"""Run judgement: who leads in a run, by bands that hold at all evaluations together; when to stop; its report."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from tiltmeter.explorer.run_curves import downsample, first_curve
from tiltmeter.explorer.run_rows import Remembered, paths_of_runs, refusal, run_folder, state_of
from tiltmeter.explorer.worker_process import sentence_of
from tiltmeter.leaders.contrasts import contrasts
from tiltmeter.leaders.difference import Difference
from tiltmeter.leaders.headline import term
from tiltmeter.leaders.judgement import differences_of
from tiltmeter.leaders.leaders import Leaders, leaders
from tiltmeter.leaders.points import JUDGED
from tiltmeter.leaders.seed_bands import recorded_errors
from tiltmeter.leaders.stopping import stopping
from tiltmeter.names import NOBODY, better_of
from tiltmeter.pairs import groups_of
from tiltmeter.plot.theme import group_name
from tiltmeter.record import Trajectory, When, load, stack
from tiltmeter.record.directory.journal import CURVES
from tiltmeter.record.origin import Origin
from tiltmeter.shown_text import percent, visible


def stopping_told(trajectory: Trajectory, curve: str = "loss") -> dict[str, Any]:
    """The rules and a note on them, or why there are none."""
    try:
        advice = stopping(trajectory, curve=curve)
    except ValueError as error:
        return {"stopping": [], "stopping_refused": visible(sentence_of(error))}
    note = f"Among the evaluations whose mean {advice.quality} is within {percent(advice.within, 0)} of the best."
    if advice.judged == "same points":
        note += " Chosen and measured on the same points, so these numbers are too good."
    return {"stopping": list(map(asdict, advice.rules)), "stopping_note": visible(note)}


LEVEL = 0.05
#: Longer plans are not counted.
MOST_STEPS = 10**6


def live_differences(runs: Sequence[Trajectory], curve: str, level: float = LEVEL) -> tuple[list[Difference], int]:
    """The differences of these runs with the same settings so far, and the number of planned evaluations.

    ValueError with its sentence where the plan or the errors are not recorded: then nobody is named while it trains.
    """
    first = runs[0]
    planned = planned_evaluations(first.origin)
    if planned is None:
        raise ValueError(
            "While it trains nobody is named: how many steps are planned is not recorded. "
            'Tell the probe: Probe(..., settings={"steps": 5000}).'
        )
    if f"{curve}_se" not in first:
        raise ValueError(f"While it trains nobody is named: no standard errors of {curve!r} are recorded.")
    count = min(run[curve].sizes["time"] for run in runs)
    times = first[curve].coords["time"].values[:count]
    if count == 0 or any(not np.array_equal(run[curve].coords["time"].values[:count], times) for run in runs):
        raise ValueError("While they train nobody is named: these runs are looked at at different times.")
    groups = groups_of(first[curve])
    values, errors = (
        np.stack([run[name].transpose("time", "group").values[:count] for run in runs])
        for name in (curve, f"{curve}_se")
    )
    compared = contrasts(groups, np.ones(len(groups)))
    weights = np.array([one.weights for one in compared])
    band = recorded_errors(values, errors, weights, level, max(planned, count) * len(weights))
    mean = values.mean(0)
    band = replace(band, sides=np.stack([mean @ np.maximum(weights, 0.0).T, mean @ np.maximum(-weights, 0.0).T], 2))
    return differences_of(first, curve, compared, band, times, band), planned


def planned_evaluations(origin: Origin) -> int | None:
    """How many evaluations the run will have when it is over, as it says itself.

    >>> planned_evaluations(Origin("training", settings={"when": {"every": 10}, "steps": 100}))
    11
    """
    when, steps = origin.settings.get("when"), origin.settings.get("steps")
    if not isinstance(when, dict) or not isinstance(steps, int) or not 0 < steps <= MOST_STEPS:
        return None
    try:
        return len({*When.from_json(when).steps(steps), steps})
    except (ValueError, TypeError):
        return None


def live_told(found: Sequence[Difference], run: Trajectory, planned: int) -> dict[str, Any]:
    """Who leads with what it holds for in a second line, and the lead changes."""
    groups, evaluations = tuple(groups_of(run[found[0].curve])), len(found[0].times)
    judged = Leaders(
        *(tuple(found), (found[0].curve,), groups, LEVEL, "run", "standard errors", evaluations, found[0].clock),
        run=run,
        curve=found[0].curve,
    )
    licence = f"While it trains, {evaluations} of {planned} planned evaluations; all tested together"
    changes = [
        {"time": change.high, "low": change.low, "high": change.high, "after": change.after}
        for one in found
        for change in one.changes
    ]
    return {
        "sentence": f"{judged.headline.line}\n{licence}. At most {100 * LEVEL:g} of 100 such statements are wrong.",
        "crossings": changes,
    }


#: What was judged before, by the size of its file and the state of the run.
_judged = Remembered()
#: Above so many evaluations a run is judged at an even selection of them.
MOST_LOOKS = 400


def run_summaries(root: str, runs: Sequence[str], curve: str = "") -> dict[str, Any]:
    """For every run who leads now and the last lead change that is clear, or why that cannot be said."""
    there = run_folder(Path(root))
    return {run: _summary(Path(root), there[run], curve) for run in runs if run in there}


def _summary(root: Path, path: Path, curve: str) -> dict[str, Any]:
    def judged(running: bool) -> dict[str, Any]:
        try:
            return _told(loaded(root, path), curve, running)
        except (ValueError, KeyError, TypeError, OSError) as error:
            return {"leader": "not judged", "crossing": None, "why": visible(sentence_of(error))}

    state = state_of(path)
    try:
        now = (path / CURVES).stat().st_size, state
    except OSError as error:
        return {"leader": "not judged", "crossing": None, "why": visible(str(error))}
    answer: dict[str, Any] = _judged.get((path, curve), now, lambda: judged(state == "running"))
    return answer


def _told(run: Trajectory, curve: str, running: bool) -> dict[str, Any]:
    if running:
        curve = _with_groups(run, curve)
        differences, planned = live_differences([run], curve)
        ahead = {one.leader[-1] for one in differences if len(one.times)} if len(differences) == 1 else set()
        leader = next(iter(ahead), NOBODY)
        changes = live_told(differences, run, planned)["crossings"]
        last = max(([one["low"], one["high"]] for one in changes), default=None)
    else:
        followed, drawn = _followed(run, curve)
        judged = leaders(followed, drawn) if curve else leaders(followed)  # unasked, in the measure of the headline
        leader = judged.last
        last = [judged.changes[-1].low, judged.changes[-1].high] if judged.changes else None
    return {"leader": group_name(leader) if leader != NOBODY else "not clear", "crossing": last}


def run_judgement(root: str, runs: Sequence[str], curve: str) -> dict[str, Any]:
    """The sentence, the bands of every pair, crossings and stopping rules of one run, or of seeds taken together."""
    paths = paths_of_runs(root, runs)
    several = [loaded(Path(root), path) for path in paths]
    if any(state_of(path) == "running" for path in paths):
        return _of_running(several, curve)
    trajectory = several[0] if len(several) == 1 else stack(several)
    trajectory, curve = _followed(trajectory, curve)
    judged = leaders(trajectory, curve)
    answer: dict[str, Any] = {
        "sentence": visible(answer_first(trajectory, judged)),
        "curve": visible(curve),
        "better": better_of(curve, trajectory[curve]),
        "evaluations": trajectory[curve].sizes["time"],
        "crossings": [
            {"time": one.time, "low": one.low, "high": one.high, "after": group_name(one.leader_after)}
            for one in judged.changes
        ],
        "bands": [_band(one) for one in judged.differences if one.judged and judged.basis != "exact"],
        "pairs": [_pair(one) for one in judged.differences if one.judged],
    }
    return {**answer, **stopping_told(trajectory, curve)}


def answer_first(trajectory: Trajectory, judged: Leaders) -> str:
    """The headline of the run, as everywhere, and below it who leads in the curve that is drawn."""
    try:
        whole = leaders(trajectory)
    except ValueError:  # a run with none of the usual curves
        return str(judged)
    return str(whole) if whole.curve == judged.curve else f"{whole.headline.line}\nIn {term(judged.curve)}: {judged}"


def _of_running(several: Sequence[Trajectory], curve: str) -> dict[str, Any]:
    """Limits that hold for all planned evaluations, and no advice when to stop, which needs the whole run."""
    curve = _with_groups(several[0], curve)
    differences, planned = live_differences(several, curve)
    told = live_told(differences, several[0], planned)
    changes = [{**one, "after": group_name(one["after"])} for one in told["crossings"]]
    return {
        "sentence": visible(told["sentence"]),
        "curve": visible(curve),
        "better": better_of(curve, several[0][curve]),
        "evaluations": len(differences[0].times),
        "planned": planned,
        "crossings": changes,
        "bands": [_band(one) for one in differences if one.judged],
        "stopping": [],
        "stopping_refused": "Advice when to stop is given when the run is over.",
    }


def run_report(root: str, runs: Sequence[str]) -> str:
    """The report of these runs as HTML."""
    from tiltmeter.report.runs import report

    chosen = [loaded(Path(root), path) for path in paths_of_runs(root, runs)]
    with tempfile.TemporaryDirectory() as folder:
        return report(chosen, Path(folder) / "report.html").read_text(encoding="utf-8")


def loaded(root: Path, path: Path) -> Trajectory:
    """A run, if it may be read."""
    refused = refusal(root, path)
    if refused is not None:
        raise ValueError(refused)
    run = load(path)
    if not isinstance(run, Trajectory):
        raise ValueError("This directory holds a dataset, which has no curves over time.")
    return run


def _with_groups(trajectory: Trajectory, curve: str) -> str:
    """The curve to judge: the one asked for, or the first that has groups."""
    names = [name for name in (curve, *JUDGED) if name in trajectory and "group" in trajectory[name].dims]
    if not names:
        raise ValueError("There is no curve of groups in which one could lead.")
    return first_curve(trajectory, curve, names)


def _followed(trajectory: Trajectory, curve: str) -> tuple[Trajectory, str]:
    """The run at no more evaluations than can be judged at once, and the curve to judge."""
    found = _with_groups(trajectory, curve)
    evaluations = trajectory[found].sizes["time"]
    if evaluations <= MOST_LOOKS or trajectory.evaluate is not None:
        return trajectory, found
    times = trajectory[found].coords["time"].values
    at = times[np.unique(np.linspace(0, evaluations - 1, MOST_LOOKS).astype(int))]
    thinned = {name: one.sel(time=np.intersect1d(at, one.coords["time"].values)) for name, one in trajectory.items()}
    return trajectory.replace({name: thinned[name] for name in thinned if name.removesuffix("_se") == found}), found


def _pair(difference: Difference) -> dict[str, Any]:
    """Who leads at the end, since when, and the limits of the gap there."""
    leader = difference.leader[-1]
    return {
        "pair": [group_name(one) for one in difference.pair],
        "leader": "" if leader == NOBODY else group_name(leader),
        "since": None if leader == NOBODY else difference.since,
        "gap": float(difference.gap[-1]),
        "low": float(difference.lower[-1]),
        "high": float(difference.upper[-1]),
    }


def _band(difference: Difference) -> dict[str, Any]:
    kept = downsample(difference.times, np.stack([difference.gap, difference.lower, difference.upper], 1))
    return {
        "pair": [group_name(one) for one in difference.pair],
        "times": difference.times[kept].tolist(),
        "gap": difference.gap[kept].tolist(),
        "lower": difference.lower[kept].tolist(),
        "upper": difference.upper[kept].tolist(),
    }
