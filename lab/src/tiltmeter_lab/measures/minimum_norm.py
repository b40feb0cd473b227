"""minimum-norm: how far a linear model is from the smallest weights that fit the points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
import xarray as xr
from torch import nn

from tiltmeter.data.grouped import GroupedData
from tiltmeter.measures.snapshot import Snapshot
from tiltmeter.modules.networks import compact_weight
from tiltmeter_lab.measures.measure import few_digits


@dataclass(frozen=True)
class MinimumNorm:
    """Distance of a linear model, or of a product of linear layers, from the minimum-norm least-squares solution.

    >>> import torch
    >>> import tiltmeter as tm
    >>> import tiltmeter_lab as lab
    >>> data = tm.GroupedData([[1.0, 0.0, 0.0], [0.0, 2.0, 0.0]] * 30, [1.0, -1.0] * 30, ["all"] * 60)
    >>> model = nn.Linear(3, 1, bias=False)
    >>> model.weight.data = torch.tensor([[1.0, -0.5, 1.0]])  # fits, with a part that no point sees
    >>> found = lab.measure(MinimumNorm(), model, data, tm.Square())
    >>> round(float(found["minimum_norm_distance"]), 3), round(float(found["off_span"]), 3)
    (0.894, 0.444)

    Among all weights that fit the points best, w* = X^+ y has the smallest norm. Gradient descent and SGD on the
    squared loss that start at zero never leave the span of the points, and end at w*; a part of the start that lies off
    the span stays for ever. `minimum_norm_distance` is norm(w - w*) / norm(w*); a model of zeros has the value 1.
    `off_span` is the share of the squared weights that lies off the span of the points; a random direction has the
    value 1 - rank / d (`off_span_null`).

    What it does not mean: a small distance is *not* good generalisation, and a large one during training may only mean
    that training is not over. With other losses the solution of smallest norm is another one.

    Args:
        fit: Points of the least-squares solution, the training points; None: the points looked at.
    """

    fit: GroupedData | None = None

    title: ClassVar[str] = (
        "Distance of a linear model from the minimum-norm solution, and weights off the span of points"
    )
    takes: ClassVar[str] = "Linear layers without bias and one output, two labels or numbers as targets"
    exact: ClassVar[str] = "Always: pseudo-inverse of the points"
    absent: ClassVar[str] = "More points than dimensions: one solution only, and nothing lies off the span"

    def __call__(self, snapshot: Snapshot) -> dict[str, xr.DataArray]:
        weight = compact_weight(snapshot.model.module).detach().double().cpu().numpy()
        if len(weight) != 1:
            raise ValueError(f"MinimumNorm needs a model with one output. Found {len(weight)} outputs.")
        points = snapshot.data if self.fit is None else self.fit
        x = np.asarray(points.x, dtype=float).reshape(len(points), -1)
        if x.shape[1] != weight.shape[1]:
            raise ValueError(f"`fit` should have {weight.shape[1]} features, as the model. Found {x.shape[1]}.")
        w = weight[0]
        _, values, right = np.linalg.svd(x, full_matrices=False)
        span = right[values > values[0] * max(x.shape) * np.finfo(float).eps]
        best = np.linalg.lstsq(x, np.asarray(points.y, dtype=float), rcond=None)[0]
        size, norm = float(w @ w), float(np.linalg.norm(best))
        off = w - span.T @ (span @ w)
        found = {
            "minimum_norm_distance": (
                float(np.linalg.norm(w - best)) / norm if norm > 0 else np.nan,
                "distance from the minimum-norm solution over its norm",
                {"null": "1: a model of zeros"},
            ),
            "off_span": (
                float(off @ off) / size if size > 0 else 0.0,
                "share of weights off the span of the points",
                {},
            ),
            "off_span_null": (1.0 - len(span) / len(w), "the same for a random direction", {}),
        }
        return {
            name: snapshot.reading(name, np.asarray(value), {}, long_name=meaning, better="neither", **attrs)
            for name, (value, meaning, attrs) in found.items()
        }

    @classmethod
    def example(cls, seed: int = 0) -> tuple[Self, nn.Module, GroupedData]:
        """A linear model with more pixels than points."""
        digits = few_digits(seed).take(range(30))
        members = [digits.groups[code] for code in digits.codes]
        return cls(), nn.Linear(64, 1, bias=False), GroupedData(digits.x, np.where(digits.y >= 5, 1.0, -1.0), members)
