"""LinearChain: the linear student without momentum, one length and a few coordinates per seed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Any

import numpy as np

from tiltmeter.interventions.group_intervention import GroupIntervention, Seen, changed, pulls, refuse_unreachable
from tiltmeter.theory.simulation.run import Observation, Run, generators
from tiltmeter.theory.simulation.setting import Setting, random_scale, start_coordinates
from tiltmeter.threads import in_blocks


@dataclass(frozen=True)
class GroupPulls:
    """Arrays (seeds, groups) that compiled loops read (`factors`, `cumulative`) and add to (`losses`, `counts`).

    A factor multiplies the loss of a group's points, in addition to the weights. `cumulative` holds the cumulative
    shares by which groups are drawn; it has an additional dimension of steps, (seeds, 1, groups), with more than one
    entry in a curriculum (`drawn`). Losses are unweighted sums over `counts` points.
    """

    factors: np.ndarray
    cumulative: np.ndarray
    losses: np.ndarray
    counts: np.ndarray

    @classmethod
    def plain(cls, setting: Setting, seeds: int) -> GroupPulls:
        shape = seeds, len(setting.shares)
        return cls(np.ones(shape), np.tile(setting.cumulative(0, 1), (seeds, 1, 1)), np.zeros(shape), np.zeros(shape))

    def drawn(self, setting: Setting, first: int, stop: int) -> np.ndarray:
        """Cumulative shares of the groups in the steps first..stop: (seeds or 1, steps or 1, groups)."""
        return setting.cumulative(first, stop)[None] if setting.sgd.curriculum else self.cumulative


class LinearChain:
    """State per seed: `rank` coordinates in the span of means and teachers, the length of the rest, the bias."""

    def __init__(self, setting: Setting, seeds: tuple[int, ...]) -> None:
        from tiltmeter.theory.simulation.compiled_linear import advance_linear

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
        from tiltmeter.theory.simulation.compiled_steered import steer_linear

        return steer_linear

    def evaluate(self) -> Observation:
        rank = self._setting.rank
        w, s, bias = self._state[:, :rank], self._state[:, rank], self._state[:, rank + 1]
        M, R = w @ self._setting.means.T, w @ self._setting.teachers.T
        Q = (w**2).sum(1) + s**2
        return Observation(M[:, :, None], R[:, :, None], Q[:, None, None], np.ones((len(w), 1)), bias.copy())


class SteeredRun:
    """Wraps a run: sets the pulls of all seeds before every block of `law.every` steps, and averages losses after it.

    Blocks begin at multiples of `every` steps, whatever the evaluations, so that a seed always gives the same run.
    """

    def __init__(
        self, run: Run, now: GroupPulls, setting: Setting, law: GroupIntervention, sizes: np.ndarray | None
    ) -> None:
        from tiltmeter.theory.simulation.compiled_steered import place_pulls, take_in

        self._run, self._setting, self._law, self._sizes = run, setting, law, sizes
        # Blocks are short: what every one of them needs is kept at hand.
        self._place, self._placed = place_pulls, (law.by == "draws", now.cumulative, now.factors)
        self._take_in, self._tallied = take_in, (now.losses, now.counts, float(law.memory), run.stopped)
        refuse_unreachable(law, setting.par.groups, setting.shares)
        self._shares = np.tile(setting.shares, (len(now.factors), 1))
        self._losses = np.full(self._shares.shape, np.nan)
        self._memory = self._shares, self._losses, float(law.memory), law.by == "draws"
        self._chain = run if isinstance(run, LinearChain) and not setting.sgd.curriculum else None
        self._z = law.start(self._shares)
        self._still = type(law).change is GroupIntervention.change  # an intervention without a state
        self._step = 0
        self._groups = setting.par.groups
        self.stopped = run.stopped  # the same array, which the run changes
        self._seen = self._observe()
        pulls(law, self._z, self._seen)  # refuses an intervention that does not fit the groups

    @property
    def cost(self) -> float:
        return self._run.cost + 1e5 / (self._law.every * len(self._shares))

    def _observe(self) -> Seen:
        return Seen(self._step / self._setting.d, self._groups, self._shares, self._losses, self._sizes)

    def advance(self, first: int, stop: int, rates: np.ndarray, weights: np.ndarray, threads: int | None) -> None:
        every, begin, duration = self._law.every, first, self._law.every / self._setting.d
        # On a short block, threads cost more than they save.
        threads = 1 if every * len(self._shares) * self._run.cost < 1e6 else threads
        one_call = self._chain if threads == 1 else None
        while first < stop:
            end = min(stop, (first // every + 1) * every)
            some = rates[first - begin : end - begin] if len(rates) > 1 else rates
            table = weights[first - begin : end - begin] if len(weights) > 1 else weights
            if one_call is not None and end - first == every:
                P = self._pulls()
                fits = P.shape == self._shares.shape
                found = one_call.steer(first, end, some, table, P, self._memory) if fits else -1
                if found < 0:
                    self._refuse()
                self._step = end
                self._learn(duration, found > 0)
            else:
                if first % every == 0:
                    self._pull()
                self._run.advance(first, end, some, table, threads)
                self._step = end
                if end % every == 0:
                    self._learn(duration, self._take_in(self._losses, *self._tallied))
            first = end

    def _pulls(self) -> np.ndarray:
        return np.ascontiguousarray(self._law.pull(self._z, self._seen), dtype=float)

    def _pull(self) -> None:
        P = self._pulls()
        if P.shape != self._shares.shape or not self._place(P, self._shares, self._losses, *self._placed):
            self._refuse()

    def _refuse(self) -> None:
        pulls(self._law, self._z, self._seen)  # says what is wrong
        raise ValueError(f"`pull` of {type(self._law).__name__} should give one number per group.")

    def _learn(self, duration: float, blind: bool) -> None:
        law = self._law
        self._seen = self._observe()
        if self._still:
            return
        if blind:
            self._z = changed(law, self._z, self._seen, duration)
        else:
            self._z = law.project(self._z + duration * law.change(self._z, self._seen))

    def evaluate(self) -> Observation:
        seen = self._run.evaluate()
        assert isinstance(seen, Observation)
        return seen.with_pull(pulls(self._law, self._z, self._observe()))
