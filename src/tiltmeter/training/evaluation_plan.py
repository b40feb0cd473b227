"""Evaluation plan: which evaluations a training can afford, by counts of points and never by clocks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tiltmeter.record import When

#: What curves, records and the calls of one evaluation cost beside its pass, in steps of the training. Of small
#: networks, whose steps are short, this is most of it.
OVERHEAD = 4.0
#: The batch where none is given and none was seen.
COMMON = 32


class EvaluationPlan:
    """A step is three passes over its batch, forward and back; an evaluation is one pass over the held-out points.

    >>> from tiltmeter.record import every
    >>> plan = EvaluationPlan(every(100), budget=0.1, rows=1920, batch=64)
    >>> plan.cost
    14.0
    >>> plan.taken_of(every(100).steps(1000), 0)
    [0, 500, 600, 700, 900, 1000]

    Without the length of the training, an evaluation is taken once it, those before it and the last one cost no more
    than the budget of the steps so far. With `steps`, as many as the whole budget pays for, spread evenly over those of
    `when`, the first and the last among them.

    >>> EvaluationPlan(every(100), budget=0.1, rows=1920, steps=1000, batch=64).taken_of(every(100).steps(1000), 0)
    [0, 200, 300, 500, 700, 800, 1000]
    """

    def __init__(
        self, when: When, budget: float, rows: int, steps: int | None = None, batch: int | None = None
    ) -> None:
        self.budget, self._rows = budget, rows
        self._when, self._steps, self.batch = when, steps, batch
        self._spread: tuple[float, frozenset[int]] | None = None

    @property
    def cost(self) -> float:
        """What one evaluation costs, in steps of the training."""
        return self._rows / (3.0 * (self.batch or COMMON)) + OVERHEAD

    def takes(self, step: int, taken: int) -> bool:
        """Whether the evaluation at this step, which `when` has chosen, is taken after so many others."""
        if not taken:
            return True
        if self._steps is None or step > self._steps:
            return (taken + 2) * self.cost <= self.budget * step
        return step in self._affordable(self._steps)

    def taken_of(self, planned: Sequence[int], taken: int) -> list[int]:
        """Those of the planned steps that are taken after so many others."""
        found = []
        for step in planned:
            if self.takes(step, taken):
                found.append(step)
                taken += 1
        return found

    def _affordable(self, steps: int) -> frozenset[int]:
        cost = self.cost
        if self._spread is None or self._spread[0] != cost:
            planned = sorted({*self._when.steps(steps), steps})
            count = max(2, int(self.budget * steps / cost))
            chosen = planned
            if count < len(planned):
                chosen = [planned[place] for place in np.linspace(0, len(planned) - 1, count).round().astype(int)]
            self._spread = cost, frozenset(chosen)
        return self._spread[1]
