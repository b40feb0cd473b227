"""gradient-starvation: how bent the decision boundary in the plane is, and how large scores are (Pezeshki et al.,
2021).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
import torch
import xarray as xr

from tiltmeter.data.grouped import GroupedData
from tiltmeter.measures.snapshot import Snapshot
from tiltmeter.modules.networks import mlp
from tiltmeter_lab.data.moons import moons


@dataclass(frozen=True)
class Starvation:
    """Height of the decision boundary in the plane: its standard deviation, and that around a fitted straight line.

    >>> import tiltmeter as tm
    >>> import tiltmeter_lab as lab
    >>> flat = torch.nn.Linear(2, 1)
    >>> flat.weight.data, flat.bias.data = torch.tensor([[0.0, 1.0]]), torch.zeros(1)
    >>> float(lab.measure(Starvation(), flat, moons())["boundary_spread"])
    0.0

    Points have two coordinates. The boundary is followed along coordinate `along` over the range of the points; its
    position on the other coordinate is interpolated on a grid of `side` x `side`. A model that uses only the straight
    feature has a flat boundary: `boundary_spread` is 0. `boundary_bend` also removes a tilted line. `mean_score` is the
    mean absolute score (difference of the two outputs) of the held-out points: large scores starve the gradient of
    other features.

    What it does not mean: a flat boundary means that the bent feature is not used, not that it was starved: a linear
    model has a flat boundary too. A penalty on scores bends the boundary also where nothing is starved, so an increase
    does not prove that the penalty cured starvation.

    Args:
        along: Coordinate along which the boundary is followed, 0 or 1.
        side: Points along one side of the grid.
    """

    along: int = 0
    side: int = 200
    title: ClassVar[str] = "Bend of the decision boundary in the plane, and size of scores"
    takes: ClassVar[str] = "Points of two coordinates and a model that decides between two labels"
    exact: ClassVar[str] = "Up to linear interpolation between the points of the grid"
    absent: ClassVar[str] = "Moons that overlap: no straight line separates them, and the boundary bends"

    def __post_init__(self) -> None:
        if self.along not in (0, 1) or self.side < 3:
            raise ValueError(
                "`along` should be coordinate 0 or 1 and `side` at least 3. "
                f"Found along = {self.along}, side = {self.side}."
            )

    @classmethod
    def example(cls, seed: int) -> tuple[Self, torch.nn.Module, GroupedData]:
        """Two moons that a line separates, and an untrained network."""
        return cls(side=50), mlp(2, (16,), 1), moons(0.1, 200, seed=seed)

    def __call__(self, snapshot: Snapshot) -> dict[str, xr.DataArray]:
        seen = snapshot.model
        if tuple(seen.x.shape[1:]) != (2,) or not snapshot.task.binary:
            raise ValueError(
                "A boundary in the plane needs points of two coordinates and two labels. Found points of shape "
                f"{tuple(seen.x.shape[1:])} and {len(snapshot.task.labels)} labels."
            )
        low, high = seen.x.min(0).values, seen.x.max(0).values
        lines = [torch.linspace(float(a), float(b), self.side) for a, b in zip(low, high, strict=True)]
        grid = torch.stack(torch.meshgrid(*lines, indexing="ij"), dim=-1).reshape(-1, 2)
        score = self._above(snapshot, seen.scores(grid.to(seen.x.dtype))).reshape(self.side, self.side)
        across = lines[1 - self.along].double().cpu().numpy()
        height = boundary(score if self.along == 0 else score.T, across)
        met = np.isfinite(height)
        where, bend = lines[self.along].double().cpu().numpy()[met], height[met]
        spread, left = 0.0, 0.0
        if len(bend) > 1:
            line = np.polynomial.Polynomial.fit(where, bend, 1)
            spread, left = float(bend.std()), float((bend - line(where)).std())
        size = float(np.abs(self._above(snapshot, seen.scores(seen.x))).mean())
        none = "0, that of a straight boundary"
        return {
            name: snapshot.reading(name, np.asarray(float(value)), {}, long_name=meaning, better="neither", null=null)
            for name, value, meaning, null in (
                ("boundary_spread", spread, "standard deviation of the boundary's height", none),
                ("boundary_bend", left, "standard deviation of the boundary around a straight line", none),
                (
                    "boundary_met",
                    met.mean(),
                    "share of the range where there is a boundary",
                    "1, that of a line across",
                ),
                ("mean_score", size, "mean absolute score", "value at initialisation"),
            )
        }

    def _above(self, snapshot: Snapshot, score: torch.Tensor) -> np.ndarray:
        if snapshot.task.outputs > 1:
            return np.asarray((score[:, 1] - score[:, 0]).double().cpu().numpy())
        return np.asarray(score[:, 0].double().cpu().numpy() - (snapshot.task.threshold or 0.0))

    def passes(self, snapshot: Snapshot) -> float:
        return 1.0 + self.side**2 / len(snapshot.data)


def boundary(score: np.ndarray, across: np.ndarray) -> np.ndarray:
    """For each row of scores, where along `across` they first change sign, interpolated; NaN if they never do.

    >>> boundary(np.array([[-1.0, 1.0, 2.0], [1.0, 1.0, 1.0]]), np.array([0.0, 1.0, 2.0])).tolist()
    [0.5, nan]
    """
    positive = score > 0
    change = positive[:, 1:] != positive[:, :-1]
    first = change.argmax(1)
    rows = np.arange(len(score))
    a, b = score[rows, first], score[rows, first + 1]
    with np.errstate(all="ignore"):
        found = across[first] + (across[first + 1] - across[first]) * a / (a - b)
    return np.where(change.any(1), found, np.nan)
