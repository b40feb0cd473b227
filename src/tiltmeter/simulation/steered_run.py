"""SteeredRun: a run whose group pulls are set by a law every few steps."""

from __future__ import annotations

import numpy as np

from tiltmeter.interventions.group_law import GroupLaw, Seen
from tiltmeter.interventions.pulls import changed, pulls
from tiltmeter.problem.laws import refuse_unreachable
from tiltmeter.simulation.group_pulls import GroupPulls
from tiltmeter.simulation.linear_chain import LinearChain
from tiltmeter.simulation.observation import Observation
from tiltmeter.simulation.run import Run
from tiltmeter.simulation.setting import Setting


class SteeredRun:
    """Wraps a run: sets the pulls of all seeds before every block of `law.every` steps, and averages losses after it.

    Blocks begin at multiples of `every` steps, whatever the looks, so that a seed always gives the same run.
    """

    def __init__(self, run: Run, now: GroupPulls, setting: Setting, law: GroupLaw, sizes: np.ndarray | None) -> None:
        from tiltmeter.simulation.compiled_memory import place_pulls, take_in

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
        self._still = type(law).change is GroupLaw.change  # a law without a state
        self._step = 0
        self._groups = setting.par.groups
        self.stopped = run.stopped  # the same array, which the run changes
        self._seen = self._look_round()
        pulls(law, self._z, self._seen)  # refuses a law that does not fit the groups

    @property
    def cost(self) -> float:
        return self._run.cost + 1e5 / (self._law.every * len(self._shares))

    def _look_round(self) -> Seen:
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
        self._seen = self._look_round()
        if self._still:
            return
        if blind:
            self._z = changed(law, self._z, self._seen, duration)
        else:
            self._z = law.project(self._z + duration * law.change(self._z, self._seen))

    def look(self) -> Observation:
        seen = self._run.look()
        assert isinstance(seen, Observation)
        return seen.with_pull(pulls(self._law, self._z, self._look_round()))
