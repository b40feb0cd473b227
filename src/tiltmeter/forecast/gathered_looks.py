"""GatheredLooks: the scores of all runs at every look, read together at the end.

A look at a few hundred points takes as long as its calls. Read as copies of the points in groups of their own, all
looks of all runs take little longer than one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from tiltmeter.forecast.curves import GATHERED
from tiltmeter.measures.answers import Answers
from tiltmeter.measures.same_labels import same_labels
from tiltmeter.measures.snapshot import Measure
from tiltmeter.record import Origin, Trajectory

#: Scores (numbers) that are kept at most.
KEPT = 2**24


class GatheredLooks:
    """`scores()` gives those of all runs now, of shape (runs, points, outputs)."""

    def __init__(self, scores: Callable[[], Tensor]) -> None:
        self._scores, self._steps, self._kept = scores, list[int](), list[Tensor]()

    def __call__(self, step: int) -> bool:
        """Look after `step` updates; return whether any run goes on."""
        found = self._scores()
        self._steps.append(step)
        self._kept.append(found)
        return bool(found.flatten(1).isfinite().all(1).any())

    def trajectory(
        self, answers: Answers, measures: Sequence[Measure], coords: Mapping[str, np.ndarray], origin: Origin
    ) -> Trajectory:
        """The curves, as `StackedObservations` records them: a run that diverged, its loss no longer finite, has no
        values after the look that found it. `coords` names the dimension of the runs, if there are several."""
        outputs = torch.stack(self._kept)
        looks, runs = outputs.shape[:2]
        together = max(1, GATHERED // max(1, outputs[0].numel()))
        parts = list(self._read(answers, measures, outputs, together))
        groups = answers.data.group_labels
        arrays = {name: np.concatenate([part[name][0] for part in parts]) for name in parts[0]}
        finite = np.isfinite(arrays["loss"]).reshape(looks, len(groups), runs).all(1)
        ends = np.where(finite.all(0), looks, np.argmin(finite, 0))  # the look that found a run diverged
        last = looks if (ends == looks).any() else int(ends.max()) + 1
        steps = np.asarray(self._steps)
        found: dict[str, xr.DataArray] = {}
        blanks: dict[tuple[Any, ...], xr.DataArray] = {}  # labels are made once
        for name, (_, reading) in parts[0].items():
            array = arrays[name]
            for run in np.flatnonzero(ends < looks):
                array[ends[run] + 1 :, ..., run] = np.nan
            array = array[:last] if coords else array[:last, ..., 0]
            kept = {str(dim): reading.coords[dim].values for dim in reading.dims[1:]}
            key = tuple((dim, *values.tolist()) for dim, values in kept.items())
            if key not in blanks:
                labels: dict[str, Any] = {"time": steps[:last], "group": groups, **kept, **coords}
                blanks[key] = xr.DataArray(array, dims=list(labels), coords=labels)
            found[name] = same_labels(blanks[key], array).assign_attrs(reading.attrs)
        diverged = None
        if (ends < looks).any():
            when = np.where(ends < looks, steps[np.minimum(ends, looks - 1)], np.nan).astype(float)
            diverged = xr.DataArray(when if coords else when[0], dims=list(coords), coords=coords)
        return Trajectory(found, "step", origin, diverged)

    @staticmethod
    def _read(
        answers: Answers, measures: Sequence[Measure], outputs: Tensor, together: int
    ) -> Iterator[dict[str, tuple[np.ndarray, xr.DataArray]]]:
        """Arrays (looks, groups, ..., runs) and a reading as it came."""
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
