"""aggregator-bias: which group's gradient is lost when gradients of points are clipped, or their median is taken."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
import xarray as xr

from tiltmeter.measures.snapshot import Snapshot
from tiltmeter.modules.tangent.gradient import gradient, trained
from tiltmeter_lab.measures.shared.risk import point_losses

AGGREGATORS = ("clipped", "median")
#: Random groups whose mean is the null value: that of one alone scatters as much as the measure.
PERMUTATIONS = 200


@dataclass(frozen=True)
class AggregatorBias:
    """`aggregator_bias` (aggregator, group): what clipping or the median removes from the mean gradient, along the
    gradient of each group.

    >>> import tiltmeter as tm, torch
    >>> import tiltmeter_lab as lab
    >>> x = [[1.0], [-1.0]] * 45 + [[10.0], [-10.0]] * 15  # the gradients of "b" are long
    >>> data = tm.GroupedData(x, [1, -1] * 60, ["a"] * 90 + ["b"] * 30)
    >>> model = torch.nn.Linear(1, 1, bias=False)
    >>> model.weight.data = torch.zeros(1, 1)
    >>> lab.measure(AggregatorBias(), model, data, tm.Square())["aggregator_bias"].sel(aggregator="clipped").values
    array([0.69..., 0.69...])

    With g_i the gradient of a point, G their mean and g_a that of group a, it is (G - A) . g_a / (`|G| |g_a|`), where A
    is the mean of gradients clipped to their median length, or the median of every coordinate. Above 0, a step with A
    helps the group less than one with G, relative to the length of G. Gradients are those of at most `points`
    held-out points, evenly chosen; they are held together, so large models need few points.

    The null value is the mean over 200 random groups of the same sizes.

    What it does not mean: it is *not* the change of a group's loss, and says nothing of the optimiser behind the
    aggregator.

    Args:
        points: Most held-out points whose gradients are held together; large models need few.
        seed: Seed of the random groups of the null value.
    """

    points: int = 96
    seed: int = 0

    title: ClassVar[str] = "What clipped or median gradients remove along each group's gradient"
    takes: ClassVar[str] = "a loss of each point; any model with trainable parameters"
    exact: ClassVar[str] = "always, for the points chosen"
    absent: ClassVar[str] = "all gradients alike: nothing is removed; random groups: the same for all"

    def __post_init__(self) -> None:
        if self.points < 2:
            raise ValueError(f"`points` should be at least 2. Found points = {self.points}.")

    def __call__(self, snapshot: Snapshot) -> dict[str, xr.DataArray]:
        seen, data = snapshot.model, snapshot.data
        losses, parameters = point_losses(seen), trained(seen.module)
        chosen = np.unique(np.linspace(0, len(data) - 1, min(self.points, len(data))).round().astype(np.int64))
        rows = torch.stack([gradient(losses, parameters, torch.as_tensor([place]), 1) for place in chosen]).cpu()
        each, codes = rows.double().cpu().numpy(), data.codes[chosen]
        random = np.random.default_rng(self.seed).permuted(np.tile(codes, (PERMUTATIONS, 1)), axis=1)
        coords = {"aggregator": np.array(AGGREGATORS, dtype=object), "group": data.group_labels}
        found = {}
        for name, of in (("aggregator_bias", codes[None]), ("aggregator_bias_null", random)):
            meaning = "part of the mean step that an aggregator removes along a group's gradient"
            values = removed(each, of, len(data.groups)).mean(0)
            found[name] = snapshot.reading(name, values, coords, long_name=meaning, better="neither")
        return found

    def passes(self, snapshot: Snapshot) -> float:
        """Forward and backward for the points chosen, one at a time."""
        return 3.0 * min(self.points, len(snapshot.data)) / len(snapshot.data)


def removed(each: np.ndarray, codes: np.ndarray, groups: int) -> np.ndarray:
    """(..., aggregator, group): (G - A) . g_a / (|G| |g_a|) for gradients of points (points, parameters).

    `codes` (..., points) says which group each point belongs to, once or in several ways.
    """
    mean, lengths = each.mean(0), np.linalg.norm(each, axis=1)
    limit = np.median(lengths)
    member = (codes[..., None, :] == np.arange(groups)[:, None]).astype(float)
    with np.errstate(all="ignore"):  # a group without points, or gradients of length zero: NaN
        clipped = (each * np.where(lengths > limit, limit / lengths, 1.0)[:, None]).mean(0)
        along = each @ np.stack([mean - clipped, mean - np.median(each, axis=0)], 1)
        member /= member.sum(-1, keepdims=True)
        # Products of all pairs of points serve every way to make groups of them.
        sizes = np.sqrt(np.maximum(((member @ (each @ each.T)) * member).sum(-1), 0.0)) * np.linalg.norm(mean)
        cosines = (member @ along) / np.where(sizes > 0, sizes, np.nan)[..., None]
    return np.asarray(np.swapaxes(cosines, -1, -2))
