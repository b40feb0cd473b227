"""better_order: which of two groups should be learnt last."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

import numpy as np

from tiltmeter.notebook_text import NotebookText
from tiltmeter.problem.mixture import Mixture
from tiltmeter.problem.sgd import SGD
from tiltmeter.theory.prior.centred_pair import centred_pair
from tiltmeter.theory.prior.one_after_the_other import OneAfterTheOther, one_after_the_other


@dataclass(frozen=True)
class BetterOrder(NotebookText):
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


def better_order(problem: Mixture, sgd: SGD, durations: Mapping[Hashable, float] | None = None) -> BetterOrder:
    """Find which of two centred groups should be learnt last, with phases of these lengths (default: to the end).

    >>> from tiltmeter import cases
    >>> problem, sgd, _ = cases.centred_crossing()
    >>> print(better_order(problem, sgd))
    For the population learn + last (risk 0.3326 against 0.3811); for the group that is worse off learn - last
    (loss 0.4272 against 0.9176).

    For long phases and small learning rates the population is better off with the group of larger share times variance
    last, and the worst group with the group of larger variance last.

    Both groups together, in their own proportions and at a small learning rate, have a lower risk than either order.
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
