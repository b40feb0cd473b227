"""Stopping: when to stop training by different rules, and what each rule costs."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import xarray as xr

from tiltmeter.arguments import A_RUN, checked_kind
from tiltmeter.pairs import groups_of, leader_sign
from tiltmeter.record.trajectory import Trajectory
from tiltmeter.shown_text import NotebookText, group_name, percent

Judged = Literal["same points", "other points", "exact"]


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
    """The look at which one group is best off, and how far the others then are above their own best."""

    group: Hashable
    time: float
    value: float
    others_pay: float


@dataclass(frozen=True)
class Stopping(NotebookText):
    """The advice of three rules, among the evaluations whose mean is close to the best; as text, one sentence each.

    `by_group` is the best evaluation of every group, without that restriction. On a fixed training set, groups may be
    best off at very different times.

    `judged` says on which points the gap, mean and worst group of every rule were measured: "other points" than those
    that chose the evaluation, the "same points", whose numbers are then too good, or "exact" for theory.
    """

    fairest: StoppingRule
    best_mean: StoppingRule
    best_worst: StoppingRule
    within: float
    clock: str
    curve: str
    by_group: tuple[BestForGroup, ...] = ()
    judged: Judged = "same points"

    @property
    def rules(self) -> tuple[StoppingRule, StoppingRule, StoppingRule]:
        return self.fairest, self.best_mean, self.best_worst

    def __str__(self) -> str:
        lines = [f"Among evaluations whose mean {self.curve} is within {percent(self.within, 0)} of the best seen:"]
        words = ("smallest gap", "best mean", "best worst group")
        for rule, word in zip(self.rules, words, strict=True):
            extra = rule.mean / self.best_mean.mean - 1.0 if self.best_mean.mean else 0.0
            lines.append(
                f"  {word:<16} at {self.clock} = {rule.time:.4g}: gap {rule.gap:.4f}, mean {rule.mean:.4f} "
                f"(+{percent(extra, 1)}), worst group {rule.worst:.4f}"
            )
        if self.judged == "same points":
            lines.append("  chosen and measured on the same points: these numbers are optimistic (pass judge=)")
        elif self.judged == "other points":
            lines.append("  chosen on these points, measured on others")
        if len({one.time for one in self.by_group}) > 1:
            lines.append("Each group would stop at its own time:")
            for one in self.by_group:
                lines.append(
                    f"  {group_name(one.group):<16} at {self.clock} = {one.time:.4g}: {self.curve} {one.value:.4f}, "
                    f"the others then pay up to {one.others_pay:.4f} above their best"
                )
        return "\n".join(lines)


def stopping(
    trajectory: Trajectory, within: float = 0.1, curve: str = "loss", judge: Trajectory | None = None
) -> Stopping:
    """Find when the gap is smallest, the mean best and the worst group best, among evaluations whose mean is near the
    best.

    >>> from tiltmeter import predict
    >>> from tiltmeter.problem import cases
    >>> advice = stopping(predict(*cases.centred_crossing()))
    >>> bool(advice.fairest.gap < advice.best_mean.gap)
    True

    Only looks at which the mean has improved on the first evaluation count, so an untrained model is never advised. The
    gap is the largest difference between any two groups; the mean is over groups; seeds are averaged first.

    Values at an evaluation that was chosen on the same points are too optimistic. `judge` is the record of the same
    training on other points (`data.split(held_out=, judge=)`, with a probe for each): evaluations are chosen on the
    first and measured on the second."""
    checked_kind("trajectory", trajectory, Trajectory, A_RUN)
    checked_kind("curve", curve, str, "the name of a curve")
    if not 0 <= checked_kind("within", within, (int, float), "a number") < 1e300:
        raise ValueError(f"`within` should not be negative. Found within = {within}.")
    values = trajectory[curve]
    if leader_sign(curve, values) < 0:
        raise ValueError(f"`stopping` needs a curve for which lower is better. Found {curve!r}.")
    if not values.sizes["time"]:
        raise ValueError(f"Curve {curve!r} has no evaluations: nothing is recorded yet.")
    times, per_group = _per_group(values)
    mean, gap, worst = per_group.mean(1), per_group.max(1) - per_group.min(1), per_group.max(1)
    measured = per_group
    if judge is not None:
        other, measured = _per_group(judge[curve])
        if not np.array_equal(other, times):
            raise ValueError("`judge` should be the same training on other points, looked at at the same times.")
    trained = (np.arange(len(times)) > 0) & (mean < mean[0])
    if not trained.any():
        raise ValueError(
            f"The mean {curve} never improves on the first evaluation: there is no trained model to advise."
        )
    near = trained & (mean <= mean[trained].min() * (1.0 + within))

    def best(rule: str, criterion: np.ndarray) -> StoppingRule:
        i = int(np.where(near, criterion, np.inf).argmin())
        row = measured[i]
        return StoppingRule(rule, float(times[i]), float(np.ptp(row)), float(row.mean()), float(row.max()))

    judged: Judged = "exact" if trajectory.origin.source == "theory" else "same points"
    return Stopping(
        fairest=best("fairest", gap),
        best_mean=best("best_mean", mean),
        best_worst=best("best_worst", worst),
        within=within,
        clock=trajectory.clock,
        curve=curve,
        by_group=_by_group(groups_of(values), times, per_group),
        judged="other points" if judge is not None else judged,
    )


def _by_group(groups: list[Hashable], times: np.ndarray, per_group: np.ndarray) -> tuple[BestForGroup, ...]:
    best = np.nanmin(per_group, axis=0)
    found = []
    for i, group in enumerate(groups):
        evaluation = int(np.nanargmin(per_group[:, i]))
        pay = np.delete(per_group[evaluation] - best, i)
        found.append(
            BestForGroup(group, float(times[evaluation]), float(best[i]), float(pay.max()) if pay.size else 0.0)
        )
    return tuple(found)


def _per_group(values: xr.DataArray) -> tuple[np.ndarray, np.ndarray]:
    """Times, and values (time, group) averaged over seeds."""
    groups_of(values)
    extra = [dim for dim in values.dims if dim not in ("time", "group", "seed")]
    if extra:
        raise ValueError(f"`stopping` is for one run; select one point of {', '.join(map(str, extra))} first.")
    averaged = values.mean("seed") if "seed" in values.dims else values
    return values.coords["time"].values, averaged.transpose("time", "group").values
