"""Stopping: when to stop training, and what each rule for it costs by the others."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from tiltmeter.analysis.pairs import groups_of, leader_sign
from tiltmeter.record.trajectory import Trajectory


@dataclass(frozen=True)
class StoppingRule:
    """One rule: the time it advises, and the gap, mean and worst group there."""

    rule: str
    time: float
    gap: float
    mean: float
    worst: float


@dataclass(frozen=True)
class BestForGroup:
    """The look at which one group is best off, and what the others then pay above their own best."""

    group: Hashable
    time: float
    value: float
    others_pay: float


@dataclass(frozen=True)
class Stopping:
    """The advice of three rules among the looks whose mean is within reach of the best; as text, one sentence each.

    `by_group` is the best look of every group, wherever that lies: on a fixed training set groups are best off at
    very different times.
    """

    fairest: StoppingRule
    best_mean: StoppingRule
    best_worst: StoppingRule
    within: float
    clock: str
    curve: str
    by_group: tuple[BestForGroup, ...] = ()

    @property
    def rules(self) -> tuple[StoppingRule, StoppingRule, StoppingRule]:
        return self.fairest, self.best_mean, self.best_worst

    def __str__(self) -> str:
        lines = [f"Among looks whose mean {self.curve} is within {self.within:.0%} of the best seen:"]
        words = ("smallest gap", "best mean", "best worst group")
        for rule, word in zip(self.rules, words, strict=True):
            extra = rule.mean / self.best_mean.mean - 1.0 if self.best_mean.mean else 0.0
            lines.append(
                f"  {word:<16} at {self.clock} = {rule.time:.4g}: gap {rule.gap:.4f}, mean {rule.mean:.4f} "
                f"({extra:+.1%}), worst group {rule.worst:.4f}"
            )
        if len({one.time for one in self.by_group}) > 1:
            lines.append("Each group would stop at a time of its own:")
            for one in self.by_group:
                lines.append(
                    f"  {one.group!s:<16} at {self.clock} = {one.time:.4g}: {self.curve} {one.value:.4f}, the others "
                    f"then pay up to {one.others_pay:.4f} above their best"
                )
        return "\n".join(lines)


def stopping(trajectory: Trajectory, within: float = 0.1, curve: str = "loss") -> Stopping:
    """When is the gap smallest, the mean best, the worst group best, among looks whose mean is near the best?

    Only looks after the first at which the mean has improved count, so an untrained model is never advised. The gap is
    the largest difference between any two groups; the mean is over groups; seeds are averaged first.

    >>> from tiltmeter import predict
    >>> from tiltmeter.problem import cases
    >>> advice = stopping(predict(*cases.centred_crossing()))
    >>> bool(advice.fairest.gap < advice.best_mean.gap)
    True

    Advice from the same held-out points that will judge the model is optimistic.
    """
    if not within >= 0:
        raise ValueError(f"`within` should not be negative. Found within = {within}.")
    values = trajectory[curve]
    if leader_sign(curve, values) < 0:
        raise ValueError(f"`stopping` needs a curve for which lower is better. Found {curve!r}.")
    groups_of(values)
    extra = [dim for dim in values.dims if dim not in ("time", "group", "seed")]
    if extra:
        raise ValueError(f"`stopping` is for one run; select one point of {', '.join(map(str, extra))} first.")
    per_group = (values.mean("seed") if "seed" in values.dims else values).transpose("time", "group").values
    times = values.coords["time"].values
    mean, gap, worst = per_group.mean(1), per_group.max(1) - per_group.min(1), per_group.max(1)
    trained = (np.arange(len(times)) > 0) & (mean < mean[0])
    if not trained.any():
        raise ValueError(f"The mean {curve} never improves on the first look: there is no trained model to advise.")
    near = trained & (mean <= mean[trained].min() * (1.0 + within))

    def best(rule: str, criterion: np.ndarray) -> StoppingRule:
        i = int(np.where(near, criterion, np.inf).argmin())
        return StoppingRule(rule, float(times[i]), float(gap[i]), float(mean[i]), float(worst[i]))

    return Stopping(
        fairest=best("fairest", gap),
        best_mean=best("best_mean", mean),
        best_worst=best("best_worst", worst),
        within=within,
        clock=trajectory.clock,
        curve=curve,
        by_group=_by_group(groups_of(values), times, per_group),
    )


def _by_group(groups: list[Hashable], times: np.ndarray, per_group: np.ndarray) -> tuple[BestForGroup, ...]:
    best = np.nanmin(per_group, axis=0)
    found = []
    for i, group in enumerate(groups):
        look = int(np.nanargmin(per_group[:, i]))
        pay = np.delete(per_group[look] - best, i)
        found.append(BestForGroup(group, float(times[look]), float(best[i]), float(pay.max()) if pay.size else 0.0))
    return tuple(found)
