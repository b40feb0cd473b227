"""When: which steps to look at, as small values that compare, print and store.

>>> every(10).steps(30)
[0, 10, 20, 30]
>>> log_spaced(3).steps(100)
[0, 1, 2, 5, 10, 22, 46, 100]
>>> at([500, 0, 20])(20)
True
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tiltmeter.record.labelled import JSON

#: With more evaluations per factor of ten, every step of any training is an evaluation.
MOST_PER_DECADE = 10**6


class When(ABC):
    """A choice of steps: call it to ask about one step, or list them with `steps`.

    >>> every(10)(20), every(10)(25)
    (True, False)
    >>> every(10).steps(until=30)
    [0, 10, 20, 30]
    """

    @abstractmethod
    def __call__(self, step: int) -> bool:
        """Whether to evaluate after `step` updates."""

    @abstractmethod
    def steps(self, until: int) -> list[int]:
        """All chosen steps from 0 to `until`, both included."""

    @abstractmethod
    def to_json(self) -> dict[str, JSON]:
        """Plain JSON that `When.from_json` reads back."""

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> When:
        """The choice that `to_json` wrote.

        >>> When.from_json({"every": 10})
        every(10)
        """
        known: dict[str, Callable[[Any], When]] = {"every": every, "log_spaced": log_spaced, "at": at}
        if not isinstance(value, Mapping) or len(value) != 1 or next(iter(value)) not in known:
            raise ValueError(
                f'A choice of steps should read like {{"every": 10}}, "log_spaced" or "at". Found {value!r}.'
            )
        word, argument = next(iter(value.items()))
        return known[word](argument)


@dataclass(frozen=True, repr=False)
class Every(When):
    """Every n-th step, from step 0."""

    n: int

    def __call__(self, step: int) -> bool:
        return _step("step", step) % self.n == 0

    def steps(self, until: int) -> list[int]:
        return list(range(0, _step("until", until) + 1, self.n))

    def to_json(self) -> dict[str, JSON]:
        return {"every": self.n}

    def __repr__(self) -> str:
        return f"every({self.n})"


@dataclass(frozen=True, repr=False)
class LogSpaced(When):
    """Step 0 and the steps round(10^(k / per_decade)), k = 0, 1, 2, ..."""

    per_decade: int

    def __call__(self, step: int) -> bool:
        if _step("step", step) == 0:
            return True
        # The first k whose step could round to this one; its neighbours allow for rounding of log10.
        k = max(0, math.ceil(self.per_decade * math.log10(step - 0.5)))
        return any(self._nth(near) == step for near in (k, k + 1, max(0, k - 1)))

    def steps(self, until: int) -> list[int]:
        chosen, k = [0], 0
        while (step := self._nth(k)) <= _step("until", until):
            if step != chosen[-1]:
                chosen.append(step)
            k += 1
        return chosen

    def _nth(self, k: int) -> int:
        # Computed from k, not from the previous step, so that rounding errors do not add up.
        return round(10 ** (k / self.per_decade))

    def to_json(self) -> dict[str, JSON]:
        return {"log_spaced": self.per_decade}

    def __repr__(self) -> str:
        return f"log_spaced({self.per_decade})"


@dataclass(frozen=True, repr=False)
class At(When):
    """Exactly these steps."""

    chosen: tuple[int, ...]

    def __call__(self, step: int) -> bool:
        place = bisect_left(self.chosen, _step("step", step))
        return place < len(self.chosen) and self.chosen[place] == step

    def steps(self, until: int) -> list[int]:
        return list(self.chosen[: bisect_right(self.chosen, _step("until", until))])

    def to_json(self) -> dict[str, JSON]:
        return {"at": list(self.chosen)}

    def __repr__(self) -> str:
        return f"at({list(self.chosen)})"


def every(n: int) -> Every:
    """Evaluate every `n` steps: 0, n, 2n, ...

    >>> every(100).steps(until=300)
    [0, 100, 200, 300]

    Args:
        n: Steps between two evaluations.
    """
    return Every(_count("n", n))


def log_spaced(per_decade: int) -> LogSpaced:
    """Evaluate at step 0 and at `per_decade` steps per factor of ten, evenly spaced on a log axis.

    >>> log_spaced(3).steps(until=100)
    [0, 1, 2, 5, 10, 22, 46, 100]

    Args:
        per_decade: Evaluations per factor of ten in the step.
    """
    number = _count("per_decade", per_decade)
    if number > MOST_PER_DECADE:
        raise ValueError(f"`per_decade` should be at most {MOST_PER_DECADE:,}. Found per_decade = {number}.")
    return LogSpaced(number)


def at(steps: Iterable[int]) -> At:
    """Evaluate at exactly these steps, given in any order.

    >>> at([500, 0, 20]).steps(until=100)
    [0, 20]

    Args:
        steps: Steps of the evaluations, in any order.
    """
    if getattr(steps, "ndim", 1) == 0:
        raise TypeError(f"`steps` should be a list of integers. Found steps = {steps!r}.")
    if not isinstance(steps, Iterable) or isinstance(steps, (str, bytes)):
        raise TypeError(f"`steps` should be a list of integers. Found steps = {steps!r}.")
    chosen = tuple(sorted({_step("steps", step) for step in steps}))
    if not chosen:
        raise ValueError("`steps` should name at least one step. Found none.")
    return At(chosen)


class StepsToCome:
    """The chosen steps of a training whose length is not known, looked up a few at a time.

    >>> to_come = StepsToCome(log_spaced(3))
    >>> to_come.after(0), to_come.after(5), to_come.after(46)
    (1, 10, 100)
    """

    def __init__(self, when: When) -> None:
        self._when, self._known, self._until = when, list[int](), -1

    def after(self, step: int) -> int:
        """The next step to evaluate; if none is found within the search, a later step before which there is none."""
        if isinstance(self._when, Every):
            return self._when.n * (step // self._when.n + 1)
        if step >= self._until:
            self._until = 2 * step + 100
            self._known = [one for one in self._when.steps(self._until) if one > step]
        place = bisect_right(self._known, step)
        return self._known[place] if place < len(self._known) else self._until + 1


def missing_evaluations(steps: list[int]) -> str | None:
    """The evaluations of these steps, which a run will never have, in words; None if there are none.

    >>> missing_evaluations([40, 50])
    '2 evaluations, of steps 40 to 50, are missing'
    """
    if not steps:
        return None
    if len(steps) == 1:
        return f"the evaluation of step {steps[0]:,} is missing"
    return f"{len(steps):,} evaluations, of steps {steps[0]:,} to {steps[-1]:,}, are missing"


def _integer(name: str, value: object) -> int:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"`{name}` should be an integer. Found {name} = {value!r}.")
    return int(value)


def _count(name: str, value: object) -> int:
    number = _integer(name, value)
    if number < 1:
        raise ValueError(f"`{name}` should be at least 1. Found {name} = {number}.")
    return number


def _step(name: str, value: object) -> int:
    number = _integer(name, value)
    if number < 0:
        raise ValueError(f"`{name}` should not be negative: steps count updates. Found {name} = {number}.")
    return number
