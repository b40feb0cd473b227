"""one_after_the_other: two centred groups learnt in turn, in closed form."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

import numpy as np

import tiltmeter as tm
from tiltmeter_lab.theory.centred_pair import CentredPair, G, centred_pair


@dataclass(frozen=True)
class OneAfterTheOther:
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


def one_after_the_other(
    problem: tm.theory.Mixture, sgd: tm.SGD, durations: Mapping[Hashable, float]
) -> OneAfterTheOther:
    """Return the student after phases of one group each, in this order and for these times (np.inf: to the end).

    >>> problem, sgd, _ = tm.theory.cases.centred_crossing()
    >>> print(one_after_the_other(problem, sgd, {"+": 40.0, "-": 20.0}))
    After + then - the losses are + 0.4070, - 0.1986, and the risk is 0.3654.

    The same curves over time come from `predict` with `SGD(proportions=schedules.in_turn(durations))`, which also has
    shifted groups and more than two of them.

    Args:
        problem: Groups with their shares, variances, means and labelling rules.
        sgd: How the student is trained: learning rate, batch, start, weights.
        durations: How long each group is learned alone, in this order; infinity: to the end.
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


@dataclass(frozen=True)
class BetterOrder:
    """Both orders of two groups, where each ends, and which group should come last."""

    orders: tuple[OneAfterTheOther, OneAfterTheOther]

    @property
    def last_for_risk(self) -> Hashable:
        """The group that should come last for the lower risk of the population."""
        return min(self.orders, key=lambda order: order.risk).order[-1]

    @property
    def last_for_worst(self) -> Hashable:
        """The group that should come last for the lower loss of the group that is worse off."""
        return min(self.orders, key=lambda order: order.worst).order[-1]

    def __str__(self) -> str:
        risks = {order.order[-1]: order.risk for order in self.orders}
        worsts = {order.order[-1]: order.worst for order in self.orders}
        risk, worst = self.last_for_risk, self.last_for_worst
        other = next(group for group in risks if group != risk)
        other_worst = next(group for group in risks if group != worst)
        return (
            f"For the population learn {risk} last (risk {risks[risk]:.4f} against {risks[other]:.4f}); for the group "
            f"that is worse off learn {worst} last (loss {worsts[worst]:.4f} against {worsts[other_worst]:.4f})."
        )


def better_order(
    problem: tm.theory.Mixture, sgd: tm.SGD, durations: Mapping[Hashable, float] | None = None
) -> BetterOrder:
    """Find which of two centred groups should be learnt last, with phases of these lengths (default: to the end).

    >>> problem, sgd, _ = tm.theory.cases.centred_crossing()
    >>> print(better_order(problem, sgd))
    For the population learn + last (risk 0.3326 against 0.3811); for the group that is worse off learn - last
    (loss 0.4272 against 0.9176).

    For long phases and small learning rates the population is better off with the group of larger share times variance
    last, and the worst group with the group of larger variance last.

    Both groups together, in their own proportions and at a small learning rate, have a lower risk than either order.

    Args:
        problem: Groups with their shares, variances, means and labelling rules.
        sgd: How the student is trained: learning rate, batch, start, weights.
        durations: How long each group is learned alone; None: to the end.
    """
    pair = centred_pair(problem, sgd, "better_order")
    times = dict.fromkeys(pair.groups, np.inf) if durations is None else dict(durations)
    if set(times) != set(pair.groups):
        raise KeyError(
            f"`durations` should name {', '.join(map(repr, pair.groups))}. Found {', '.join(map(repr, times))}."
        )
    a, b = pair.groups
    forth = one_after_the_other(problem, sgd, {a: times[a], b: times[b]})
    back = one_after_the_other(problem, sgd, {b: times[b], a: times[a]})
    return BetterOrder((forth, back))


@dataclass(frozen=True)
class Forgetting:
    """Loss and error of `group` after a long phase of `after` alone; an untrained student has loss 1/2.

    `critical_overlap` is the overlap of the teachers below which the loss is worse than that of an untrained student.
    """

    group: Hashable
    after: Hashable
    loss: float
    error: float
    overlap: float
    critical_overlap: float

    @property
    def worse_than_untrained(self) -> bool:
        """Whether the loss exceeds that of a student that has learnt nothing."""
        return self.overlap < self.critical_overlap

    def __str__(self) -> str:
        verdict = "worse than never learnt" if self.worse_than_untrained else "still better than never learnt"
        always = " at every overlap" if self.critical_overlap >= 1.0 else ""
        return (
            f"After a long phase of {self.after} alone the loss of {self.group} is {self.loss:.4f}, {verdict}{always} "
            f"(critical overlap {self.critical_overlap:.4g}, here {self.overlap:.4g}); its error is {self.error:.4f}."
        )


def forgetting(problem: tm.theory.Mixture, sgd: tm.SGD, group: Hashable, after: Hashable) -> Forgetting:
    """Return loss and error of `group` once `after` has been learnt alone to the end, whatever was learnt before.

    >>> problem = tm.teacher_mixture(rho=0.5, variance=(2.0, 0.5), overlap=0.9)
    >>> print(forgetting(problem, tm.SGD(lr=0.001), "+", after="-"))
    After a long phase of - alone the loss of + is 0.6275, worse than never learnt at every overlap
    (critical overlap 1, here 0.9); its error is 0.1436.

    Loss and error may disagree: the loss also depends on the length of the student, the error only on its angle.

    Args:
        problem: Groups with their shares, variances, means and labelling rules.
        sgd: How the student is trained: learning rate, batch, start, weights.
        group: Group whose loss is given.
        after: Group that was learned alone before.
    """
    pair = centred_pair(problem, sgd, "forgetting")
    for name in (group, after):
        if name not in pair.groups:
            raise KeyError(f"No group {name!r}. There are: {', '.join(map(repr, pair.groups))}.")
    if group == after:
        raise ValueError(f"`group` and `after` should differ. Found {group!r} for both.")
    h, k = pair.groups.index(group), pair.groups.index(after)
    x = pair.lr * float(pair.D[k])
    if not x < 2.0:
        raise ValueError(f"`lr` should lie below {2.0 / pair.D[k]:.6g}, the limit of {after} alone. Found {pair.lr:g}.")
    r, noise = float(np.sqrt(pair.D[h] / pair.D[k])), x / (2.0 - x)
    squared = G**2 + (1.0 - G**2) * noise
    return Forgetting(
        group=group,
        after=after,
        loss=0.5 * (1.0 + r**2 * squared - 2.0 * G**2 * pair.T * r),
        error=float(np.arccos(np.clip(pair.T * G / np.sqrt(squared), -1.0, 1.0)) / np.pi),
        overlap=pair.T,
        critical_overlap=0.5 * r * (1.0 + (np.pi / 2.0 - 1.0) * noise),
    )
