"""Pursuit: greedy search for conjunctions, each of which explains what those before it do not.

The score of a group G of n_G among n points is the largest, over the columns of the residual target R, of

    sum_{i in G} R_i / sqrt(n_G (1 - n_G / n)),

one-sided: only larger values count. Singles and pairs of conditions are searched exactly, as matrix products; triples
are made of the best pairs. After each group, R is the residual of the target after least squares on all groups so far.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

#: Extreme values of a target are drawn in to these quantiles.
EXTREME = (0.005, 0.995)
#: A group holds at most this share of the points.
LARGEST = 0.5
#: A further condition removes at least this share of the points; it multiplies the score, and it costs.
REMOVED, FACTOR, PRICE = 0.1, 0.9, 0.5
#: Pairs that are tried with a third condition.
BEST_PAIRS = 30
#: Conditions that are paired with one another: the best by their own score. This bounds time and memory.
PAIRED = 600


@dataclass(frozen=True)
class Pick:
    """The places of the conditions of one group, and its score."""

    places: tuple[int, ...]
    score: float


def standardised(targets: np.ndarray, labels: np.ndarray | None = None) -> np.ndarray:
    """Columns without extremes, of mean 0 and variance 1; with `labels`, the means of every label are removed first.

    >>> standardised(np.array([[1.0], [3.0]])).ravel().round(6).tolist()
    [-1.0, 1.0]
    """
    values = np.array(targets, dtype=float)
    if labels is not None:
        _, codes = np.unique(labels, return_inverse=True)
        sums = np.stack([np.bincount(codes, column) for column in values.T], axis=1)
        values -= (sums / np.bincount(codes)[:, None])[codes]
    values = np.clip(values, *np.quantile(values, EXTREME, axis=0))
    values -= values.mean(0)
    spread = values.std(0)
    return np.asarray(np.divide(values, spread, out=np.zeros_like(values), where=spread > 0))


class Search:
    """The conditions of all points, with what several pursuits share: how many points every pair has."""

    def __init__(self, holds: np.ndarray, depth: int, least: float) -> None:
        self._holds = holds.astype(np.float32)
        self._depth, self._least = depth, least * len(holds)
        self._counts = self._holds.sum(0, dtype=np.float64)
        self._shared: np.ndarray | None = None
        self._paired = np.arange(holds.shape[1])

    def pursue(self, targets: np.ndarray, most: int, floor: float) -> list[Pick]:
        """Up to `most` groups whose targets (points, columns) are large, while the score is at least `floor`."""
        picks: list[Pick] = []
        if not self._holds.shape[1]:
            return picks
        self._choose_paired(targets)
        indicators = [np.ones(len(targets))]
        residual = targets
        while len(picks) < most:
            pick = self._best(residual.astype(np.float32))
            if pick is None or pick.score < floor:
                break
            picks.append(pick)
            indicators.append(self.members(pick.places).astype(float))
            design = np.stack(indicators, axis=1)
            residual = targets - design @ np.linalg.lstsq(design, targets, rcond=None)[0]
        return picks

    def members(self, places: tuple[int, ...]) -> np.ndarray:
        """The points for which all of these conditions hold."""
        return np.asarray(self._holds[:, list(places)].all(1))

    def _choose_paired(self, targets: np.ndarray) -> None:
        """Of too many conditions, those with the best scores of their own are paired."""
        if self._depth < 2 or (len(self._counts) <= PAIRED and self._shared is not None):
            return
        if len(self._counts) > PAIRED:
            scores = self._scored((self._holds.T @ targets.astype(np.float32)).T, self._counts).max(0)
            self._paired = np.sort(np.argsort(-scores)[:PAIRED])
        chosen = self._holds[:, self._paired]
        self._shared = chosen.T @ chosen

    def _best(self, residual: np.ndarray) -> Pick | None:
        picks = [self._single(residual)]
        if self._depth > 1 and len(self._paired) > 1:
            picks += self._several(residual)
        known = [pick for pick in picks if pick is not None]
        return max(known, key=lambda pick: pick.score, default=None)

    def _single(self, residual: np.ndarray) -> Pick | None:
        scores = self._scored((self._holds.T @ residual).T, self._counts).max(0)
        scores = np.where(self._sized(self._counts), scores, -np.inf)
        place = int(np.argmax(scores))
        return Pick((place,), float(scores[place])) if np.isfinite(scores[place]) else None

    def _several(self, residual: np.ndarray) -> list[Pick | None]:
        """The best pair, and the best triple of the best pairs."""
        assert self._shared is not None
        holds, counts = self._holds[:, self._paired], self._counts[self._paired]
        scores = np.full(self._shared.shape, -np.inf, dtype=np.float32)
        for column in residual.T:
            np.maximum(scores, self._scored((holds * column[:, None]).T @ holds, self._shared), out=scores)
        scores = FACTOR * scores - PRICE
        smaller = self._shared <= (1.0 - REMOVED) * np.minimum(counts[:, None], counts[None])
        usable = np.triu(smaller & (self._shared >= self._least), 1)
        sized = np.where(usable & self._sized(self._shared), scores, -np.inf)
        first, second = map(int, np.unravel_index(int(np.argmax(sized)), sized.shape))
        pair = self._pick((first, second), float(sized[first, second]))
        if self._depth < 3 or not usable.any():
            return [pair]
        order = np.argsort(np.where(usable, scores, -np.inf), axis=None)[::-1][:BEST_PAIRS]
        rows, columns = np.unravel_index(order[usable.ravel()[order]], scores.shape)
        return [pair, self._triple(residual, holds, rows, columns)]

    def _triple(self, residual: np.ndarray, holds: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> Pick | None:
        assert self._shared is not None
        pairs = holds[:, rows] * holds[:, columns]
        counts = pairs.T @ holds
        scores = np.full(counts.shape, -np.inf, dtype=np.float32)
        for column in residual.T:
            np.maximum(scores, self._scored((pairs * column[:, None]).T @ holds, counts), out=scores)
        scores = FACTOR**2 * scores - 2 * PRICE
        within = np.minimum(self._shared[rows, columns][:, None], np.minimum(self._shared[rows], self._shared[columns]))
        scores = np.where((counts <= (1.0 - REMOVED) * within) & self._sized(counts), scores, -np.inf)
        pair, third = map(int, np.unravel_index(int(np.argmax(scores)), scores.shape))
        return self._pick((int(rows[pair]), int(columns[pair]), third), float(scores[pair, third]))

    def _pick(self, places: tuple[int, ...], score: float) -> Pick | None:
        if not np.isfinite(score):
            return None
        return Pick(tuple(sorted(int(self._paired[place]) for place in places)), score)

    def _sized(self, counts: np.ndarray) -> np.ndarray:
        return np.asarray((counts >= self._least) & (counts <= LARGEST * len(self._holds)))

    def _scored(self, sums: np.ndarray, counts: np.ndarray) -> np.ndarray:
        spread = counts * (1.0 - counts / len(self._holds))
        return np.asarray(sums / np.sqrt(np.maximum(spread, 1.0)))
