"""availability: reliance on each of two latent features, compared with the optimum (Hermann et al., ICLR 2024)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
import torch
import xarray as xr

from tiltmeter.data.grouped import GroupedData
from tiltmeter.measures.snapshot import Snapshot
from tiltmeter.modules.networks import mlp
from tiltmeter_lab.data.latents import Latents

#: The features of `Latents`, in order.
FEATURES = ("shortcut", "core")


@dataclass(frozen=True)
class Availability:
    """How often the decision agrees with the sign of each latent feature, over a square of latent values.

    >>> import tiltmeter as tm
    >>> import tiltmeter_lab as lab
    >>> latents = Latents((0.85, 0.9), (10.0, 1.0))
    >>> best = torch.nn.Linear(50, 1, bias=False)
    >>> weight = (latents.means / np.asarray(latents.availability)) @ latents.frame
    >>> best.weight.data = torch.as_tensor(weight[None], dtype=torch.float32)
    >>> round(float(lab.measure(Availability(latents), best, latents.sample(400))["availability_bias"]), 3)
    0.0

    The square from -`extent` to `extent` is covered by a grid of `side` x `side` points, which are embedded and given
    to the model. The null value is that of the optimal decision sign(mu . z), which does not depend on availability.
    `availability_bias` is (reliance on the shortcut - reliance on the core) of the model, minus the same for the
    optimum. It is positive if the model uses the more available feature more than it should.

    What it does not mean: it does not tell *why*. A linear model trained for too few steps shows a large bias that
    vanishes when it converges. The square is not the distribution of the data: rare conflicts count as much as anything
    else.

    Args:
        latents: Description that made the data; it must be given.
        extent: Half the side of the square of latent values.
        side: Points along one side of the grid.
    """

    latents: Latents | None = None
    extent: float = 3.0
    side: int = 60
    title: ClassVar[str] = "Reliance on an easily available and on a predictive feature, compared with the optimum"
    takes: ClassVar[str] = "Points made by data.synthetic.latents.Latents, and a model that decides between two labels"
    exact: ClassVar[str] = "On the grid; its side is even, so that no latent feature is 0"
    absent: ClassVar[str] = "A converged linear model, whatever the availability"

    def __post_init__(self) -> None:
        if not self.extent > 0 or self.side < 2 or self.side % 2:
            raise ValueError(
                "`extent` should be positive and `side` even, so that no point lies on an axis. "
                f"Found extent = {self.extent}, side = {self.side}."
            )

    @classmethod
    def example(cls, seed: int) -> tuple[Self, torch.nn.Module, GroupedData]:
        """Features of equal availability, and an untrained network."""
        latents = Latents(d=10, seed=seed)
        return cls(latents, side=20), mlp(10, (8,), 1), latents.sample(400, seed)

    def __call__(self, snapshot: Snapshot) -> dict[str, xr.DataArray]:
        if self.latents is None:
            raise ValueError("`latents` should describe the data: pass Availability(Latents(...)). Found None.")
        if not snapshot.task.binary:
            raise ValueError("Availability is measured on a decision between two labels.")
        line = np.linspace(-self.extent, self.extent, self.side)
        z = np.stack(np.meshgrid(line, line, indexing="ij"), axis=-1).reshape(-1, 2)
        seen = snapshot.model
        points = torch.as_tensor(self.latents.embed(z), dtype=seen.x.dtype).reshape(-1, *seen.x.shape[1:])
        score = seen.scores(points)
        positive = seen.decide(score) == snapshot.task.positive
        reliance = agreement(positive, z)
        optimum = agreement(z @ self.latents.means > 0, z)
        bias = (reliance[0] - reliance[1]) - (optimum[0] - optimum[1])
        feature = {"feature": np.asarray(FEATURES)}
        return {
            "reliance": snapshot.reading(
                "reliance",
                reliance,
                feature,
                long_name="share of the square where the decision follows this feature",
                better="neither",
            ),
            "reliance_null": snapshot.reading(
                "reliance_null", optimum, feature, long_name="the same for the optimal decision", better="neither"
            ),
            "availability_bias": snapshot.reading(
                "availability_bias",
                np.asarray(bias),
                {},
                long_name="reliance on the shortcut minus that on the core, compared with the optimum",
                better="neither",
                null="0, that of the optimal decision",
            ),
        }

    def passes(self, snapshot: Snapshot) -> float:
        return self.side**2 / len(snapshot.data)


def agreement(positive: np.ndarray, z: np.ndarray) -> np.ndarray:
    """How often a decision agrees with the sign of each column.

    >>> agreement(np.array([True, False]), np.array([[1.0, 1.0], [-1.0, 1.0]])).tolist()
    [1.0, 0.5]
    """
    return np.asarray((positive[:, None] == (z > 0)).mean(0))
