"""Memorisation: how training repeatedly on few examples changes the crossings of two groups."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Literal

from tiltmeter.leaders.leaders import Leaders, leaders
from tiltmeter.leaders.phases import Crossing
from tiltmeter.pairs import AskedPair, Pair
from tiltmeter.record.trajectory import Trajectory
from tiltmeter.shown_text import NotebookText, group_name
from tiltmeter.theory.dynamics.predict import predict
from tiltmeter.theory.problem.fixed import Fixed
from tiltmeter.theory.problem.full_batch import Flow
from tiltmeter.theory.problem.mixture import Mixture

What = Literal["moved", "created", "removed"]


@dataclass(frozen=True)
class Change(NotebookText):
    """One crossing with fresh examples (`online`), on the fixed set (`fixed`), or both: then it has moved."""

    what: What
    online: float | None
    fixed: float | None
    leader_after: Hashable
    pair: Pair | None = None

    def __str__(self) -> str:
        return self.sentence()

    def sentence(self, both: bool = False) -> str:
        """What becomes of the change; `both` names both groups, where there are more than two."""
        to = f"to {group_name(self.leader_after)}"
        if both and self.pair is not None:
            before = self.pair[1] if self.leader_after == self.pair[0] else self.pair[0]
            to = f"from {group_name(before)} {to}"
        if self.what == "moved":
            return f"the change {to} moves from t = {self.online:.4g} to {self.fixed:.4g}"
        if self.what == "created":
            return f"a change {to} at t = {self.fixed:.4g} appears"
        return f"the change {to} at t = {self.online:.4g} disappears"


@dataclass(frozen=True)
class Memorisation(NotebookText):
    """The crossings of the same training with fresh examples and on a fixed set; as text, one sentence."""

    curve: str
    online: Leaders
    fixed: Leaders
    changes: tuple[Change, ...]
    trajectories: tuple[Trajectory, Trajectory]

    def __str__(self) -> str:
        several = self.trajectories[0][self.curve].sizes["group"] > 2
        told = "; ".join(one.sentence(several) for one in self.changes) if self.changes else "no crossing on either"
        return (
            f"With fresh examples: {self.online.headline.claim} On the fixed set: {self.fixed.headline.claim} So "
            f"{told}."
        )


def memorisation(
    problem: Mixture, flow: Flow, times: Any, data: Fixed, curve: str = "loss", pair: AskedPair | None = None
) -> Memorisation:
    """Find the crossings of two groups that memorising a fixed training set moves, creates or removes.

    >>> import numpy as np
    >>> from tiltmeter import teacher_mixture
    >>> problem = teacher_mixture(rho=0.8, variance=(0.5, 1.5), overlap=0.5)
    >>> print(memorisation(problem, Flow(lr=1.0), np.geomspace(0.01, 100.0, 50), Fixed(samples=2.0)))
    With fresh examples: Group - has the lower loss until t = 0.8066 (larger variance), then group + (more data). On the
    fixed set: Group - has the lower loss until t = 0.3473 (larger variance), then group + (more data). So the change to
    + moves from t = 0.8066 to 0.3473.

    Gradient flow on the whole population (every example is fresh) is compared with the same flow on n = samples d
    examples. Crossings are matched in order of time by their new leader. Those without a match are created or removed.

    This is for small learning rates: neither flow has the batch noise of SGD.

    Args:
        problem: Groups with their shares, variances, means and labelling rules.
        flow: Gradient flow: its learning rate, weights and start.
        times: Times between which crossings are looked for.
        data: Fixed training set.
        curve: Curve whose crossings are found.
        pair: Two groups to compare; None: the only two there are.
    """
    if not isinstance(flow, Flow):
        raise TypeError(f"`memorisation` compares gradient flows: pass a Flow(lr=...). Found {type(flow).__name__}.")
    if not isinstance(data, Fixed):
        raise TypeError(f"`data` should be a Fixed(samples=...). Found {data!r}.")
    online = predict(problem, flow, times, curves=(curve,))
    fixed = predict(problem, flow, times, curves=(curve,), data=data)
    before, after = (leaders(run, curve, groups=pair) for run in (online, fixed))
    return Memorisation(curve, before, after, _changes(list(before.changes), list(after.changes)), (online, fixed))


def _changes(before: list[Crossing], after: list[Crossing]) -> tuple[Change, ...]:
    found: list[Change] = []
    left = list(after)
    for crossing in before:
        same = [c for c in left if (c.pair, c.leader_after) == (crossing.pair, crossing.leader_after)]
        if same:
            left.remove(same[0])
            found.append(Change("moved", crossing.time, same[0].time, crossing.leader_after, crossing.pair))
        else:
            found.append(Change("removed", crossing.time, None, crossing.leader_after, crossing.pair))
    found += [Change("created", None, c.time, c.leader_after, c.pair) for c in left]
    return tuple(sorted(found, key=lambda change: change.fixed or change.online or 0.0))
