"""Curves: the measures of a probe on forecast outputs, several evaluations at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
import xarray as xr

from tiltmeter.measures.answers import Answers
from tiltmeter.measures.default_curves import DEFAULTS
from tiltmeter.measures.group_metric import GroupMetric
from tiltmeter.measures.snapshot import Measure
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
