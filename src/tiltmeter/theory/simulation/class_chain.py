"""ClassChain: the chain of C linear scores on a ClassMixture; its state is a small Gram matrix and some coordinates."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from tiltmeter.theory.population.classes.moments import ClassMoments, ClassStudents
from tiltmeter.theory.problem.sgd import SGD
from tiltmeter.theory.problem.sgd_arrays import shares_at
from tiltmeter.theory.problem.starts import Random
from tiltmeter.theory.simulation.run import generators
from tiltmeter.threads import in_blocks


class ClassChain:
    """State per seed: coordinates of the scores in the span, Gram matrix of the rest, bias."""

    def __init__(self, data: ClassMoments, sgd: SGD, cross_entropy: bool, d: int, seeds: tuple[int, ...]) -> None:
        self._data, self._sgd, self._cross, self._d = data, sgd, cross_entropy, d
        count, rank = len(data.classes), data.mu.shape[1]
        batch = int(sgd.batch)  # type: ignore[arg-type]
        need = rank + count + batch
        if d < need:
            raise ValueError(
                f"`d` should be at least {need}: means and teachers span {rank} dimensions, {count} scores move, and a "
                f"batch has {batch}. Found d = {d}."
            )
        self._generators = generators(seeds, route=3)
        self._W = np.zeros((len(seeds), count, rank))
        self._gram = np.zeros((len(seeds), count, count))
        self._bias = np.zeros((len(seeds), count))
        if isinstance(sgd.start, Random) and sgd.start.scale > 0:
            for i, rng in enumerate(self._generators):
                scale = sgd.start.scale / np.sqrt(d)
                self._W[i] = scale * rng.standard_normal((count, rank))
                lower = np.tril(rng.standard_normal((count, count)), -1)
                lower[np.diag_indices(count)] = np.sqrt(rng.chisquare(d - rank - np.arange(count)))
                self._gram[i] = scale**2 * lower @ lower.T
        self._teachers = np.ascontiguousarray(data.teachers)
        self._table = class_weights(sgd, data.groups, data.classes, 0.0)
        self.stopped = np.full(len(seeds), -1, dtype=np.int64)

    @property
    def cost(self) -> float:
        count, rank = self._W.shape[1:]
        return 50.0 + float(self._sgd.batch) * 12.0 * (rank + count) * (1 + count) / 2 + count**3  # type: ignore[arg-type]

    def advance(self, first: int, stop: int, rates: np.ndarray, weights: np.ndarray, threads: int | None) -> None:  # noqa: ARG002
        from tiltmeter.theory.simulation.compiled_classes import advance_classes

        data, sgd = self._data, self._sgd
        fixed = (
            self._tables(first, stop), self._drawn(first, stop), np.ascontiguousarray(data.mu), self._teachers,
            data.offsets, np.sqrt(data.D), int(sgd.batch), float(sgd.weight_decay), sgd.train_bias, self._cross,  # type: ignore[arg-type]
            self._d,
        )  # fmt: skip

        def work(low: int, high: int) -> None:
            advance_classes(
                low, high, self._generators, self._W, self._gram, self._bias, self.stopped, first, stop - first, rates,
                *fixed,
            )  # fmt: skip

        in_blocks(work, len(self._W), threads, least=1)

    def evaluate(self) -> ClassStudents:
        return ClassStudents(self._W.copy(), self._gram + self._W @ self._W.transpose(0, 2, 1), self._bias.copy())

    def _tables(self, first: int, stop: int) -> np.ndarray:
        if not any(callable(weight) for weight in (self._sgd.weights or {}).values()):
            return self._table[None]
        times = (step / self._d for step in range(first, stop))
        return np.stack([class_weights(self._sgd, self._data.groups, self._data.classes, t) for t in times])

    def _drawn(self, first: int, stop: int) -> np.ndarray:
        shares, groups = self._sgd.proportions, self._data.groups
        if not self._sgd.curriculum:
            now = shares_at(shares, groups, 0.0)
            return np.cumsum(self._data.p if now is None else np.array(now, dtype=float))[None]
        times = (step / self._d for step in range(first, stop))
        return np.cumsum([shares_at(shares, groups, t) or () for t in times], axis=1, dtype=float)


def class_weights(sgd: SGD, groups: tuple[Hashable, ...], classes: tuple[Hashable, ...], t: float) -> np.ndarray:
    """Return the loss weights (G, C) at time t, of groups and of (group, class) pairs."""
    table = np.ones((len(groups), len(classes)))
    for key, value in (sgd.weights or {}).items():
        now: Any = value(t) if callable(value) else value
        if key in groups:
            table[groups.index(key)] *= float(now)
        elif isinstance(key, tuple) and len(key) == 2 and key[0] in groups and key[1] in classes:
            table[groups.index(key[0]), classes.index(key[1])] *= float(now)
        else:
            raise KeyError(
                f"`weights` names the unknown group or (group, class) {key!r}. Groups: "
                f"{', '.join(map(repr, groups))}; classes: {', '.join(map(repr, classes))}."
            )
    if not (np.isfinite(table) & (table >= 0)).all():
        raise ValueError(f"`weights` should be non-negative numbers. Found {table.min():g} at t = {t:.4g}.")
    return table
