"""SteeredRun: a run whose group pulls are set by a law every few steps."""

from __future__ import annotations

import numpy as np

from tiltmeter.interventions.group_law import GroupLaw, Seen
from tiltmeter.interventions.pulls import changed, pulls
from tiltmeter.problem.laws import refuse_unreachable
from tiltmeter.simulation.group_pulls import GroupPulls
from tiltmeter.simulation.observation import Observation
from tiltmeter.simulation.run import Run
from tiltmeter.simulation.setting import Setting


class SteeredRun:
    """Wraps a run: sets the pulls of all seeds before every block of `law.every` steps, and averages losses after it.

    Blocks begin at multiples of `every` steps, whatever the looks, so that a seed always gives the same run.
    """

    def __init__(self, run: Run, now: GroupPulls, setting: Setting, law: GroupLaw, sizes: np.ndarray | None) -> None:
        self._run, self._now, self._setting, self._law, self._sizes = run, now, setting, law, sizes
        refuse_unreachable(law, setting.par.groups, setting.shares)
        self._shares = np.tile(setting.shares, (len(now.factors), 1))
        self._losses = np.full(self._shares.shape, np.nan)
        self._z = law.start(self._shares)
        self._step = 0
        self._groups = setting.par.groups
        self.stopped = run.stopped  # the same array, which the run changes
        pulls(law, self._z, self._seen())  # refuses a law that does not fit the groups

    @property
    def cost(self) -> float:
        return self._run.cost + 1e5 / (self._law.every * len(self._shares))

    def _seen(self) -> Seen:
        return Seen(self._step / self._setting.d, self._groups, self._shares, self._losses, self._sizes)

    def advance(self, first: int, stop: int, rates: np.ndarray, weights: np.ndarray, threads: int | None) -> None:
        every, begin = self._law.every, first
        # On a short block, threads cost more than they save.
        threads = 1 if every * len(self._shares) * self._run.cost < 1e6 else threads
        while first < stop:
            end = min(stop, (first // every + 1) * every)
            if first % every == 0:
                self._pull()
            part = slice(first - begin, end - begin)
            some = rates[part] if len(rates) > 1 else rates
            table = weights[part] if len(weights) > 1 else weights
            self._run.advance(first, end, some, table, threads)
            first = self._step = end
            if end % every == 0:
                self._learn(every / self._setting.d)

    def _pull(self) -> None:
        P = pulls(self._law, self._z, self._seen())
        if self._law.by == "draws":
            np.add.accumulate(P, axis=1, out=self._now.cumulative[:, 0])
        else:
            np.divide(P, self._shares, out=self._now.factors)

    def _learn(self, duration: float) -> None:
        from tiltmeter.simulation.compiled_memory import remember

        remember(self._losses, self._now.losses, self._now.counts, float(self._law.memory))
        if self.stopped.max() >= 0:
            self._losses[self.stopped >= 0] = 1.0  # any number: these seeds have stopped
        self._z = changed(self._law, self._z, self._seen(), duration)

    def look(self) -> Observation:
        seen = self._run.look()
        assert isinstance(seen, Observation)
        return seen.with_pull(pulls(self._law, self._z, self._seen()))
