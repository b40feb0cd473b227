"""Curves: the path of the theory as the Trajectory that a probe would have recorded, over progress."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from tiltmeter.measures.default_curves import DEFAULTS
from tiltmeter.measures.from_scores import snapshot_of_scores, table_task
from tiltmeter.measures.point_keeper import final_values, point_values
from tiltmeter.preview.flow import mean_loss
from tiltmeter.preview.inputs import Inputs
from tiltmeter.record.labelled import labels_array
from tiltmeter.record.origin import Origin
from tiltmeter.record.trajectory import Trajectory

#: Progress at which a phase is read: early, middle, late.
PHASES = {"early": 0.3, "middle": 0.7, "late": 1.0}


@dataclass(frozen=True, eq=False)
class Course:
    """Held-out scores (evaluations, points, outputs) at growing progress; the last is where the loss is least."""

    progress: np.ndarray
    scores: np.ndarray
    loss: np.ndarray
    times: np.ndarray

    def until(self, stop: float) -> Course:
        """The same, ended at this progress; the evaluation there lies between its neighbours."""
        if stop >= self.progress[-1]:
            return self
        kept = self.progress < stop - 1e-12
        last = self.at(stop)
        return Course(
            np.append(self.progress[kept], stop),
            np.concatenate([self.scores[kept], last[None]]),
            np.append(self.loss[kept], np.interp(stop, self.progress, self.loss)),
            np.append(self.times[kept], np.interp(stop, self.progress, self.times)),
        )

    def at(self, progress: float) -> np.ndarray:
        """The scores at some progress, between those of its two evaluations."""
        place = int(np.clip(np.searchsorted(self.progress, progress), 1, len(self.progress) - 1))
        low, high = self.progress[place - 1], self.progress[place]
        share = float(np.clip((progress - low) / (high - low), 0.0, 1.0))
        return np.asarray((1.0 - share) * self.scores[place - 1] + share * self.scores[place])


def course_of(scores: np.ndarray, labels: np.ndarray, mass: np.ndarray, kind: Any, times: np.ndarray) -> Course:
    """Scores in the order of progress: the share of the fall of the held-out loss from its start to its minimum.

    >>> flat, right = np.zeros((2, 1)), np.array([[-1.0], [1.0]])
    >>> parts = np.stack([flat, 0.5 * right, right]), np.array([0.0, 1.0]), np.array([0.5, 0.5])
    >>> course_of(*parts, "binary", np.arange(3.0)).progress.round(3).tolist()
    [0.0, 0.577, 1.0]
    """
    losses = np.array([mean_loss(one, labels, mass, kind) for one in scores])
    end = int(np.argmin(losses))
    fall = losses[0] - losses[end]
    if end == 0 or fall <= 1e-12 * max(1.0, abs(losses[0])):
        # The loss did not fall: the untrained answer and the next one are all there is.
        end, fall = min(1, len(losses) - 1), 0.0
        return Course(np.arange(end + 1.0), scores[: end + 1], losses[: end + 1], times[: end + 1])
    progress = (losses[0] - losses[: end + 1]) / fall
    kept, highest = [0], 0.0
    for place in range(1, end + 1):
        if progress[place] > highest + 1e-9:
            kept.append(place)
            highest = progress[place]
    exact = progress[kept]
    exact[0], exact[-1] = 0.0, 1.0
    return Course(exact, scores[kept], losses[kept], times[kept])


def run_of(
    inputs: Inputs, course: Course, settings: Mapping[str, Any], thresholds: Mapping[Hashable, float] | None = None
) -> Trajectory:
    """The curves and points of a course; `thresholds` are probabilities above which a group is decided positive."""
    data = inputs.held_out_data
    outputs = course.scores.shape[2]
    task = table_task(data, outputs, inputs.loss, thresholds is not None)
    blanks: dict[str, xr.DataArray] = {}
    parts: dict[str, list[np.ndarray]] = {}
    points: dict[str, list[np.ndarray]] = {}
    last: dict[str, np.ndarray] = {}
    cuts = None if thresholds is None else _cuts(inputs, thresholds)
    for place, scores in enumerate(course.scores):
        flat = scores[:, 0] if outputs == 1 else scores
        decision = None
        if cuts is not None:
            decision = np.where(flat > cuts, *inputs.classes[::-1])
        shown = snapshot_of_scores(data, task, inputs.loss, flat, decision, place, blanks)
        for measure in DEFAULTS:
            for name, curve in measure(shown).items():
                parts.setdefault(name, []).append(curve.values)
        for name, values in point_values(shown).items():
            points.setdefault(name, []).append(values)
        last = final_values(shown)
    curves = {}
    for name, rows in parts.items():
        blank = blanks[name]
        dims = ("time", *map(str, blank.dims))
        coords = {"time": course.progress, **{str(dim): blank.coords[dim].values for dim in blank.dims}}
        curves[name] = xr.DataArray(np.stack(rows), coords, dims, attrs=blank.attrs)
    problem: Any = {"held_out": data.to_json()}
    origin = Origin("forecast", problem, dict(settings))
    kept = {} if data.weights is not None else _points(inputs, course.progress, points, last)
    return Trajectory(curves, "progress", origin, points=kept)


def _cuts(inputs: Inputs, thresholds: Mapping[Hashable, float]) -> np.ndarray:
    """The score above which each held-out point is decided positive."""
    usual = 0.0 if inputs.kind == "binary" else sum(inputs.classes) / 2
    by_group = np.full(len(inputs.groups), usual)
    for group, probability in thresholds.items():
        place = inputs.groups.index(group)
        low, high = (0.0, 1.0) if inputs.kind == "binary" else inputs.classes
        by_group[place] = (
            np.log(probability / (1.0 - probability)) if inputs.kind == "binary" else low + probability * (high - low)
        )
    return np.asarray(by_group[inputs.held_out.codes])


def _points(
    inputs: Inputs, progress: np.ndarray, kept: Mapping[str, list[np.ndarray]], last: Mapping[str, np.ndarray]
) -> dict[str, xr.DataArray]:
    data = inputs.held_out_data
    coords: dict[str, Any] = {"group": ("point", labels_array(inputs.groups)[data.codes])}
    if len(inputs.classes) == 2:
        coords["positive"] = ("point", data.y == inputs.classes[1])
    elif inputs.classes:
        coords["label"] = ("point", data.y)
    found = {
        name: xr.DataArray(np.stack(values), {"time": progress, **coords}, ("time", "point"))
        for name, values in kept.items()
    }
    for name, values in last.items():
        found[name] = xr.DataArray(values[None], {"time": progress[-1:], **coords}, ("time", "point"))
    return found
