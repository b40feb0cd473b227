"""NetworkChain: the chain of several units, or of a linear student with momentum."""

from __future__ import annotations

from math import inf

import numpy as np

from tiltmeter.theory.problem.students import Identity, Network
from tiltmeter.theory.simulation.linear_chain import GroupPulls
from tiltmeter.theory.simulation.run import Observation, generators
from tiltmeter.theory.simulation.setting import Setting, random_scale, start_coordinates
from tiltmeter.threads import in_blocks


class NetworkChain:
    """State per seed: coordinates of all moving vectors in the span of means and teachers, and outside it."""

    def __init__(self, setting: Setting, seeds: tuple[int, ...]) -> None:
        from tiltmeter.theory.simulation.compiled_draws import number_of

        self._setting = setting
        self._generators = generators(seeds, route=0)
        units, size, rank, d = setting.units, setting.vectors, setting.rank, setting.d
        student = setting.student
        self._activation = number_of(student.activation if isinstance(student, Network) else Identity())
        self._learn_second = isinstance(student, Network) and student.train_second_layer
        visible, hidden, bias = start_coordinates(setting)
        self._visible = np.zeros((len(seeds), size, rank))
        self._hidden = np.zeros((len(seeds), size, size))
        self._visible[:, :units], self._hidden[:, :units, :units] = visible, hidden
        scale = random_scale(setting) / np.sqrt(d)
        if scale > 0:
            for i, rng in enumerate(self._generators):
                self._visible[i, :units] = scale * rng.standard_normal((units, rank))
                self._hidden[i, :units, :units] = scale * _bartlett(rng, units, d - rank)
        self._scalars = np.tile(np.append(setting.second_layer, bias), (len(seeds), 1))
        self._velocity = np.zeros_like(self._scalars)
        self.stopped = np.full(len(seeds), -1, dtype=np.int64)
        self.pulls = GroupPulls.plain(setting, len(seeds))

    @property
    def cost(self) -> float:
        size = self._setting.vectors
        return 100.0 + 30.0 * self._setting.batch * (self._setting.rank + 2 * size) + 5.0 * size**3

    def advance(self, first: int, stop: int, rates: np.ndarray, weights: np.ndarray, threads: int | None) -> None:
        from tiltmeter.theory.simulation.compiled_network import advance_network

        chosen, sgd, now = self._setting, self._setting.sgd, self.pulls
        clip = inf if sgd.clip is None else float(sgd.clip)
        fixed = (
            now.factors, now.drawn(chosen, first, stop), now.losses, now.counts, chosen.means, chosen.teachers,
            chosen.label_bias, chosen.deviation,
            (float(sgd.momentum), float(sgd.nesterov), float(sgd.weight_decay), clip), chosen.batch,  # type: ignore[arg-type]
            self._activation, self._learn_second, sgd.train_bias, chosen.d,
        )  # fmt: skip

        def work(low: int, high: int) -> None:
            advance_network(
                low, high, self._generators, self._visible, self._hidden, self._scalars, self._velocity, self.stopped,
                first, stop - first, rates, weights, *fixed,
            )  # fmt: skip

        in_blocks(work, len(self._scalars), threads, least=1)

    def evaluate(self) -> Observation:
        units = self._setting.units
        w, rest = self._visible[:, :units], self._hidden[:, :units]
        M = np.einsum("ska,ga->sgk", w, self._setting.means)
        R = np.einsum("ska,ga->sgk", w, self._setting.teachers)
        Q = w @ w.transpose(0, 2, 1) + rest @ rest.transpose(0, 2, 1)
        return Observation(M, R, Q, self._scalars[:, :units].copy(), self._scalars[:, units].copy())


def _bartlett(rng: np.random.Generator, units: int, dimensions: int) -> np.ndarray:
    """Draw the lower triangular factor of `units` standard normal vectors in this many dimensions."""
    lower = np.tril(rng.standard_normal((units, units)), -1)
    lower[np.diag_indices(units)] = np.sqrt(rng.chisquare(dimensions - np.arange(units)))
    return lower
