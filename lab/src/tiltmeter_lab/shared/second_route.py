"""A second route to the factor that matters most: importance in a random forest, which fits no contrasts."""

from __future__ import annotations

import numpy as np
import xarray as xr


def largest_by_forest(array: xr.DataArray, seed: int = 0) -> str:
    """The factor whose shuffling harms the prediction of ranks most, on runs that the forest has not seen.

    >>> values = np.arange(3.0)[:, None, None] + np.zeros((3, 4, 5))
    >>> largest_by_forest(xr.DataArray(values, dims=("width", "lr", "seed")))
    'width'
    """
    from scipy.stats import rankdata
    from sklearn.ensemble import RandomForestRegressor

    factors = [str(dim) for dim in array.dims if dim != "seed" and array.sizes[dim] > 1]
    whole = array.transpose(*factors, ...)
    values = whole.values.reshape(*(array.sizes[name] for name in factors), -1)
    places = np.argwhere(np.isfinite(values))
    ranks = rankdata(values[np.isfinite(values)])
    # Levels as separate columns, so that their order means nothing.
    columns = [np.eye(array.sizes[name])[places[:, axis]] for axis, name in enumerate(factors)]
    seen = places[:, -1] % 2 == 0
    forest = RandomForestRegressor(200, random_state=seed).fit(np.hstack(columns)[seen], ranks[seen])
    test, truth = [column[~seen] for column in columns], ranks[~seen]
    if not len(truth):
        test, truth = columns, ranks
    # A factor is shuffled as a whole; sklearn's own importance shuffles column by column.
    generator = np.random.default_rng(seed)
    base = forest.score(np.hstack(test), truth)
    harm = {}
    for axis, name in enumerate(factors):
        scores = []
        for _ in range(10):
            shuffled = list(test)
            shuffled[axis] = test[axis][generator.permutation(len(truth))]
            scores.append(base - forest.score(np.hstack(shuffled), truth))
        harm[name] = float(np.mean(scores))
    return max(harm, key=lambda name: harm[name])
