"""Looks at a stack: the group curves of all runs at once, recorded with one dimension more than those of one run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from tiltmeter.measures.answers import Answers
from tiltmeter.measures.snapshot import Measure
from tiltmeter.record import Recorder
from tiltmeter.training.point_keeper import PointKeeper
from tiltmeter.training.pull_curve import PullCurve
from tiltmeter.training.stacked import Stacked
from tiltmeter.training.stacked_loss import stacked_scores


class StackedObservations:
    """Looks at all runs of a stack and writes what it sees.

    `coords` names the dimensions of the runs, the last varying fastest: {"seed": [0, 1], "lr": [0.1, 0.2]}. A run that
    diverged, its loss no longer finite, has no values after the look that found it.
    """

    def __init__(
        self,
        stacked: Stacked,
        answers: Answers,
        measures: Sequence[Measure],
        points: Tensor,
        coords: Mapping[str, Any],
        recorder: Recorder,
        keeper: PointKeeper | None = None,
        pull: PullCurve | None = None,
    ) -> None:
        self._stacked, self._measures, self._points, self._recorder = stacked, measures, points, recorder
        self._groups, self._chunk = answers.data.group_labels, answers.chunk
        self._answers = answers.repeated(stacked.runs)
        self._coords = {name: np.asarray(values) for name, values in coords.items()}
        self._sizes = tuple(len(values) for values in self._coords.values())
        self._diverged = np.full(stacked.runs, np.nan)
        self._keeper = keeper
        self._pull = pull
        self._layouts: dict[str, xr.DataArray] = {}  # made once: labels cost more time than the numbers

    def __call__(self, step: int) -> bool:
        """Look after `step` updates; return whether any run goes on."""
        starts = range(0, len(self._points), self._chunk)
        parts = (self._points[start : start + self._chunk] for start in starts)
        chunks = [stacked_scores(self._stacked.evaluate(part)) for part in parts]
        scores = torch.cat(chunks, dim=1).flatten(0, 1)
        snapshot = self._answers.assemble([(0, scores)])
        readings: dict[str, xr.DataArray] = {}
        for measure in self._measures:
            for name, values in measure(snapshot).items():
                if name in readings:
                    raise ValueError(f"Two measures give a curve {name!r}: rename one.")
                readings[name] = self._apart(name, values)
        if self._pull is not None:
            readings["pull"] = self._pull.reading(self._coords)
        points = {} if self._keeper is None else self._keeper(snapshot, step)
        last = self._recorder.last_time
        if last is None or step > last:  # the steps since a checkpoint are repeated identically
            self._recorder.append(step, readings, points)
        finite = np.isfinite(readings["loss"].values).reshape(len(self._groups), -1).all(0)
        fresh = ~finite & np.isnan(self._diverged)
        if fresh.any():
            self._diverged[fresh] = step
            self._recorder.diverged(
                xr.DataArray(self._diverged.reshape(self._sizes), dims=list(self._coords), coords=self._coords)
            )
        return bool(np.isnan(self._diverged).any())

    def state(self) -> dict[str, Any]:
        """What has to be known to go on: which runs diverged, and the last look whose points were kept."""
        kept = None if self._keeper is None else self._keeper.last
        return {"diverged": torch.as_tensor(self._diverged), "kept": kept}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Go on from this state."""
        self._diverged = state["diverged"].numpy().copy()
        if self._keeper is not None:
            self._keeper.last = state["kept"]

    def _apart(self, name: str, values: xr.DataArray) -> xr.DataArray:
        """Reshape a reading over the groups of all runs to one over groups and the dimensions of the runs."""
        array = values.values
        array = array.reshape(self._stacked.runs, len(self._groups), *array.shape[1:])
        if np.isfinite(self._diverged).any():
            array = np.where(np.isfinite(self._diverged).reshape(-1, *(1,) * (array.ndim - 1)), np.nan, array)
        array = np.moveaxis(array, 0, -1).reshape(*array.shape[1:], *self._sizes)
        if name not in self._layouts:
            kept = {str(dim): values.coords[dim].values for dim in values.dims[1:]}
            coords: dict[str, Any] = {"group": self._groups, **kept, **self._coords}
            self._layouts[name] = xr.DataArray(array, dims=list(coords), coords=coords, attrs=values.attrs)
        blank = self._layouts[name]
        # Labels and their index are shared, not copied: the recorder then does not read them again.
        fresh = xr.Variable(blank.dims, array, blank.attrs, fastpath=True)
        return xr.DataArray(fresh, blank._coords, name=blank._name, indexes=blank._indexes, fastpath=True)
