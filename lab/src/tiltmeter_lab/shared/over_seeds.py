"""Over seeds: means over repeated runs, shares of runs, and their standard errors.

The standard error of a mean is s / sqrt(n), with s^2 the sum of squared deviations over n - 1 and n the number of runs
that have a value; with one run it is not known (NaN). That of a share is the one of Agresti and Coull, *Approximate is
better than "exact" for interval estimation of binomial proportions* (1998): p = (k + 2) / (n + 4), and
sqrt(p (1 - p) / (n + 4)). Unlike sqrt(k (n - k) / n^3) it is not zero where all runs agree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import xarray as xr

from tiltmeter_lab.claim import Claim, Rule


def over_seeds(values: xr.DataArray, dim: str = "seed") -> tuple[xr.DataArray, xr.DataArray]:
    """Return the mean over a dimension of repeated runs and its standard error; missing values do not count.

    >>> values = xr.DataArray([[1.0, 3.0], [2.0, np.nan]], dims=("group", "seed"))
    >>> mean, error = over_seeds(values)
    >>> mean.values, error.values
    (array([2., 2.]), array([ 1., nan]))

    The error says how precisely the mean is known, not how far single runs are from it.
    """
    count = values.notnull().sum(dim)
    mean = values.mean(dim)
    if values.sizes[dim] < 2:
        return mean, xr.full_like(mean, np.nan, dtype=float)
    known = count.where(count > 1)  # one value has no scatter
    scatter = (((values - mean) ** 2).sum(dim) / (known - 1)) ** 0.5
    return mean, scatter / known**0.5


def mean_and_error(values: Any) -> tuple[float, float]:
    """Return mean and standard error of one number per run.

    >>> mean_and_error([1.0, 3.0])
    (2.0, 1.0)
    """
    mean, error = over_seeds(xr.DataArray(np.asarray(values, dtype=float).ravel(), dims="seed"))
    return float(mean), float(error)


def farthest(values: xr.DataArray, exact: xr.DataArray, slack: float) -> tuple[float, float]:
    """Return the largest distance of the mean over seeds from exact values, in units of its standard error + slack.

    >>> farthest(xr.DataArray([[1.0, 3.0]], dims=("time", "seed")), xr.DataArray([5.0], dims="time"), 1.0)
    (1.5, 0.5)

    The second number is the standard error in the same units: the error of that distance.
    """
    mean, error = over_seeds(values)
    distance, error = xr.broadcast(abs(mean - exact) / (error + slack), error / (error + slack))
    place = int(distance.values.argmax())
    return float(distance.values.ravel()[place]), float(error.values.ravel()[place])


def best_of_others(curve: xr.DataArray) -> np.ndarray:
    """For every seed, the fall from the evaluation that is highest on the *other half* of the seeds to the last one.

    >>> curve = xr.DataArray([[0.0, 0.0], [0.9, 0.7], [0.5, 0.5]], dims=("time", "seed"))
    >>> best_of_others(curve)
    array([0.4, 0.2])

    The highest of noisy values lies above the last one by choice alone, and would make a fall of any curve. Where all
    seeds but one choose for that one, the numbers depend on each other, and their scatter is too small an error.
    """
    values = curve.transpose("time", "seed").values
    half = np.arange(values.shape[1]) % 2
    highest = np.array([values[:, half != part].sum(1).argmax() for part in (0, 1)])[half]
    return np.asarray(values[highest, np.arange(len(half))] - values[-1])


def share(marks: Sequence[bool] | np.ndarray) -> tuple[float, float]:
    """Return the share of runs that are marked, and its standard error; NaN without runs.

    >>> share([True, True, False, True])
    (0.75, 0.171...)
    """
    hits, count = int(np.sum(marks)), len(marks)
    if not count:
        return float("nan"), float("nan")
    middle = (hits + 2.0) / (count + 4.0)
    return hits / count, float((middle * (1.0 - middle) / (count + 4.0)) ** 0.5)


def jackknife_error(statistic: Callable[[np.ndarray], Any], seeds: int) -> Any:
    """Return the standard error of a statistic of all seeds together, from its values without each of them in turn.

    >>> values = np.array([1.0, 3.0])
    >>> float(jackknife_error(lambda places: values[places].mean(), 2))
    1.0

    `statistic` takes the places of the seeds; it may return an array. It should be smooth: of a size, take the signed
    number, and of a first time, interpolate.
    """
    if seeds < 2:
        return np.full(np.shape(statistic(np.arange(seeds))), np.nan)
    without = np.array([statistic(np.delete(np.arange(seeds), seed)) for seed in range(seeds)])
    return np.sqrt((seeds - 1) * without.var(0))


def mean_claim(
    sentence: str,
    values: Any,
    what: str,
    threshold: float,
    where: str = "",
    *,
    rule: Rule = "at least",
    neutral: float | None = None,
    safe: bool = True,
) -> Claim:
    """Return a claim about the mean of one number per seed, with its standard error.

    >>> print(mean_claim("Groups differ", [0.2, 0.3, 0.25], "mean gap", 0.1))
    Clear: Groups differ (mean gap 0.25, 0.126 to 0.374; at least 0.1 asked).

    Seeds that all have the same number are no exact result: the claim is then only measured. See `share_claim`.
    """
    numbers = np.asarray(values, dtype=float).ravel()
    mean, error = mean_and_error(numbers)
    known = int((~np.isnan(numbers)).sum())
    freedom = None if known == numbers.size else max(known - 1, 1)  # seeds without a number do not count
    return Claim(
        sentence, mean, what, threshold, where, rule, error or None, numbers.size, safe, neutral, freedom=freedom
    )


def share_claim(sentence: str, marks: Any, what: str, where: str = "", *, safe: bool = True) -> Claim:
    """Return a claim that all seeds should meet, about the share that does; in half of them it would be chance.

    >>> print(share_claim("Losses cross", [True] * 10, "share of seeds in which they do"))
    Clear: Losses cross (share of seeds in which they do 1, 0.722 to 1; at least 1 asked).

    It is for numbers that are often the same in all seeds, whose standard error says nothing.
    """
    met = np.asarray(marks, dtype=bool).ravel()
    return Claim(sentence, float(met.mean()), what, 1.0, where, seeds=met.size, safe=safe, neutral=0.5, trials=met.size)
