"""loss-slice: the loss of every group along a line through the weights (Li et al., 2018, for one group)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Protocol

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from tiltmeter.measures.seen_model import SeenModel
from tiltmeter.measures.snapshot import Snapshot
from tiltmeter.modules.tangent.gradient import count_of, gradient, trained
from tiltmeter.modules.untouched import deep_copy
from tiltmeter_lab.measures.shared.risk import point_losses


class Direction(Protocol):
    """A direction in the space of all trained weights, of any length but 0, and what it costs in passes."""

    def __call__(self, snapshot: Snapshot) -> Tensor: ...

    def passes(self) -> float: ...


@dataclass(frozen=True)
class Descent:
    """Where a step of gradient descent on the mean loss of these points would go."""

    def __call__(self, snapshot: Snapshot) -> Tensor:
        seen, mass = snapshot.model, torch.as_tensor(_mass(snapshot))
        plain = point_losses(seen)

        def losses(places: Tensor) -> Tensor:
            found = plain(places)
            return found * mass[places].to(found)

        return -gradient(losses, trained(seen.module), torch.arange(len(snapshot.data)), seen.chunk)

    def passes(self) -> float:
        return 3.0


@dataclass(frozen=True)
class Random:
    """A random direction, the same at every observation; each tensor is as long as the weights that it changes."""

    seed: int = 0

    def __call__(self, snapshot: Snapshot) -> Tensor:
        stream = torch.Generator().manual_seed(self.seed)
        parts = []
        for parameter in trained(snapshot.model.module):
            drawn = torch.randn(parameter.numel(), generator=stream).to(parameter)
            parts.append(drawn * parameter.detach().norm() / drawn.norm())
        return torch.cat(parts)

    def passes(self) -> float:
        return 0.0


@dataclass(frozen=True)
class LossSlice:
    """`loss_slice`: the mean loss of every group if all weights were moved along a direction, dimension `offset`.

    >>> import tiltmeter as tm, torch
    >>> import tiltmeter_lab as lab
    >>> model = torch.nn.Linear(1, 1, bias=False)
    >>> model.weight.data = torch.ones(1, 1)
    >>> data = tm.GroupedData([[1.0]] * 60, [0.0, 3.0] * 30, ["a", "b"] * 30)
    >>> found = lab.measure(LossSlice(offsets=(0.0, 0.5)), model, data, tm.Square())["loss_slice"]
    >>> found.sel(group="a").values.tolist()  # 1/2 (1 + offset)^2: descent helps the mean, not this group
    [0.5, 1.125]

    An offset is a distance in the space of weights over the length of all trained weights. `direction` is `Descent()`,
    the way training goes, or `Random()`. `slice_length` is the length of the weights, so that offsets can be turned
    into distances. Where one group rises along the way that the mean falls, the groups compete.

    What it does not mean: one line says little about a space of many dimensions. The slope and curvature along it
    depend on how layers are scaled, also where the network computes the same function. It is the loss on held-out
    points; a step of training follows the gradient of a mini-batch.

    Args:
        offsets: Distances along the direction, over the length of all weights.
        direction: `Descent()`, the way training goes, or `Random()`.
    """

    title: ClassVar[str] = "Loss of every group along a line through the weights"
    takes: ClassVar[str] = "a differentiable model and a loss of each point; Random() needs no gradient"
    exact: ClassVar[str] = "for the points looked at; a quadratic in the offset for linear models with squared loss"
    absent: ClassVar[str] = "groups with the same distribution: the same curve up to sampling"
    weighs: ClassVar[bool] = True

    offsets: tuple[float, ...] = tuple(round(0.02 * place - 0.2, 10) for place in range(21))
    direction: Direction = Descent()

    def __post_init__(self) -> None:
        if len(self.offsets) < 2 or list(self.offsets) != sorted(set(self.offsets)):
            raise ValueError(f"`offsets` should be at least two ascending numbers. Found offsets = {self.offsets}.")
        if not callable(self.direction):
            raise TypeError(f"`direction` should be Descent() or Random(). Found {type(self.direction).__name__}.")

    def __call__(self, snapshot: Snapshot) -> dict[str, xr.DataArray]:
        seen, data = snapshot.model, snapshot.data
        parameters = trained(seen.module)
        length = float(torch.cat([p.detach().flatten() for p in parameters]).double().norm())
        way = self.direction(snapshot)
        if way.shape != (count_of(parameters),):
            raise ValueError(
                f"`direction` should give {count_of(parameters)} numbers, one for each trained weight. Found shape "
                f"{tuple(way.shape)}."
            )
        size = float(way.double().norm())
        way = way / size if size > 0 else way  # at a minimum there is no way down: the slice is flat
        values = np.stack([self._group_losses(seen, snapshot, way * (offset * length)) for offset in self.offsets], 1)
        coords = {"group": data.group_labels, "offset": np.array(self.offsets)}
        return {
            "loss_slice": snapshot.reading(
                "loss_slice",
                values,
                coords,
                long_name="loss of a group along a line through the weights",
                better="lower",
                null="its value at offset 0",
            ),
            "slice_length": snapshot.reading(
                "slice_length",
                np.asarray(length),
                {},
                long_name="length of all trained weights, the unit of offsets",
                better="neither",
                null="value at initialisation",
            ),
        }

    def passes(self, snapshot: Snapshot) -> float:  # noqa: ARG002
        """One pass over the points for each offset, and the direction."""
        return float(len(self.offsets)) + self.direction.passes()

    def _group_losses(self, seen: SeenModel, snapshot: Snapshot, step: Tensor) -> np.ndarray:
        moved = deep_copy(seen.module)
        with torch.no_grad():
            first = 0
            for parameter in trained(moved):
                parameter.add_(step[first : first + parameter.numel()].view_as(parameter).to(parameter))
                first += parameter.numel()
        other = replace(seen, module=moved)
        scores = other.scores(seen.x)
        losses = other.losses(scores if snapshot.task.outputs > 1 else scores[:, 0], seen.y).double().cpu().numpy()
        data, mass = snapshot.data, _mass(snapshot)
        sums = np.bincount(data.codes, mass * losses, len(data.groups))
        with np.errstate(invalid="ignore"):
            return np.asarray(sums / np.bincount(data.codes, mass, len(data.groups)))


def _mass(snapshot: Snapshot) -> np.ndarray:
    """Weights of the points with mean 1, so that only their ratios matter, rounding included."""
    data = snapshot.data
    return np.ones(len(data)) if data.weights is None else data.weights / np.mean(data.weights)
