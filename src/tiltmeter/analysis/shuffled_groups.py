"""shuffled_groups: how large a difference becomes when groups are dealt at random to the points that count."""

from __future__ import annotations

import numpy as np

from tiltmeter.analysis.kept_points import kept_points
from tiltmeter.record.trajectory import Trajectory

#: Random deals.
DEALS = 999


def shuffled_groups(trajectory: Trajectory, curve: str, share: float = 0.95) -> float | None:
    """What this share of random deals of two groups stays below at the last look; None where it cannot be asked.

    >>> import xarray as xr
    >>> from tiltmeter.record import Origin
    >>> coords = {"time": [9], "group": ("point", np.repeat(["a", "b"], 200))}
    >>> losses = np.random.default_rng(0).normal(size=(1, 400))
    >>> kept = xr.DataArray(losses, dims=("time", "point"), coords=coords)
    >>> found = shuffled_groups(Trajectory({}, "step", Origin("training"), points={"loss": kept}), "loss")
    >>> bool(abs(found - 1.96 * 0.1) < 0.02)  # two standard errors of a difference
    True

    Points keep their loss or decision; for a true-positive rate groups are dealt among the positives. Several seeds are
    averaged point by point. It is a control of one number, not a verdict over all looks: see `standing`.
    """
    kept = kept_points(trajectory)
    chosen = () if kept is None else kept.named([curve])
    if kept is None or not chosen or len(kept.groups) != 2:
        return None
    one = chosen[0].averaged if chosen[0].values.ndim == 3 else chosen[0]
    counted = np.full(len(kept.codes), True) if one.where is None else one.where
    values, first = one.values[-1, counted].astype(float), kept.codes[counted] == 0
    size, total = int(first.sum()), len(values)
    if not 0 < size < total:
        return None
    rng = np.random.default_rng(13)
    gaps = np.empty(DEALS)
    whole = values.sum()
    for deal in range(DEALS):
        mine = rng.permutation(values)[:size].sum()
        gaps[deal] = mine / size - (whole - mine) / (total - size)
    return float(np.quantile(np.abs(gaps), share))
