"""Samples: points that stand for all training data, and what their halves say about the rest."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from tiltmeter.data.example_weights import example_weights
from tiltmeter.data.group_shares import share_of
from tiltmeter.data.grouped import GroupedData
from tiltmeter.losses import CrossEntropy, Loss
from tiltmeter.names import described
from tiltmeter.record import Trajectory

if TYPE_CHECKING:
    from tiltmeter.forecast.kernel.tangent import Tangent


def sampled(data: GroupedData, sample: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the places of the sample, in order, and the relative number of points that each represents.

    >>> data = GroupedData(np.zeros((1000, 1)), np.zeros(1000), ["a"] * 960 + ["b"] * 40)
    >>> places, stands_for = sampled(data, 200, seed=0)
    >>> (places >= 960).sum().item(), stands_for[-1].round(2).item(), stands_for.mean().round(12).item()
    (40, 0.2, 1.0)

    All points are taken if there are at most `sample`. Otherwise every group gets the same number, or all it has,
    because the forecast for a rare group needs as many points as any other. A point of a larger group then represents
    more points, so that averages over the sample estimate averages over the data. Every group gets at least two points,
    if it has them, so that the sample can be halved.
    """
    if len(data) <= sample:
        return np.arange(len(data)), np.ones(len(data))
    sizes = np.bincount(data.codes, minlength=len(data.groups))
    least = np.minimum(sizes, int(sample / len(sizes)))
    wanted = np.maximum(least, sample * sizes / len(data))
    spare = wanted - least
    wanted = least + spare * max(0.0, (sample - least.sum()) / max(spare.sum(), 1e-300))
    counts = np.minimum(sizes, np.maximum(2, np.floor(wanted + 1e-9).astype(int)))
    rng = np.random.default_rng(seed)
    chosen = [rng.permutation(np.flatnonzero(data.codes == code))[:count] for code, count in enumerate(counts)]
    places = np.sort(np.concatenate(chosen))
    stands_for = (sizes / len(data) * len(places) / np.maximum(counts, 1))[data.codes[places]]
    return places, stands_for


def masses(
    sample: GroupedData,
    stands_for: np.ndarray,
    shares: np.ndarray,
    weights: Mapping[Any, float] | None,
    proportions: Mapping[Any, float] | None,
) -> np.ndarray:
    """Return the weight of every point of the sample in the mean gradient, given group weights and proportions."""
    found = example_weights(sample, weights)
    mass = stands_for if found is None else stands_for * found
    if not mass.any():
        raise ValueError("`weights` should leave something to train on. Found 0 for every point.")
    if proportions is None:
        return mass
    wanted = share_of(sample, proportions)
    empty = (shares == 0) & (wanted > 0)
    if empty.any():
        group = sample.groups[int(np.argmax(empty))]
        raise ValueError(f"`proportions` asks for group {group!r}, of which the training data have no point.")
    return np.asarray(mass * (wanted / np.where(shares > 0, shares, 1.0))[sample.codes])


def group_losses(
    outputs: np.ndarray, goal: np.ndarray, data: GroupedData, loss: Loss | CrossEntropy
) -> tuple[np.ndarray, np.ndarray]:
    """Mean loss and standard error of every group at every step, (steps, groups), from (steps, points, outputs).

    >>> from tiltmeter.losses import Square
    >>> data = GroupedData(np.zeros((60, 1)), np.ones(60), [0, 1] * 30)
    >>> group_losses(np.zeros((1, 60, 1)), np.ones((60, 1)), data, Square())[0].round(12).tolist()
    [[0.5, 0.5]]
    """
    values = point_losses(outputs, goal, loss)
    mass = np.ones(len(data)) if data.weights is None else data.weights
    member = np.zeros((len(data), len(data.groups)))
    member[np.arange(len(data)), data.codes] = mass
    total = member.sum(0)
    with np.errstate(all="ignore"):
        mean = values @ (member / total)
        spread = (values - mean[:, data.codes]) ** 2 @ (member**2)
        points = np.maximum(1, (member > 0).sum(0))
        error = np.sqrt(spread * points / (points - 1)) / total
    return mean, error


def point_losses(outputs: np.ndarray, goal: np.ndarray, loss: Any) -> np.ndarray:
    """Return the loss of every point, (..., points), from (..., points, outputs)."""
    with np.errstate(all="ignore"):
        if isinstance(loss, CrossEntropy):
            top = outputs.max(-1)
            return np.asarray(top + np.log(np.exp(outputs - top[..., None]).sum(-1)) - (outputs * goal).sum(-1))
        return np.asarray(loss.value(outputs, goal).sum(-1))


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
    shares = np.asarray([left_out.get(group, 0.0) for group in tangent.held_out.groups])
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
