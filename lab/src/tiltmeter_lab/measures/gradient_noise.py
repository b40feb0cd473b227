"""gradient-noise: how many points a batch needs before its gradient is more signal than noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
import xarray as xr

from tiltmeter.measures.snapshot import Snapshot
from tiltmeter.modules.tangent.gradient import Losses, count_of, gradient, trained
from tiltmeter_lab.measures.shared.risk import point_losses


@dataclass(frozen=True)
class GradientNoise:
    """The noise scale tr(Sigma) / G . G of all points and of each group (McCandlish et al., 2018).

    >>> import tiltmeter as tm, torch
    >>> import tiltmeter_lab as lab
    >>> model = torch.nn.Linear(1, 1, bias=False)
    >>> model.weight.data = torch.zeros(1, 1)
    >>> data = tm.GroupedData([[1.0]] * 120, [1] * 80 + [-1] * 40, ["all"] * 120)  # gradients of -1 and +1
    >>> round(float(lab.measure(GradientNoise(small=1), model, data, tm.Square())["gradient_noise_scale"]), 1)
    8.6

    G is the mean gradient of one point and Sigma its covariance, both for the population from which the points were
    drawn. They are estimated without bias from the squared lengths of the gradients of small batches, of `small` points
    each (half the group if it has fewer than two batches), and of all n points: E (g_b . g_b) = G . G + tr(Sigma) / b.
    `small=1` gives the estimate with the smallest variance; the default needs fewer calls. A scale is NaN if the
    estimate of G . G is not positive: so few points do not show a signal above the noise. A group of one point has no
    scale, and is left out of all.

    `gradient_noise_scale`, `gradient_signal` (G . G) and `gradient_noise` (tr Sigma) are for all points; the curves for
    each group are called `group_...`. The null value is the same for labels that are shuffled among all points, so that
    they do not depend on the inputs.

    What it does not mean: it is not a batch size to train with. It is roughly the size above which a larger batch no
    longer pays off, for plain SGD at this moment, and it grows during training. A larger scale of a group means that
    its gradient is known less precisely from the same number of points, not that the group is treated worse.

    Args:
        small: Points in a small batch; 1 has the smallest variance, more need fewer calls.
        seed: Seed of the batches and of the shuffled labels.
    """

    small: int = 8
    seed: int = 0

    title: ClassVar[str] = "Gradient-noise scale, of all points and of each group"
    takes: ClassVar[str] = "a loss of each point; any model with trained parameters; two points of a group"
    exact: ClassVar[str] = "unbiased in signal and noise (not in their ratio); smallest variance with small=1"
    absent: ClassVar[str] = "points that are all the same: no noise, scale 0"

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
                    ("gradient_noise_scale", "batch size at which gradient noise equals its signal"),
                )
            ):
                text = {"long_name": meaning if not end else f"{meaning}, labels shuffled", "better": "neither"}
                found[name + end] = snapshot.reading(name + end, whole[place], {}, **text)
                key = f"group_{name}{end}"
                found[key] = snapshot.reading(key, each[:, place], groups, **text)
        return found

    def passes(self, snapshot: Snapshot) -> float:  # noqa: ARG002
        """Forward and backward, with the labels and with shuffled labels."""
        return 6.0

    def _all(self, snapshot: Snapshot, losses: Losses, order: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(signal, noise, scale) of all points, and of each group in a row; every point is used once."""
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
    """G . G and tr(Sigma) from the mean squared gradient lengths of small batches and of the large batch that they
    form.

    >>> two_sizes(1.0 + 8.0 / 2, 2, 1.0 + 8.0 / 100, 100)
    (1.0, 8.0)
    """
    noise = (small_square - large_square) / (1.0 / small - 1.0 / large)
    return large_square - noise / large, noise


def _ratio(noise: Any, signal: Any) -> Any:
    with np.errstate(all="ignore"):
        return np.where(np.asarray(signal) > 0, noise / signal, np.nan)
