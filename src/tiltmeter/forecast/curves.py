"""Curves: the measures of a probe on forecast outputs, read one evaluation at a time or all together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from tiltmeter.measures.answers import Answers
from tiltmeter.measures.default_curves import DEFAULTS
from tiltmeter.measures.group_metric import GroupMetric
from tiltmeter.measures.snapshot import Measure, same_labels
from tiltmeter.recipe.watch import Watch
from tiltmeter.record import Origin, Trajectory
from tiltmeter.training.probe import as_measure

#: Outputs (numbers) that are read together.
GATHERED = 2**21
#: Outputs of this size have diverged: larger ones would make the squares of losses overflow.
BEYOND = 1e50


def forecast_measures(watch: Watch) -> tuple[Measure, ...]:
    """Return the default curves and the metrics of the watch, which may use scores only."""
    found = tuple(as_measure(measure) for measure in watch.measures)
    if not all(isinstance(measure, GroupMetric) for measure in found):
        raise TypeError("`measures` of a forecast should be functions f(y_true, y_score). Found one of a snapshot.")
    return DEFAULTS + found


def curves(
    answers: Answers, measures: Sequence[Measure], evaluations: np.ndarray, outputs: np.ndarray, origin: Origin
) -> Trajectory:
    """Return the group curves of outputs (steps, points, outputs); they end at the first evaluation that is not
    finite."""
    with np.errstate(invalid="ignore"):
        sound = (np.abs(outputs) < BEYOND).all((1, 2))
    last = len(evaluations) if sound.all() else int(np.argmin(sound))
    if not last:
        raise ValueError("The outputs of `model` before training should be finite. Found NaN or infinite ones.")
    together = max(1, GATHERED // max(1, outputs[0].size))
    parts = list(_read(answers, measures, evaluations[:last], outputs[:last], together))
    found = {name: xr.concat([part[name] for part in parts], "time") for name in parts[0]} if parts[1:] else parts[0]
    diverged = None if last == len(evaluations) else xr.DataArray(float(evaluations[last]))
    return Trajectory(found, "step", origin, diverged)


def _read(
    answers: Answers, measures: Sequence[Measure], evaluations: np.ndarray, outputs: np.ndarray, together: int
) -> Iterator[dict[str, xr.DataArray]]:
    """Read several looks at once: the measures see them as copies of the points in separate groups."""
    groups = answers.data.group_labels
    for first in range(0, len(evaluations), together):
        steps, values = evaluations[first : first + together], outputs[first : first + together]
        flat = values.reshape(-1, values.shape[2])
        scores = torch.as_tensor(flat[:, 0] if flat.shape[1] == 1 else flat)
        snapshot = answers.repeated(len(steps)).assemble([(0, scores)])
        found: dict[str, xr.DataArray] = {}
        for measure in measures:
            for name, reading in measure(snapshot).items():
                array = reading.values.reshape(len(steps), len(groups), *reading.shape[1:])
                kept = {str(dim): reading.coords[dim].values for dim in reading.dims[1:]}
                coords = {"time": steps, "group": groups, **kept}
                found[name] = xr.DataArray(array, dims=list(coords), coords=coords, attrs=reading.attrs)
        yield found


#: Scores (numbers) that are kept at most.
KEPT = 2**24


class GatheredEvaluations:
    """`scores()` gives those of all runs now, of shape (runs, points, outputs)."""

    def __init__(self, scores: Callable[[], Tensor]) -> None:
        self._scores, self._steps, self._kept = scores, list[int](), list[Tensor]()

    def __call__(self, step: int) -> bool:
        """Evaluate after `step` updates; return whether any run goes on."""
        found = self._scores()
        self._steps.append(step)
        self._kept.append(found)
        return bool(found.flatten(1).isfinite().all(1).any())

    def trajectory(
        self, answers: Answers, measures: Sequence[Measure], coords: Mapping[str, np.ndarray], origin: Origin
    ) -> Trajectory:
        """The curves, as `StackedObservations` records them: a run that diverged, its loss no longer finite, has no
        values after the evaluation that found it. `coords` names the dimension of the runs, if there are several."""
        outputs = torch.stack(self._kept)
        evaluations, runs = outputs.shape[:2]
        together = max(1, GATHERED // max(1, outputs[0].numel()))
        parts = list(self._read(answers, measures, outputs, together))
        groups = answers.data.group_labels
        arrays = {name: np.concatenate([part[name][0] for part in parts]) for name in parts[0]}
        finite = np.isfinite(arrays["loss"]).reshape(evaluations, len(groups), runs).all(1)
        ends = np.where(finite.all(0), evaluations, np.argmin(finite, 0))  # the evaluation that found a run diverged
        last = evaluations if (ends == evaluations).any() else int(ends.max()) + 1
        steps = np.asarray(self._steps)
        found: dict[str, xr.DataArray] = {}
        blanks: dict[tuple[Any, ...], xr.DataArray] = {}  # labels are made once
        for name, (_, reading) in parts[0].items():
            array = arrays[name]
            for run in np.flatnonzero(ends < evaluations):
                array[ends[run] + 1 :, ..., run] = np.nan
            array = array[:last] if coords else array[:last, ..., 0]
            kept = {str(dim): reading.coords[dim].values for dim in reading.dims[1:]}
            key = tuple((dim, *values.tolist()) for dim, values in kept.items())
            if key not in blanks:
                labels: dict[str, Any] = {"time": steps[:last], "group": groups, **kept, **coords}
                blanks[key] = xr.DataArray(array, dims=list(labels), coords=labels)
            found[name] = same_labels(blanks[key], array).assign_attrs(reading.attrs)
        diverged = None
        if (ends < evaluations).any():
            when = np.where(ends < evaluations, steps[np.minimum(ends, evaluations - 1)], np.nan).astype(float)
            diverged = xr.DataArray(when if coords else when[0], dims=list(coords), coords=coords)
        return Trajectory(found, "step", origin, diverged)

    @staticmethod
    def _read(
        answers: Answers, measures: Sequence[Measure], outputs: Tensor, together: int
    ) -> Iterator[dict[str, tuple[np.ndarray, xr.DataArray]]]:
        """Arrays (evaluations, groups, ..., runs) and a reading as it came."""
        groups, runs = len(answers.data.group_labels), outputs.shape[1]
        for first in range(0, len(outputs), together):
            values = outputs[first : first + together]
            flat = values.reshape(-1, values.shape[3])
            snapshot = answers.repeated(len(values) * runs).assemble([(0, flat[:, 0] if flat.shape[1] == 1 else flat)])
            found: dict[str, tuple[np.ndarray, xr.DataArray]] = {}
            for measure in measures:
                for name, reading in measure(snapshot).items():
                    if name in found:
                        raise ValueError(f"Two measures give a curve {name!r}: rename one.")
                    array = reading.values.reshape(len(values), runs, groups, *reading.shape[1:])
                    found[name] = np.moveaxis(array, 1, -1).copy(), reading
            yield found
