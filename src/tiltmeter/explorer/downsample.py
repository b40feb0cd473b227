"""Downsample: fewer looks for a chart, with every extreme and every crossing where it is."""

from __future__ import annotations

import numpy as np

#: Looks up to here are all shown.
ALL = 1500
#: Columns of a chart, for linear time and for log time; in each the extremes of every curve are kept.
COLUMNS = 200
#: The most crossings of recorded values whose two looks are kept.
CROSSINGS = 1000


def downsample(times: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The places of the looks to show, in order, for `values` (looks, curves).

    >>> times = np.arange(100_000.0)
    >>> values = np.stack([np.exp(-times / 9e3), np.full_like(times, 0.2)], 1)
    >>> kept = downsample(times, values)
    >>> len(kept) < 2000, kept[0], kept[-1]
    (True, np.int64(0), np.int64(99999))
    >>> crossed = np.flatnonzero(np.diff(np.sign(values[:, 0] - values[:, 1])))[0]
    >>> bool(crossed in kept and crossed + 1 in kept)
    True

    The look before and the look after every change of order between two curves stay, so that lines drawn between looks
    cross where those of all looks cross. Of more than a thousand such changes, an even selection stays.
    """
    count = len(times)
    if count <= ALL:
        return np.arange(count)
    kept = [np.array([0, count - 1])]
    positive = np.maximum(times - times[0], (times[-1] - times[0]) / 1e6)
    for scale in (times, np.log(positive)):
        column = np.minimum((COLUMNS * (scale - scale[0]) / (scale[-1] - scale[0])).astype(int), COLUMNS - 1)
        starts = np.flatnonzero(np.diff(column, prepend=-1))
        for curve in values.T:
            kept += [_extremes(curve, starts, np.fmin), _extremes(curve, starts, np.fmax)]
    kept.append(_crossings(values))
    return np.unique(np.concatenate(kept))


def _extremes(curve: np.ndarray, starts: np.ndarray, pick: np.ufunc) -> np.ndarray:
    """In every column the first look with its extreme value."""
    best = np.repeat(pick.reduceat(curve, starts), np.diff(starts, append=len(curve)))
    places = np.flatnonzero(curve == best)
    column = np.searchsorted(starts, places, side="right")
    return places[np.flatnonzero(np.diff(column, prepend=-1))]


def _crossings(values: np.ndarray) -> np.ndarray:
    found = []
    for i in range(values.shape[1]):
        for j in range(i):
            sign = np.sign(values[:, i] - values[:, j])
            found.append(np.flatnonzero(sign[1:] * sign[:-1] < 0))
    changes = np.unique(np.concatenate(found)) if found else np.empty(0, int)
    if len(changes) > CROSSINGS:
        changes = changes[np.linspace(0, len(changes) - 1, CROSSINGS).astype(int)]
    return np.concatenate([changes, changes + 1])
