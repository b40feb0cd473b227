"""Group interventions: how much each group counts in a step."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from tiltmeter.interventions.group_intervention import GroupIntervention, Seen
from tiltmeter.interventions.shared.shares import by_group, capped_shares, checked_per_group, softmax
from tiltmeter.schedules import Schedule


@dataclass(frozen=True)
class Balanced(GroupIntervention):
    """P proportional to p^power: 0 makes groups count equally, 1 leaves them as they are, 0.5 lies between.

    >>> import tiltmeter as tm
    >>> problem = tm.teacher_mixture(rho=0.75, variance=(0.5, 1.5), overlap=0.7)
    >>> sgd = tm.SGD(lr=0.2, interventions=(Balanced(by="draws"),))
    >>> tm.predict(problem, sgd, [60.0])["loss"].values.round(4)
    array([[0.2888, 0.2522]])

    It is constant during training, so it is the same as setting `weights` (P / p) or `proportions` (P), and the theory
    keeps its closed form. Weights make the noise of a rare group larger than drawing it more often does. Equal pulls do
    not mean equal losses. Once a network fits all its training points, the effect is lost.

    Args:
        power: 0 makes groups count equally, 1 leaves them as they are.
    """

    constant = True
    title = "groups count by a power of their share, equally by default"
    cannot = "make losses equal: it does not look at them"

    power: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.power, bool) or not np.isfinite(self.power):
            raise ValueError(f"`power` should be a number. Found power = {self.power!r}.")

    def pull(self, z: np.ndarray, seen: Seen) -> np.ndarray:  # noqa: ARG002
        if self.power == 1.0:
            return seen.shares.copy()
        raised = seen.shares**self.power
        return np.asarray(raised / raised.sum(-1, keepdims=True))


@dataclass(frozen=True)
class ChiSquareDRO(GroupIntervention):
    """P = p (1 + strength (L - level))_+: maximises sum P L minus a chi-square penalty of weight 1 / (2 strength).

    >>> import tiltmeter as tm
    >>> problem = tm.teacher_mixture(rho=0.75, variance=(0.5, 1.5), overlap=0.7)
    >>> sgd = tm.SGD(lr=0.2, interventions=(ChiSquareDRO(20.0, by="draws"),))
    >>> tm.predict(problem, sgd, [0.0, 60.0])["loss"].values[-1].round(3)
    array([0.262, 0.292])

    This is the penalised form of DRO with the chi-square divergence (Levy et al., 2020), over groups instead of points.
    The pull is linear in the loss where that of `Tilted` is exponential, so a group that is far behind gets a smaller
    pull.

    Like every intervention without a state, it leaves a gap.

    Args:
        strength: How fast the pull grows with the loss; 0 is plain training.
    """

    smooth = False
    title = "the worst mixture of groups within a chi-square distance of their shares"
    cannot = "close a gap entirely: what steers it is the gap itself"

    strength: float = 3.0

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_per_group(self.strength, "strength", 0.0, strict=True)

    def pull(self, z: np.ndarray, seen: Seen) -> np.ndarray:  # noqa: ARG002
        return capped_shares(seen.shares, seen.losses, self.strength)


#: A final loss above its bound by more than this fraction is reported.
NOTICEABLE = 1e-2


@dataclass(frozen=True)
class DualAscent(GroupIntervention):
    """P = (p + z) / (1 + sum z) with multipliers dz/dt = rate (L - bound), held at z >= 0.

    >>> import tiltmeter as tm
    >>> problem = tm.teacher_mixture(rho=0.75, variance=(0.5, 1.5), overlap=0.7)
    >>> sgd = tm.SGD(lr=0.2, interventions=(DualAscent(0.31, rate=5.0, by="draws"),))
    >>> tm.predict(problem, sgd, [0.0, 200.0])["loss"].values[-1].round(3)
    array([0.254, 0.31 ])

    It minimises the mean loss under the condition that the loss of each group stays below its bound. The division keeps
    the sum of the pulls at 1, so that a bound that cannot be met leads to the smallest worst-group loss instead of
    divergence.

    The bound is on the training loss in the long run, not at every moment of training.

    Args:
        bound: Loss that each group should stay below: one number, or one by group (infinity: no bound).
        rate: How fast the multipliers grow, per unit of the clock.
    """

    smooth = False
    title = "bounds on group losses, enforced by Lagrange multipliers"
    cannot = "hold its bounds before training has had the time to reach them"

    bound: float | Mapping[Hashable, float]
    rate: float = 0.01

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "bound", checked_per_group(self.bound, "bound", 0.0, strict=True))
        checked_per_group(self.rate, "rate", 0.0)

    def _bounds(self, seen: Seen) -> np.ndarray:
        return np.array(by_group(self.bound, seen.groups, "bound", "DualAscent"), dtype=float)

    def pull(self, z: np.ndarray, seen: Seen) -> np.ndarray:
        z = np.maximum(z, 0.0)
        return np.asarray((seen.shares + z) / (1.0 + z.sum(-1, keepdims=True)))

    def change(self, z: np.ndarray, seen: Seen) -> np.ndarray:
        bounds = self._bounds(seen)
        free = np.isinf(bounds)
        climb = self.rate * (seen.losses - np.where(free, 0.0, bounds))
        return np.asarray(np.where(free | ((z <= 0.0) & (climb < 0.0)), 0.0, climb))

    def project(self, z: np.ndarray) -> np.ndarray:
        return np.asarray(np.maximum(z, 0.0))

    def note(self, z: np.ndarray, seen: Seen) -> str:
        over = (seen.losses > self._bounds(seen) * (1.0 + NOTICEABLE)) & (z > 0.0)
        if not over.any():
            return ""
        at = tuple(np.argwhere(over)[0])
        return (
            f"DualAscent: at time {seen.time:g} the loss {seen.losses[at]:.4g} of group {seen.groups[at[-1]]!r} is "
            f"still above its bound {self._bounds(seen)[at[-1]]:g}. It may need more time, or the bound cannot be met."
        )


@dataclass(frozen=True)
class GroupCVaR(GroupIntervention):
    """P = p clip(1 + strength (L - level), 0, 1 / alpha): no group counts more than 1 / alpha of its share.

    >>> import tiltmeter as tm
    >>> problem = tm.teacher_mixture(rho=0.75, variance=(0.5, 1.5), overlap=0.7)
    >>> sgd = tm.SGD(lr=0.2, interventions=(GroupCVaR(0.5, by="draws"),))
    >>> tm.predict(problem, sgd, [0.0, 60.0])["pull"].values[-1].round(2)
    array([0.6, 0.4])

    For a large `strength` these are the pulls of the conditional value at risk: the mean loss over the worst fraction
    `alpha` of the population, taken from the worst groups first. That limit is discontinuous where two losses are
    equal; a finite strength makes it continuous, so that it has equations of motion.

    The pull of a group cannot exceed p / alpha, however large its loss.

    Args:
        alpha: Worst fraction of the population that counts.
        strength: How sharply groups are chosen; infinity is the conditional value at risk itself.
    """

    smooth = False
    title = "the mean loss of the worst share of the population, group by group"
    cannot = "lift a group beyond 1 / alpha of its share"

    alpha: float = 0.5
    strength: float = 100.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.0 < self.alpha <= 1.0:
            raise ValueError(f"`alpha` should lie in (0, 1]. Found alpha = {self.alpha}.")
        checked_per_group(self.strength, "strength", 0.0, strict=True)

    def pull(self, z: np.ndarray, seen: Seen) -> np.ndarray:  # noqa: ARG002
        return capped_shares(seen.shares, seen.losses, self.strength, 1.0 / self.alpha)


@dataclass(frozen=True)
class GroupDRO(GroupIntervention):
    """P = softmax(z + proportional L) with dz/dt = rate (L + adjust / sqrt(n)), Sagawa et al. (2020).

    >>> import tiltmeter as tm
    >>> problem = tm.teacher_mixture(rho=0.75, variance=(0.5, 1.5), overlap=0.7)
    >>> times = [0.0, *np.geomspace(0.02, 60.0, 200)]
    >>> laws = GroupDRO(30.0, begin="shares", by="draws"), GroupDRO(30.0, 150.0, begin="shares", by="draws")
    >>> runs = [tm.predict(problem, tm.SGD(lr=0.2, interventions=(law,)), times) for law in laws]
    >>> [len(tm.leaders(run, "loss").changes) for run in runs]
    [15, 1]

    With the `rate` alone this is an integral controller: it ends at equal losses, but oscillates on the way. The
    `proportional` term damps the oscillation. `adjust` is the constant C of the paper, divided by the square root of
    the number of a group's training points. With fresh data there is no such number: give the adjustment itself by
    group.

    It equalises the training loss plus the adjustment. Once the training losses of all groups are zero, it has no
    signal left.

    Args:
        rate: Step size of the paper, per unit of the clock.
        proportional: Damps the oscillation; 2 to 8 times the rate worked.
        adjust: Constant C of the paper, divided by sqrt(training points of the group); by group with fresh data.
        floor: No pull falls below it.
        begin: Pulls at the start: "equal", as published, or "shares".
    """

    title = "groups with a large loss count more and more, by exponentiated gradient ascent"
    cannot = "steer where the training losses of all groups vanish"

    rate: float = 0.01
    proportional: float = 0.0
    adjust: float | Mapping[Hashable, float] = 0.0
    floor: float = 0.0
    begin: Literal["equal", "shares"] = "equal"

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("rate", "proportional"):
            checked_per_group(getattr(self, name), name, 0.0)
        object.__setattr__(self, "adjust", checked_per_group(self.adjust, "adjust", 0.0))
        if not 0.0 <= self.floor < 1.0:
            raise ValueError(f"`floor` should lie in [0, 1). Found floor = {self.floor}.")
        if self.begin not in ("equal", "shares"):
            raise ValueError(f'`begin` should be "equal" or "shares". Found begin = {self.begin!r}.')

    @property
    def gain(self) -> float:
        return float(self.proportional)

    def start(self, shares: np.ndarray) -> np.ndarray:
        return np.zeros_like(shares) if self.begin == "equal" else np.log(shares)

    def pull(self, z: np.ndarray, seen: Seen) -> np.ndarray:
        number = z.shape[-1]
        if self.floor * number >= 1.0:
            raise ValueError(
                f"`floor` should lie below 1 / {number} for {number} groups. Found floor = {self.floor:g}."
            )
        q = softmax(z + self.proportional * seen.losses if self.proportional else z)
        return self.floor + (1.0 - number * self.floor) * q if self.floor else q

    def change(self, z: np.ndarray, seen: Seen) -> np.ndarray:  # noqa: ARG002
        return np.asarray(self.rate * (seen.losses + self._adjustment(seen) if self.adjust else seen.losses))

    def _adjustment(self, seen: Seen) -> Any:
        if isinstance(self.adjust, Mapping):
            return np.array(by_group(self.adjust, seen.groups, "adjust", "GroupDRO"))
        if seen.sizes is None:
            raise ValueError(
                f"`adjust` = {self.adjust:g} of GroupDRO is divided by the root of a group's training points, and "
                "fresh data have no such number: give the adjustment by group, as in adjust={'+': 0.1, '-': 0.3}."
            )
        return self.adjust / np.sqrt(seen.sizes)


@dataclass(frozen=True)
class PullSchedule(GroupIntervention):
    """P_g(t) proportional to a schedule, or a number, for every group: what `optimal_schedule` returns.

    >>> import tiltmeter as tm
    >>> early = tm.schedules.Steps(starts=(0.0, 10.0), values=(0.8, 0.5))
    >>> law = PullSchedule({"+": early, "-": tm.schedules.Steps((0.0, 10.0), (0.2, 0.5))}, by="draws")
    >>> problem = tm.teacher_mixture(rho=0.75, variance=(0.5, 1.5), overlap=0.7)
    >>> tm.predict(problem, tm.SGD(lr=0.2, interventions=(law,)), [5.0, 20.0])["pull"].values
    array([[0.8, 0.2],
           [0.5, 0.5]])

    It does not react to losses: a schedule that is best for one problem need not be best for another.

    Args:
        pulls: For every group, a number or a schedule over time.
    """

    title = "pulls given as functions of time"
    cannot = "react: it does not look at losses"

    pulls: Mapping[Hashable, Schedule | float]

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.pulls, Mapping) or not self.pulls:
            raise TypeError(f"`pulls` should map groups to schedules or numbers. Found {self.pulls!r}.")
        object.__setattr__(self, "pulls", dict(self.pulls))
        for group, one in self.pulls.items():
            if not callable(one) and (isinstance(one, (bool, str)) or not 0.0 <= one < np.inf):
                raise ValueError(f"`pulls[{group!r}]` should be a schedule or a number of at least 0. Found {one!r}.")

    def pull(self, z: np.ndarray, seen: Seen) -> np.ndarray:  # noqa: ARG002
        given = by_group(self.pulls, seen.groups, "pulls", "PullSchedule")
        now = np.array([float(one(seen.time)) if callable(one) else float(one) for one in given])
        if not (np.isfinite(now).all() and (now >= 0).all() and now.sum() > 0):
            raise ValueError(f"`pulls` should be at least 0, not all 0. Found {now.tolist()} at time {seen.time:g}.")
        return np.broadcast_to(now / now.sum(), seen.shares.shape).copy()


@dataclass(frozen=True)
class Tilted(GroupIntervention):
    """P proportional to p exp(strength * L): the gradient of log(sum p exp(strength L)) / strength, Li et al. (2021).

    >>> import tiltmeter as tm
    >>> problem = tm.teacher_mixture(rho=0.75, variance=(0.5, 1.5), overlap=0.7)
    >>> sgd = tm.SGD(lr=0.2, interventions=(Tilted(3.0),))
    >>> tm.predict(problem, sgd, [0.0, 20.0])["loss"].values[-1].round(3)
    array([0.251, 0.323])

    It is the proportional part of group DRO without the integral part: some gap always remains.

    Args:
        strength: 0 is plain training, infinity trains on the worst group alone; below 0 the best group is favoured.
    """

    title = "groups count by the exponential of their loss"
    cannot = "close a gap entirely: what steers it is the gap itself"

    strength: float = 3.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.strength, bool) or not np.isfinite(self.strength):
            raise ValueError(f"`strength` should be a number. Found strength = {self.strength!r}.")

    @property
    def gain(self) -> float:
        return abs(float(self.strength))

    def pull(self, z: np.ndarray, seen: Seen) -> np.ndarray:  # noqa: ARG002
        return softmax(self.strength * seen.losses, seen.shares)


@dataclass(frozen=True)
class VREx(GroupIntervention):
    """P = (1 + 2 beta (L - mean L)) / G: the gradient of mean + beta * variance over groups, Krueger et al. (2021).

    >>> import tiltmeter as tm
    >>> problem = tm.teacher_mixture(rho=0.75, variance=(0.5, 1.5), overlap=0.7)
    >>> tm.predict(problem, tm.SGD(lr=0.2, interventions=(VREx(10.0),)), [0.0, 60.0])["loss"].values[-1].round(3)
    array([0.292, 0.286])

    A pull may be negative, which *raises* the loss of a group and can make training diverge. `positive` replaces
    negative pulls by zero, and is needed for draws. A large weight on a rare group also adds noise: see
    `docs/interventions.md`.

    Args:
        beta: How much the variance over groups counts beside the mean.
        positive: Whether negative pulls are replaced by zero; draws need it.
    """

    smooth = False
    title = "a penalty on the variance of group losses"
    cannot = "tell helping the worst group from harming the best"

    beta: float = 10.0
    positive: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_per_group(self.beta, "beta", 0.0)
        if self.by == "draws" and not self.positive:
            raise ValueError('A group cannot be drawn a negative number of times: by="draws" needs positive=True.')

    def pull(self, z: np.ndarray, seen: Seen) -> np.ndarray:  # noqa: ARG002
        away = seen.losses - seen.losses.mean(-1, keepdims=True)
        pulls = (1.0 + 2.0 * self.beta * away) / seen.losses.shape[-1]
        return np.maximum(pulls, 0.0) if self.positive else np.asarray(pulls)
