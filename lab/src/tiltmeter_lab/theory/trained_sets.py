"""trained_sets: logistic regression on training sets of finite size, the experiment behind `equilibrium`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr
from sklearn.linear_model import LogisticRegression

import tiltmeter as tm

#: Points that were not trained on, on which errors are counted.
HELD_OUT = 20_000


def trained_sets(problem: tm.theory.Mixture, samples: Sequence[float], ridge: float, d: int, seeds: int) -> xr.Dataset:
    """Error of every group, and its gap, for training sets of samples * d points in d dimensions.

    >>> problem = tm.teacher_mixture(rho=0.8, variance=(0.5, 1.5), overlap=0.5)
    >>> dict(trained_sets(problem, [2.0], ridge=0.3, d=50, seeds=4).error.sizes)
    {'group': 2, 'samples': 1, 'seed': 4}

    Errors are counted on points that were not trained on, so they scatter a little more than those of the students.

    Args:
        problem: Two groups with their shares, variances, means and labelling rules.
        samples: Training examples per dimension, n / d.
        ridge: Strength of the penalty ridge / 2 times the squared weights.
        d: Number of dimensions of an input.
        seeds: How many training sets for each number of samples.
    """
    groups = list(problem.groups)
    half = dict.fromkeys(groups, 1.0 / len(groups))
    held_out = tm.theory.samples(problem, d, HELD_OUT, seed=seeds, proportions=half)
    wrong = np.empty((len(groups), len(samples), seeds))
    for seed in range(seeds):
        for place, many in enumerate(samples):
            train = tm.theory.samples(problem, d, round(many * d), seed=seed)
            student = LogisticRegression(C=1.0 / ridge, tol=1e-8, max_iter=10_000)
            student.fit(train.x / np.sqrt(d), train.y)
            missed = student.predict(held_out.x / np.sqrt(d)) != held_out.y
            wrong[:, place, seed] = [missed[held_out.of_group(group)].mean() for group in groups]
    coords = {"group": groups, "samples": list(samples), "seed": np.arange(seeds)}
    error = xr.DataArray(wrong, dims=("group", "samples", "seed"), coords=coords)
    gap = error.isel(group=0, drop=True) - error.isel(group=1, drop=True)
    gap = gap.expand_dims(pair=[" vs ".join(map(str, groups))])
    origin = tm.record.Origin("trained sets", problem.to_json(), {"d": d, "ridge": ridge}, tuple(range(seeds)))
    return xr.Dataset({"error": error, "error_gap": gap}, attrs={"origin": origin.to_json()})
