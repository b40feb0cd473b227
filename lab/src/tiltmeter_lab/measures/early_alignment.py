"""early-alignment: neurons of a small two-layer network first turn to few directions (Tsoy and Konstantinov, 2024)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
import torch
import xarray as xr

from tiltmeter.data.grouped import GroupedData
from tiltmeter.measures.seen_model import SeenModel
from tiltmeter.measures.snapshot import Snapshot
from tiltmeter.modules.networks import two_layer
from tiltmeter_lab.data.clusters import symmetric_clusters
from tiltmeter_lab.measures.shared.alignment_pull import Extremes, Pull
from tiltmeter_lab.measures.shared.neurons import Neurons, clusters, merged, merged_distance, neurons_of, prominent

_MEANINGS = {
    "alignment": "cosine of neurons with the nearest extreme of G of their sign, weighted by size",
    "directions": "clusters of prominent neurons by direction and sign",
    "prominent": "fewest neurons that hold most of the total size",
    "condensation": "share of the total size in the largest clusters",
    "network_scale": "sum of the sizes of all neurons",
    "merged_distance": "relative distance of outputs between the network and its largest clusters, merged",
}


@dataclass(frozen=True)
class EarlyAlignment:
    """How far the neurons of sum_j u_j relu(v_j . x) have turned to the extremes of G, and how few directions remain.

    >>> import tiltmeter as tm
    >>> import tiltmeter_lab as lab
    >>> _ = torch.manual_seed(0)
    >>> found = lab.measure(EarlyAlignment(), two_layer(2, 50), symmetric_clusters())
    >>> abs(float(found["alignment"] - found["alignment_null"])) < 0.2  # nothing is aligned before training
    True

    Neurons are weighted by their size norm(v_j) abs(u_j). The *prominent* ones are the fewest that hold a share
    `cumulative` of the total size. A *cluster* has the neurons with one sign of u around the largest of them, within an
    angle. This angle is `degrees` plus twice the angle by which gradient descent with step `lr` jumps around a kink of
    G: lr max abs(G), less as the slope of the loss decreases. The null values keep all sizes and turn each neuron at
    random.

    What it does not mean: a cosine near 1 says where neurons point, not that the network has learned. The loss has
    hardly changed by then. G is computed from the points given to the measure: pass the training points.

    Args:
        lr: Learning rate of the gradient descent, for the angle by which it jumps around kinks.
        degrees: Angle within which neurons belong to a cluster.
        cumulative: Share of the total size that the prominent neurons hold.
        clusters: Clusters kept for `condensation` and for the merged network.
        seed: Seed of the random directions of the null values.
        _known: What was computed for these points before; leave it out.
    """

    lr: float = 0.0
    degrees: float = 1.0
    cumulative: float = 0.95
    clusters: int = 4
    seed: int = 0
    title: ClassVar[str] = "Alignment of neurons with few directions before the loss falls"
    takes: ClassVar[str] = "A two-layer ReLU network without biases and with one output, two labels, a loss per point"
    exact: ClassVar[str] = "Extremes of G in two dimensions; in more, by ascent from random starts"
    absent: ClassVar[str] = "Large initialisation: the loss falls before neurons turn, and they stay spread out"
    _known: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.lr < 0 or not 0 < self.degrees < 90:
            raise ValueError(
                "`lr` should not be negative and `degrees` lie between 0 and 90. "
                f"Found lr = {self.lr}, degrees = {self.degrees}."
            )
        if not 0 < self.cumulative <= 1 or self.clusters < 1:
            raise ValueError(
                "`cumulative` should be a share above 0 and `clusters` at least 1. "
                f"Found cumulative = {self.cumulative}, clusters = {self.clusters}."
            )

    @classmethod
    def example(cls, seed: int) -> tuple[Self, torch.nn.Module, GroupedData]:
        """The symmetric clusters, and a tiny network that has not turned yet."""
        return cls(seed=seed), two_layer(2, 20), symmetric_clusters()

    def __call__(self, snapshot: Snapshot) -> dict[str, xr.DataArray]:
        seen = snapshot.model
        found = neurons_of(seen.module)
        extremes = self.extremes(snapshot)
        rng = np.random.default_rng(self.seed)
        drawn = rng.normal(size=found.v.shape)
        drawn *= np.linalg.norm(found.v, axis=1, keepdims=True) / np.linalg.norm(drawn, axis=1, keepdims=True)
        degrees = self.tolerance(extremes, _slope_left(snapshot))
        values = {**self._read(found, extremes, degrees), "network_scale": float(found.size.sum())}
        small = merged(seen.module, degrees, most=self.clusters)
        values["merged_distance"] = merged_distance(seen.module, small, seen.x)
        nulls = self._read(Neurons(drawn, found.u), extremes, degrees)
        words = {
            "network_scale": "value at initialisation",
            "merged_distance": "1, that of a network that is zero everywhere",
        }
        readings = {
            name: snapshot.reading(
                name,
                np.asarray(float(value)),
                {},
                long_name=_MEANINGS[name],
                better="neither",
                **({"null": words[name]} if name in words else {}),
            )
            for name, value in values.items()
        }
        for name, value in nulls.items():
            readings[f"{name}_null"] = snapshot.reading(
                f"{name}_null",
                np.asarray(float(value)),
                {},
                long_name=f"{_MEANINGS[name]}, each neuron turned at random",
                better="neither",
            )
        return readings

    def _read(self, found: Neurons, extremes: Extremes, degrees: float) -> dict[str, float]:
        share, sign, direction = found.share, np.sign(found.u), found.direction
        large = prominent(share, self.cumulative)
        members = clusters(direction, sign, share, degrees)
        held = np.sort(np.bincount(members, share))[::-1]
        return {
            "alignment": float(share @ extremes.cosine(direction, sign)),
            "directions": len(np.unique(clusters(direction[large], sign[large], share[large], degrees))),
            "prominent": len(large),
            "condensation": float(held[: self.clusters].sum()),
        }

    def extremes(self, snapshot: Snapshot) -> Extremes:
        """The extremes of G for the given points; computed once, because they do not depend on the network."""
        seen = snapshot.model
        if not snapshot.task.binary or snapshot.task.outputs != 1:
            raise ValueError("Early alignment is defined for two labels and one output.")
        if self._known.get("x") is not seen.x:
            x = seen.x.reshape(len(seen.x), -1).double().cpu().numpy()
            self._known["extremes"] = Pull(x, -_slopes(seen, torch.zeros(len(x)))).extremes(self.seed)
            self._known["x"] = seen.x
        extremes: Extremes = self._known["extremes"]
        return extremes

    def tolerance(self, extremes: Extremes, slope_left: float = 1.0) -> float:
        """The angle within which neurons count as one direction, in degrees; at most a right angle."""
        return min(90.0, self.degrees + 2.0 * float(np.degrees(self.lr * extremes.rate * slope_left)))

    def passes(self, snapshot: Snapshot) -> float:  # noqa: ARG002
        return 2.0


def _slopes(seen: SeenModel, score: torch.Tensor) -> np.ndarray:
    """The derivative of each point's loss at these scores."""
    with torch.enable_grad():
        at = score.detach().reshape(-1).double().requires_grad_()
        (slope,) = torch.autograd.grad(seen.losses(at, seen.y).sum(), at)
    return np.asarray(slope.cpu().numpy())


def _slope_left(snapshot: Snapshot) -> float:
    """The present slope of the loss, relative to the slope at scores of 0; at most 1."""
    seen = snapshot.model
    now, first = (np.abs(_slopes(seen, score)).mean() for score in (seen.scores(seen.x), torch.zeros(len(seen.x))))
    return float(min(1.0, now / first)) if first > 0 else 1.0
