"""LinearChain: the linear student without momentum, one length and a few coordinates per seed."""

from __future__ import annotations

from functools import cached_property
from math import inf
from typing import Any

import numpy as np

from tiltmeter.simulation.group_pulls import GroupPulls
from tiltmeter.simulation.observation import Observation
from tiltmeter.simulation.run import generators
from tiltmeter.simulation.setting import Setting, random_scale, start_coordinates
from tiltmeter.threads import in_blocks


class LinearChain:
    """State per seed: `rank` coordinates in the span of means and teachers, the length of the rest, the bias."""

    def __init__(self, setting: Setting, seeds: tuple[int, ...]) -> None:
        from tiltmeter.simulation.compiled_linear import advance_linear

        self._setting = setting
        self._generators = generators(seeds, route=0)
        rank, d = setting.rank, setting.d
        visible, hidden, bias = start_coordinates(setting)
        self._state = np.zeros((len(seeds), rank + 2))
        self._state[:, :rank], self._state[:, rank], self._state[:, rank + 1] = visible[0], abs(hidden[0, 0]), bias
        scale = random_scale(setting) / np.sqrt(d)
        if scale > 0:
            for state, rng in zip(self._state, self._generators, strict=True):
                state[:rank] = scale * rng.standard_normal(rank)
                state[rank] = scale * np.sqrt(rng.chisquare(d - rank))
        self.stopped = np.full(len(seeds), -1, dtype=np.int64)
        self.pulls = GroupPulls.plain(setting, len(seeds))
        self._curriculum = setting.sgd.curriculum
        self._compiled = advance_linear

    @property
    def cost(self) -> float:
        return 20.0 + 90.0 * self._setting.batch

    @cached_property
    def _fixed(self) -> tuple[Any, ...]:
        """The arguments that stay the same in all stretches; the arrays of `pulls` are changed in place."""
        chosen, sgd, now = self._setting, self._setting.sgd, self.pulls
        return (
            now.losses, now.counts, chosen.means, chosen.teachers, chosen.label_bias, chosen.deviation, chosen.batch,
            float(sgd.weight_decay), inf if sgd.clip is None else float(sgd.clip),  # type: ignore[arg-type]
            sgd.train_bias, chosen.d,
        )  # fmt: skip

    def advance(self, first: int, stop: int, rates: np.ndarray, weights: np.ndarray, threads: int | None) -> None:
        drawn = self.pulls.drawn(self._setting, first, stop) if self._curriculum else self.pulls.cumulative
        given = first, stop - first, rates, weights, self.pulls.factors, drawn, *self._fixed
        if threads == 1:
            self._compiled(0, len(self._state), self._generators, self._state, self.stopped, *given)
            return

        def work(low: int, high: int) -> None:
            self._compiled(low, high, self._generators, self._state, self.stopped, *given)

        in_blocks(work, len(self._state), threads, least=1)

    def steer(
        self,
        first: int,
        stop: int,
        rates: np.ndarray,
        weights: np.ndarray,
        pulls: np.ndarray,
        memory: tuple[np.ndarray, np.ndarray, float, bool],
    ) -> int:
        """Place pulls, advance on one thread, and remember losses; see `steer_linear` for what is returned.

        `memory` holds the shares, the losses that are remembered, the points over which they are, and whether the pulls
        are draws.
        """
        given = first, stop - first, rates, weights, self.pulls.factors, self.pulls.cumulative, *self._fixed
        return int(self._compiled_steer(pulls, *memory, self._generators, self._state, self.stopped, *given))

    @cached_property
    def _compiled_steer(self) -> Any:
        from tiltmeter.simulation.compiled_steered import steer_linear

        return steer_linear

    def look(self) -> Observation:
        rank = self._setting.rank
        w, s, bias = self._state[:, :rank], self._state[:, rank], self._state[:, rank + 1]
        M, R = w @ self._setting.means.T, w @ self._setting.teachers.T
        Q = (w**2).sum(1) + s**2
        return Observation(M[:, :, None], R[:, :, None], Q[:, None, None], np.ones((len(w), 1)), bias.copy())
