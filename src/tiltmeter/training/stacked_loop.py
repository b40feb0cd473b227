"""The loop that trains a stack: batches of all runs, one gradient, one update."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from tiltmeter.data.example_weights import example_weights
from tiltmeter.data.grouped import GroupedData
from tiltmeter.interventions.kinds import TermIntervention
from tiltmeter.measures.answers import Answers
from tiltmeter.measures.point_keeper import PointKeeper
from tiltmeter.measures.point_loss import PointLoss
from tiltmeter.measures.snapshot import Measure
from tiltmeter.recipe.sampling import Sampling
from tiltmeter.record import Recorder
from tiltmeter.training.stacked import Stacked
from tiltmeter.training.stacked_updates import Rate, Update
from tiltmeter.training.steering import PullCurve, Steering


def stacked_scores(outputs: Tensor) -> Tensor:
    """Scores of shape (runs, points) or (runs, points, several)."""
    return outputs.squeeze(2) if outputs.ndim == 3 and outputs.shape[2] == 1 else outputs


def stacked_loss(
    loss: PointLoss,
    data: GroupedData,
    weights: Mapping[Any, float] | None,
    like: Tensor,
    steering: Steering | None = None,
    points: Tensor | None = None,
) -> Callable[[Tensor, Tensor], Tensor]:
    """Return a function from outputs (runs, batch, ...) and places (runs, batch) of the points to losses (runs,).

    `points` are all points, for interventions that see them.
    """
    found = example_weights(data, weights)
    factors = None if found is None else torch.as_tensor(found, dtype=like.dtype, device=like.device)
    if factors is not None and loss.each is None:
        raise ValueError(f"Weights multiply the loss of each point, but {loss.definition} gives one number per batch.")
    y = data.tensors(like.dtype)[1].to(like.device)
    classes, numbers = y.long(), y.to(like.dtype)
    codes = torch.as_tensor(data.codes, dtype=torch.int64, device=like.device)
    laws = () if steering is None else steering.points
    seen = points if any(isinstance(law, TermIntervention) and "inputs" in law.sees for law in laws) else None

    def losses(outputs: Tensor, places: Tensor) -> Tensor:
        scores = stacked_scores(outputs)
        labels = (classes if scores.ndim == 3 else numbers)[places]
        if loss.each is None:
            return torch.vmap(loss.whole)(scores, labels)
        each = loss.each(scores.flatten(0, 1), labels.flatten()).view(labels.shape)
        if steering is not None:
            heavy = None if factors is None else factors[places]
            x = None if seen is None else seen[places]
            return steering(each, codes[places], scores=scores, y=labels, weights=heavy, x=x)  # type: ignore[no-any-return]
        return (each if factors is None else each * factors[places]).mean(1)

    return losses


class StackedObservations:
    """Evaluates all runs of a stack and records what it sees.

    `coords` names the dimensions of the runs, the last varying fastest: {"seed": [0, 1], "lr": [0.1, 0.2]}. A run that
    diverged, its loss no longer finite, has no values after the evaluation that found it.
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

    def sync(self) -> None:
        """Have every evaluation so far on the disk."""
        self._recorder.sync()

    def __call__(self, step: int) -> bool:
        """Evaluate after `step` updates; return whether any run goes on."""
        starts = range(0, len(self._points), self._chunk)
        parts = (self._points[start : start + self._chunk] for start in starts)
        chunks = [stacked_scores(self._stacked.evaluate(part.clone())) for part in parts]
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
        """What has to be known to go on: which runs diverged, and the last evaluation whose points were kept."""
        kept = None if self._keeper is None else self._keeper.last
        return {"diverged": torch.as_tensor(self._diverged), "kept": kept}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Go on from this state."""
        self._diverged = state["diverged"].cpu().numpy().copy()
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


def stacked_batches(
    sampling: Sampling, data: GroupedData, batch: int, seeds: Sequence[int], step: int = 0
) -> Iterator[Tensor]:
    """Yield, from this step on, the batches of every seed, of shape (seeds, batch), as `train` would take them."""
    first, passed = divmod(step, sampling.batches(data, batch))
    for number in count(first):
        stretch = torch.as_tensor(np.stack([sampling.stretch(data, batch, seed, number) for seed in seeds]))
        yield from (stretch[:, start : start + batch] for start in range(passed * batch, stretch.shape[1], batch))
        passed = 0


def train_stacked(
    stacked: Stacked,
    update: Update,
    rate: Callable[[int], Rate],
    batches: Iterator[Tensor],
    points: Tensor,
    loss: Callable[[Tensor, Tensor], Tensor],
    evaluations: Sequence[int],
    evaluate: Callable[[int], bool],
    start: int = 0,
    after: Callable[[int], None] | None = None,
) -> None:
    """Train all runs at once to the last of `evaluations`; `evaluate(step)` returns whether to go on.

    `rate` gives the learning rate of every step. `loss` gives the loss of every run from its outputs and the places of
    its batch among the points. If `batches` has fewer rows than there are runs, neighbouring runs share a batch. A
    resumed training begins after `start` updates; `after(step)` is called after every update.
    """
    step = start
    for stop in (place for place in evaluations if place >= start):
        while step < stop:
            places = next(batches).to(points.device)
            if len(places) < stacked.runs:
                places = places.repeat_interleave(stacked.runs // len(places), dim=0)
            batch = points.index_select(0, places.flatten()).view(*places.shape, *points.shape[1:])
            _, gradients = stacked.differentiate(batch, lambda outputs, places=places: loss(outputs, places))  # type: ignore[misc]
            update(stacked.parameters, gradients, rate(step))
            step += 1
            if after is not None:
                after(step)
        if not evaluate(step):
            return
