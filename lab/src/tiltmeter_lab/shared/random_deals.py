"""Random deals: random groups of the points of trained networks, and what two rules report about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import xarray as xr

from tiltmeter.leaders.bands import Band, Limits
from tiltmeter.leaders.points import PointCurve, pairs

#: The five curves that are tested, and "any" for all of them together.
CURVES = ("loss", "error", "positive_rate", "tpr", "fpr")
ANY = "any"


def five_curves(loss: np.ndarray, decided: np.ndarray, positive: np.ndarray) -> list[PointCurve]:
    """Return losses and decisions (evaluations, points) as the five curves."""
    return [
        PointCurve("loss", loss),
        PointCurve("error", decided != positive),
        PointCurve("positive_rate", decided),
        PointCurve("tpr", decided, positive),
        PointCurve("fpr", decided, ~positive),
    ]


def flipped(
    loss: np.ndarray, decided: np.ndarray, positive: np.ndarray, where: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Flip some labels: the logistic loss gives the score, and so the loss for the other label.

    >>> flipped(np.array([[np.log(2.0)]]), np.array([[True]]), np.array([True]), np.array([True]))[0].round(3)
    array([[0.693]], dtype=float32)
    """
    margin = -np.log(np.expm1(np.maximum(loss.astype(np.float64), 1e-7)))
    other = np.logaddexp(0.0, margin)
    return np.where(where, other, loss).astype(np.float32), decided, positive ^ where


def judged(curves: Sequence[PointCurve], codes: np.ndarray, draws: int, permutations: int) -> xr.Dataset:
    """Return whether a leader and a crossing are named, by bands and evaluation by evaluation (two standard errors).

    Each curve is tested alone, and all together ("any"). `largest` is the largest difference in standard errors.
    """
    names = [curve.name for curve in curves]
    limits = Limits(curves, codes, pairs(2), draws, permutations)
    together = limits.of(names, 0.05)
    alone = {name: limits.of([name], 0.05)[name] for name in names}
    ratios = {curve.name: standardised(curve, codes) for curve in curves}
    shown = {name: band.shown[:, 0] for name, band in alone.items()}
    jointly = [band.shown[:, 0] for band in together.values()]
    decided = {name: np.where(np.abs(ratio) > 2.0, np.sign(ratio), 0.0) for name, ratio in ratios.items()}
    rows = {
        "named": [
            [*(signs.any() for signs in shown.values()), any(signs.any() for signs in jointly)],
            [*(signs.any() for signs in decided.values()), any(signs.any() for signs in decided.values())],
        ],
        "crossed": [
            [*(crosses(signs) for signs in shown.values()), any(crosses(signs) for signs in jointly)],
            [*(crosses(signs) for signs in decided.values()), any(crosses(signs) for signs in decided.values())],
        ],
    }
    coords = {"rule": ["bands", "evaluation by evaluation"], "curve": [*names, ANY]}
    found = {
        name: xr.DataArray(np.array(row, dtype=float), dims=("rule", "curve"), coords=coords)
        for name, row in rows.items()
    }
    sizes = [float(np.abs(ratio).max()) for ratio in ratios.values()]
    found["largest"] = xr.DataArray([*sizes, max(sizes)], dims="curve", coords={"curve": [*names, ANY]})
    return xr.Dataset(found)


def standardised(curve: PointCurve, codes: np.ndarray) -> np.ndarray:
    """Return the difference of the two groups over its standard error at every evaluation, as a run records them."""
    means, variances = [], []
    for group in (0, 1):
        own = codes == group if curve.where is None else (codes == group) & curve.where
        values = curve.values[:, own]
        count = max(values.shape[1], 1)
        mean = values.mean(1, dtype=np.float64) if values.shape[1] else np.zeros(curve.evaluations)
        means.append(mean)
        if curve.rate:
            middle = (mean * count + 2.0) / (count + 4.0)
            variances.append(middle * (1.0 - middle) / (count + 4.0))
        else:
            variances.append(values.var(1, dtype=np.float64, ddof=1) / count)
    return np.asarray((means[0] - means[1]) / np.sqrt(np.maximum(variances[0] + variances[1], 1e-18)))


def crosses(signs: np.ndarray) -> bool:
    """Whether both groups are named, at different evaluations."""
    return bool((signs > 0).any() and (signs < 0).any())


def misses(band: Band, truth: np.ndarray) -> bool:
    """Whether the truth (evaluations,) lies outside the band at any evaluation."""
    return bool(((truth < band.lower[:, 0]) | (truth > band.upper[:, 0])).any())


def shifted(curve: PointCurve, codes: np.ndarray, errors: float) -> PointCurve:
    """Add a constant difference to the curve, in standard errors of the last evaluation."""
    spread = sum(curve.values[-1, codes == group].var(ddof=1) / (codes == group).sum() for group in (0, 1))
    return replace(curve, values=(curve.values + np.where(codes == 0, errors * spread**0.5, 0.0)).astype(np.float32))
