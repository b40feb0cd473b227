"""Run judgement: who leads in a run, by bands that hold at all looks together; when to stop; its report."""

from __future__ import annotations

import tempfile
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tiltmeter.analysis.crossings import Crossings, crossings
from tiltmeter.explorer.downsample import downsample
from tiltmeter.explorer.live_judgement import live_differences, live_told
from tiltmeter.explorer.run_folder import refusal, run_folder
from tiltmeter.explorer.run_rows import state_of
from tiltmeter.explorer.stopping_told import stopping_told
from tiltmeter.names import NOBODY, better_of
from tiltmeter.plot.theme import group_name
from tiltmeter.record import Trajectory, load, stack
from tiltmeter.visible_text import visible

#: What was judged before: (path, curve) -> size of the file and state of the run, answer.
_judged: dict[tuple[Path, str], tuple[tuple[int, str], dict[str, Any]]] = {}
#: Above so many looks a run is judged at an even selection of them.
MOST_LOOKS = 400


def run_summaries(root: str, runs: Sequence[str], curve: str = "loss") -> dict[str, Any]:
    """For every run who leads now and the last crossing that is shown, or why that cannot be said."""
    there = run_folder(Path(root))
    answers = {}
    for run in runs:
        if run in there:
            answers[run] = _summary(Path(root), there[run], curve)
    return answers


def _summary(root: Path, path: Path, curve: str) -> dict[str, Any]:
    try:
        now = (path / "curves.jsonl").stat().st_size, state_of(path)
        known = _judged.get((path, curve))
        if known is not None and known[0] == now:
            return known[1]
        answer = _told(loaded(root, path), curve, now[1] == "running")
    except (ValueError, KeyError, TypeError, OSError) as error:
        now, answer = (-1, ""), {"leader": "not judged", "crossing": None, "why": visible(str(error))}
    _judged[path, curve] = now, answer
    return answer


def _told(run: Trajectory, curve: str, running: bool) -> dict[str, Any]:
    if running:
        run, curve = _with_groups(run, curve)
        pairs, planned = live_differences([run], curve)
        ahead = {one.leader[-1] for one in pairs if len(one.times)} if len(pairs) == 1 else set()
        leader = next(iter(ahead), NOBODY)
        changes = live_told(pairs, planned)["crossings"]
        last = max((one["time"] for one in changes), default=None)
    else:
        run, curve = _followed(run, curve)
        found = crossings(run, curve)
        leader, last = _leader_now(found, curve), found[-1].time if found else None
    return {"leader": group_name(leader) if leader != NOBODY else "not shown", "crossing": last}


def _leader_now(found: Crossings, curve: str) -> Hashable:
    """Who is shown to lead every other group at the last look; a lead that was shown earlier only does not count."""
    leader = found.last_leader
    pairs = [] if found.standing is None else [one for one in found.standing.of(curve) if leader in one.pair]
    return leader if all(one.leader[-1] == leader for one in pairs if len(one.times)) else NOBODY


def run_judgement(root: str, runs: Sequence[str], curve: str) -> dict[str, Any]:
    """The sentence, the bands of every pair, crossings and stopping rules of one run, or of seeds taken together."""
    there = run_folder(Path(root))
    several = [loaded(Path(root), there[run]) for run in runs if run in there]
    if not several:
        raise ValueError("This run is no longer there.")
    if any(state_of(there[run]) == "running" for run in runs if run in there):
        return _of_running(several, curve)
    trajectory = several[0] if len(several) == 1 else stack(several)
    trajectory, curve = _followed(trajectory, curve)
    found = crossings(trajectory, curve)
    answer: dict[str, Any] = {
        "sentence": visible(str(found)),
        "curve": visible(curve),
        "better": better_of(curve, trajectory[curve]),
        "looks": trajectory[curve].sizes["time"],
        "crossings": [
            {"time": one.time, "low": one.low, "high": one.high, "after": group_name(one.leader_after)} for one in found
        ],
        "bands": [] if found.standing is None else [_band(one) for one in found.standing.of(curve) if one.judged],
    }
    return {**answer, **stopping_told(trajectory, curve)}


def _of_running(several: Sequence[Trajectory], curve: str) -> dict[str, Any]:
    """Limits that hold for all planned looks, and no advice when to stop, which needs the whole run."""
    curve = _with_groups(several[0], curve)[1]
    pairs, planned = live_differences(several, curve)
    told = live_told(pairs, planned)
    changes = [{**one, "after": group_name(one["after"])} for one in told["crossings"]]
    return {
        "sentence": visible(told["sentence"]),
        "curve": visible(curve),
        "better": better_of(curve, several[0][curve]),
        "looks": len(pairs[0].times),
        "planned": planned,
        "crossings": changes,
        "bands": [_band(one) for one in pairs if one.judged],
        "stopping": [],
        "stopping_refused": "Advice when to stop is given when the run is over.",
    }


def run_report(root: str, runs: Sequence[str]) -> str:
    """The report of these runs as HTML."""
    from tiltmeter.report.runs import report

    there = run_folder(Path(root))
    chosen = [loaded(Path(root), there[run]) for run in runs if run in there]
    if not chosen:
        raise ValueError("This run is no longer there.")
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


def _with_groups(trajectory: Trajectory, curve: str) -> tuple[Trajectory, str]:
    """The curve to judge: the one asked for, or the first that has groups."""
    names = [curve, *(name for name in ("loss", "error") if name != curve)]
    found = next((name for name in names if name in trajectory and "group" in trajectory[name].dims), None)
    if found is None:
        raise ValueError("There is no curve of groups in which one could lead.")
    return trajectory, found


def _followed(trajectory: Trajectory, curve: str) -> tuple[Trajectory, str]:
    """The run at no more looks than can be judged at once, and the curve to judge."""
    found = _with_groups(trajectory, curve)[1]
    looks = trajectory[found].sizes["time"]
    if looks <= MOST_LOOKS or trajectory.evaluate is not None:
        return trajectory, found
    times = trajectory[found].coords["time"].values
    at = times[np.unique(np.linspace(0, looks - 1, MOST_LOOKS).astype(int))]
    thinned = {name: one.sel(time=np.intersect1d(at, one.coords["time"].values)) for name, one in trajectory.items()}
    return trajectory.replace({name: thinned[name] for name in thinned if name.removesuffix("_se") == found}), found


def _band(difference: Any) -> dict[str, Any]:
    kept = downsample(difference.times, np.stack([difference.gap, difference.lower, difference.upper], 1))
    return {
        "pair": [group_name(one) for one in difference.pair],
        "times": difference.times[kept].tolist(),
        "gap": difference.gap[kept].tolist(),
        "lower": difference.lower[kept].tolist(),
        "upper": difference.upper[kept].tolist(),
    }
