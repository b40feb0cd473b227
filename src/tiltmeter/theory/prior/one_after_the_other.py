"""one_after_the_other: two centred groups learnt in turn, in closed form."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

import numpy as np

from tiltmeter.notebook_text import NotebookText
from tiltmeter.problem.mixture import Mixture
from tiltmeter.problem.sgd import SGD
from tiltmeter.theory.prior.centred_pair import CentredPair, G, centred_pair


@dataclass(frozen=True)
class OneAfterTheOther(NotebookText):
    """Losses and errors of both groups at the end of the last phase; `risk` is the mean loss of the population."""

    order: tuple[Hashable, ...]
    loss: Mapping[Hashable, float]
    error: Mapping[Hashable, float]
    risk: float

    @property
    def worst(self) -> float:
        """The loss of the group that is worse off."""
        return max(self.loss.values())

    def __str__(self) -> str:
        ends = ", ".join(f"{group} {value:.4f}" for group, value in self.loss.items())
        return f"After {' then '.join(map(str, self.order))} the losses are {ends}, and the risk is {self.risk:.4f}."


def one_after_the_other(problem: Mixture, sgd: SGD, durations: Mapping[Hashable, float]) -> OneAfterTheOther:
    """Return the student after phases of one group each, in this order and for these times (np.inf: to the end).

    >>> from tiltmeter import cases
    >>> problem, sgd, _ = cases.centred_crossing()
    >>> print(one_after_the_other(problem, sgd, {"+": 40.0, "-": 20.0}))
    After + then - the losses are + 0.4070, - 0.1986, and the risk is 0.3654.

    The same curves over time come from `predict` with `SGD(proportions=schedules.in_turn(durations))`, which also has
    shifted groups and more than two of them.
    """
    pair = centred_pair(problem, sgd, "one_after_the_other")
    R, Q = pair.R0, pair.Q0
    for group, duration in durations.items():
        if group not in pair.groups:
            raise KeyError(
                f"`durations` names the unknown group {group!r}. There are: {', '.join(map(repr, pair.groups))}."
            )
        if not duration > 0:
            raise ValueError(f"`durations[{group!r}]` should be positive. Found {duration}.")
        R, Q = phase(pair, pair.groups.index(group), duration, R, Q)
    loss = pair.losses(R, Q)
    error = np.arccos(np.clip(R / np.sqrt(Q), -1.0, 1.0)) / np.pi if Q > 0 else np.full(2, 0.5)
    return OneAfterTheOther(
        tuple(durations),
        dict(zip(pair.groups, loss.tolist(), strict=True)),
        dict(zip(pair.groups, error.tolist(), strict=True)),
        float(pair.p @ loss),
    )


def phase(pair: CentredPair, group: int, duration: float, R: np.ndarray, Q: float) -> tuple[np.ndarray, float]:
    """Return R and Q after one group alone: its loss obeys a closed equation, whatever was learnt before."""
    D = float(pair.D[group])
    x = pair.lr * D
    if not x < 2.0:
        raise ValueError(
            f"`lr` should lie below {2.0 / D:.6g}, the limit of {pair.groups[group]} alone. Found {pair.lr:g}."
        )
    best, kept = pair.optimum(group), np.exp(-x * duration)
    end = (1.0 - G**2) / (2.0 - x)
    now = float(pair.losses(R, Q)[group])
    R = best + kept * (R - best)
    loss = end + (now - end) * np.exp(-x * (2.0 - x) * duration)
    return R, float((2.0 * loss - 1.0 + 2.0 * np.sqrt(D) * G * R[group]) / D)
