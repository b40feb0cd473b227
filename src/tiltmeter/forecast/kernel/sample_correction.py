"""Sample correction: estimate the forecast for all training data from the sample and its two halves."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from tiltmeter.names import described
from tiltmeter.record import Trajectory

if TYPE_CHECKING:
    from tiltmeter.forecast.kernel.tangent import Tangent

#: Curves that are shares: corrected, they stay between 0 and 1.
SHARES = frozenset({"error", "positive_rate", "tpr", "fpr", "ppv", "confidence", "class_accuracy"})
#: Curves that cannot be negative: corrected, they stay above 0.
SQUARES = frozenset({"loss", "squared_error"})


def half_samples(tangent: Tangent) -> tuple[Tangent, ...]:
    """Return two random halves of the sample, group by group; none if the sample holds all points."""
    if not any(unseen(tangent).values()):
        return ()
    codes = tangent.sample.codes
    rng = np.random.default_rng(1)
    chosen: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
    for code in np.unique(codes):
        members = rng.permutation(np.flatnonzero(codes == code))
        middle = len(members) // 2
        # A group of one point is in both halves, so that neither lacks a group.
        chosen[0].append(members[: max(1, middle)])
        chosen[1].append(members[middle:])
    return tuple(_part(tangent, np.sort(np.concatenate(one))) for one in chosen)


def unseen(tangent: Tangent) -> dict[Hashable, float]:
    """Return the share of every group's training points that the sample leaves out."""
    taken = np.bincount(tangent.sample.codes, minlength=len(tangent.sizes))
    left_out = 1.0 - taken / np.maximum(1, tangent.sizes)
    return dict(zip(tangent.sample.groups, left_out.tolist(), strict=True))


def beyond_sample(whole: np.ndarray, parts: Sequence[np.ndarray], left_out: np.ndarray | float) -> np.ndarray:
    """Estimate the value for all training data from that of the sample and those of its halves.

    >>> size = np.array([100.0, 50.0, 50.0])
    >>> whole, *parts = 0.3 + 2.0 / size
    >>> beyond_sample(whole, parts, 1.0).round(12).item(), beyond_sample(whole, parts, 0.5).round(12).item()
    (0.3, 0.31)

    The error due to a finite sample falls as 1 / points, so it is twice as large for the halves as for the whole (the
    jackknife of Quenouille and Tukey). `left_out` is the share of the points that the sample leaves out.
    """
    if not parts:
        return whole
    with np.errstate(invalid="ignore", over="ignore"):
        step = left_out * (whole - sum(parts) / len(parts))
    return np.asarray(whole + np.where(np.isfinite(step), step, 0.0))


def corrected_losses(tangent: Tangent, found: Iterable[np.ndarray]) -> np.ndarray:
    """Return losses (steps, groups) for all training data, from those of the sample and then its halves."""
    whole, *parts = found
    left_out = unseen(tangent)
    shares = np.asarray([left_out.get(group, 0.0) for group in tangent.look.groups])
    return np.asarray(np.maximum(0.0, beyond_sample(whole, parts, shares)))


def corrected(told: Trajectory, parts: Sequence[Trajectory], left_out: Mapping[Hashable, float]) -> Trajectory:
    """Return the curves of a forecast with that correction; standard errors (of the held-out points) are kept.

    Curve `sample_error` is half the difference of the losses that the two halves give: how much they depend on which
    points were sampled.
    """
    if not parts:
        return told
    found: dict[str, Any] = {}
    for name, curve in told.items():
        if name.endswith("_se"):
            found[name] = curve
            continue
        shares = xr.DataArray(
            [left_out.get(label.item(), 0.0) for label in curve.coords["group"]], coords={"group": curve["group"]}
        )
        others = [part[name].reindex(time=curve["time"]).transpose(*curve.dims).values for part in parts]
        values = beyond_sample(curve.values, others, shares.broadcast_like(curve).transpose(*curve.dims).values)
        if name in SHARES or name in SQUARES:
            values = np.clip(values, 0.0, 1.0 if name in SHARES else None)
        found[name] = curve.copy(data=values)
    if "loss" in told:
        one, other = (part["loss"].reindex(time=told["loss"]["time"]) for part in parts)
        found["sample_error"] = described("sample_error", (one - other) / 2.0)
    return Trajectory(found, told.clock, told.origin, told.diverged)


def _part(tangent: Tangent, places: np.ndarray) -> Tangent:
    """Return the tangent of only these points of the sample."""
    codes = tangent.sample.codes
    count = tangent.columns if tangent.outputs == "full" else 1
    rows = (places[:, None] * count + np.arange(count)).ravel()
    # Halves of groups of odd size differ by one point: every group keeps its share.
    whole = np.bincount(codes, tangent.stands_for) / tangent.stands_for.sum()
    stands_for = tangent.stands_for[places]
    part = np.bincount(codes[places], stands_for, len(whole)) / stands_for.sum()
    return replace(
        tangent,
        sample=tangent.sample.take(places),
        stands_for=stands_for * (whole / np.where(part > 0, part, 1.0))[codes[places]],
        kernel=tangent.kernel[np.ix_(rows, rows)],
        cross=tangent.cross[:, rows],
        start_sample=tangent.start_sample[places],
        _found={},
        _part_of=(tangent, rows),
    )
