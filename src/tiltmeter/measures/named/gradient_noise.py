"""gradient-noise: how many points a batch needs before its gradient is signal rather than noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
import xarray as xr

from tiltmeter.measures.shared.point_losses import point_losses
from tiltmeter.measures.snapshot import Snapshot
from tiltmeter.tangent.gradient import Losses, count_of, gradient, trained


@dataclass(frozen=True)
class GradientNoise:
    """The noise scale tr(Sigma) / G . G of all points and of each group (McCandlish et al., 2018).

    G is the mean gradient of one point and Sigma its covariance, both of the population that the points were drawn
    from. They are estimated without bias from the squared lengths of the gradients of small batches, of `small` points
    each (half the group where it is smaller than two), and of all n points: E (g_b . g_b) = G . G + tr(Sigma) / b. With
    `small=1` nothing better can be had from these points; the default needs fewer calls. A scale is NaN where the
    estimate of G . G is not positive (the signal is lost in the noise of so few points); a group of one point has
    none, and is left out of all.

    `gradient_noise_scale`, `gradient_signal` (G . G) and `gradient_noise` (tr Sigma) are of all points; those of each
    group are called `group_...`. The null is the same for labels that are shuffled among all points: what is left has
    nothing to do with inputs.

    What it does not mean: not a batch size to train with. It is the size at which a larger batch begins not to pay for
    plain SGD at this moment, and it grows during training. A larger scale of a group says that its gradient is known
    worse from as many points, not that it is treated worse.
    """

    small: int = 8
    seed: int = 0

    title: ClassVar[str] = "Gradient-noise scale, of all points and of each group"
    takes: ClassVar[str] = "a loss of each point; any model with trained parameters; two points of a group"
    exact: ClassVar[str] = "unbiased in signal and noise (not in their ratio); least varying with small=1"
    absent: ClassVar[str] = "points that are all alike: no noise, scale 0"

    def __post_init__(self) -> None:
        if self.small < 1:
            raise ValueError(f"`small` should be at least 1. Found small = {self.small}.")

    def __call__(self, snapshot: Snapshot) -> dict[str, xr.DataArray]:
        data, seen = snapshot.data, snapshot.model
        if max(data.sizes.values()) < 2:
            raise ValueError("Gradient noise needs two points of some group. Found no group with more than one.")
        order = np.random.default_rng(self.seed).permutation(len(data))
        found: dict[str, xr.DataArray] = {}
        for end, y in (("", None), ("_null", seen.y[torch.as_tensor(order)])):
            whole, each = self._all(snapshot, point_losses(seen, y), order)
            groups = {"group": data.group_labels}
            for place, (name, meaning) in enumerate(
                (
                    ("gradient_signal", "squared length of the mean gradient"),
                    ("gradient_noise", "variance of the gradient of one point"),
                    ("gradient_noise_scale", "points at which gradient noise equals its signal"),
                )
            ):
                text = {"long_name": meaning if not end else f"{meaning}, labels shuffled", "better": "neither"}
                found[name + end] = snapshot.reading(name + end, whole[place], {}, **text)
                key = f"group_{name}{end}"
                found[key] = snapshot.reading(key, each[:, place], groups, **text)
        return found

    def passes(self, snapshot: Snapshot) -> float:  # noqa: ARG002
        """Forward and backward, with the labels and with shuffled ones."""
        return 6.0

    def _all(self, snapshot: Snapshot, losses: Losses, order: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(signal, noise, scale) of all points, and of each group in a row; every point is passed once."""
        parameters, codes = trained(snapshot.model.module), snapshot.data.codes
        groups = len(snapshot.data.groups)
        signal, noise = np.full(groups, np.nan), np.full(groups, np.nan)
        means: list[np.ndarray] = []
        for group in range(groups):
            members = order[codes[order] == group]
            small = max(1, min(self.small, len(members) // 2))
            kept = members[: len(members) // small * small].reshape(-1, small)
            mean, lengths = np.zeros(count_of(parameters)), []
            for part in kept:
                found = gradient(losses, parameters, torch.as_tensor(part)).cpu().double().numpy()
                mean += found / len(kept)
                lengths.append(found @ found)
            means.append(mean)
            if len(kept) > 1:
                signal[group], noise[group] = two_sizes(float(np.mean(lengths)), small, float(mean @ mean), kept.size)
        share = np.bincount(codes, minlength=groups) * np.isfinite(signal)
        alone = np.stack([signal, noise, _ratio(noise, signal)], 1)
        if not share.any():  # a model that diverged, or no group with two batches
            return np.full(3, np.nan), alone
        share = share / share.sum()
        known = share > 0
        # Means of different groups are independent: their products need no correction.
        both = np.stack(means) @ np.stack(means).T
        np.fill_diagonal(both, np.where(known, signal, 0.0))
        whole = share @ both @ share
        spread = share[known] @ (noise + signal)[known] - whole
        return np.array([whole, spread, _ratio(spread, whole)]), alone


def two_sizes(small_square: float, small: int, large_square: float, large: int) -> tuple[float, float]:
    """G . G and tr(Sigma) from mean squared lengths of gradients of small batches and of the large one they make up.

    >>> two_sizes(1.0 + 8.0 / 2, 2, 1.0 + 8.0 / 100, 100)
    (1.0, 8.0)
    """
    noise = (small_square - large_square) / (1.0 / small - 1.0 / large)
    return large_square - noise / large, noise


def _ratio(noise: Any, signal: Any) -> Any:
    with np.errstate(all="ignore"):
        return np.where(np.asarray(signal) > 0, noise / signal, np.nan)
