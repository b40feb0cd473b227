"""Stopping: when to stop training by different rules, and what each rule costs."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import xarray as xr

from tiltmeter.arguments import A_RUN, checked_kind
from tiltmeter.leaders.leaders import asked_of
from tiltmeter.pairs import groups_of, leader_sign
from tiltmeter.record.trajectory import Trajectory
from tiltmeter.shown_text import NotebookText, group_name, percent

#: Rates of decisions, of which a model that always decides the same has no gap.
DECISIONS = ("tpr", "fpr", "positive_rate")
Judged = Literal["same points", "other points", "exact"]


@dataclass(frozen=True)
class StoppingRule:
    """One rule: the time it advises, and the gap, the worst group and the mean of the quality there."""

    rule: str
    time: float
    gap: float
    mean: float
    worst: float


@dataclass(frozen=True)
class BestForGroup:
    """The evaluation at which one group is best off, and how far the others then are from their own best."""

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
    quality: str = "loss"
    better: Literal["lower", "higher"] = "lower"

    @property
    def rules(self) -> tuple[StoppingRule, StoppingRule, StoppingRule]:
        return self.fairest, self.best_mean, self.best_worst

    def __str__(self) -> str:
        lines = [f"Among evaluations whose mean {self.quality} is within {percent(self.within, 0)} of the best seen:"]
        of_curve = "" if self.curve == self.quality else f" in {self.curve}"
        for rule in self.rules:
            extra = rule.mean / self.best_mean.mean - 1.0 if self.best_mean.mean else 0.0
            lines.append(
                f"  {rule.rule:<16} at {self.clock} = {rule.time:.4g}: gap {rule.gap:.4f}{of_curve}, mean "
                f"{rule.mean:.4f} ({'+' if extra >= 0 else ''}{percent(extra, 1)}), worst group {rule.worst:.4f}"
            )
        if self.judged == "same points":
            lines.append("  chosen and measured on the same points: these numbers are optimistic (pass judge=)")
        elif self.judged == "other points":
            lines.append("  chosen on these points, measured on others")
        side = "above" if self.better == "lower" else "below"
        if len({one.time for one in self.by_group}) > 1:
            lines.append("Each group would stop at its own time:")
            for one in self.by_group:
                lines.append(
                    f"  {group_name(one.group):<16} at {self.clock} = {one.time:.4g}: {self.curve} {one.value:.4f}, "
                    f"the others then pay up to {one.others_pay:.4f} {side} their best"
                )
        return "\n".join(lines)


def stopping(
    trajectory: Trajectory, within: float = 0.1, curve: str | None = None, judge: Trajectory | None = None
) -> Stopping:
    """Find when the gap is smallest, the mean best and the worst group best, among evaluations whose mean is near the
    best.

    >>> from tiltmeter import predict
    >>> from tiltmeter.theory import cases
    >>> advice = stopping(predict(*cases.centred_crossing()))
    >>> bool(advice.fairest.gap < advice.best_mean.gap)
    True

    The quality that the mean is taken of is the error where `curve` is a rate of decisions (a model that always says
    yes has no gap in any of them), else the curve itself. Only evaluations at which the mean has improved on the first
    one count, so an untrained model is never advised. The gap is the largest difference between any two groups; the
    mean is over groups; seeds are averaged first.

    Values at an evaluation that was chosen on the same points are too optimistic. `judge` is the record of the same
    training on other points (`data.split(held_out=, judge=)`, with a probe for each): evaluations are chosen on the
    first and measured on the second.

    Args:
        trajectory: Run to look at: theory, simulation, forecast or training.
        within: How far the mean may lie above its best value, as a share of that value.
        curve: Curve whose gap counts; None: that of the question, else the loss.
        judge: The same training on other points, which measure the chosen evaluations; None: the same points.
    """
    if judge is not None:
        checked_kind("judge", judge, Trajectory, A_RUN)
    checked_kind("trajectory", trajectory, Trajectory, A_RUN)
    if not 0 <= checked_kind("within", within, (int, float), "a number") < 1e300:
        raise ValueError(f"`within` should not be negative. Found within = {within}.")
    if curve is None:
        question = asked_of(trajectory)
        curve = question.asked if question is not None and question.asked in trajectory else "loss"
    values = trajectory[checked_kind("curve", curve, str, "the name of a curve")]
    sign = leader_sign(curve, values)
    quality = "error" if curve in DECISIONS and "error" in trajectory else curve
    if leader_sign(quality, trajectory[quality]) < 0:
        raise ValueError(f"`stopping` needs errors or losses beside {curve!r}, to tell a trained model. Found none.")
    if not values.sizes["time"]:
        raise ValueError(f"Curve {curve!r} has no evaluations: nothing is recorded yet.")
    times, per_group = _per_group(values)
    when, levels = _per_group(trajectory[quality])
    if not np.array_equal(when, times):
        raise ValueError(f"{curve!r} and {quality!r} should be recorded at the same times.")
    mean, gap, worst = levels.mean(1), np.ptp(per_group, axis=1), (sign * per_group).max(1)
    measured, measured_mean = per_group, mean
    if judge is not None:
        other, measured = _per_group(judge[curve])
        measured_mean = _per_group(judge[quality])[1].mean(1)
        if not np.array_equal(other, times):
            raise ValueError("`judge` should be the same training on other points, looked at at the same times.")
    trained = (np.arange(len(times)) > 0) & (mean < mean[0])
    if not trained.any():
        raise ValueError(
            f"The mean {quality} never improves on the first evaluation: there is no trained model to advise."
        )
    near = trained & (mean <= mean[trained].min() * (1.0 + within))

    def best(rule: str, criterion: np.ndarray) -> StoppingRule:
        i = int(np.where(near, criterion, np.inf).argmin())
        row = measured[i]
        worst_off = float(sign * (sign * row).max())
        return StoppingRule(rule, float(times[i]), float(np.ptp(row)), float(measured_mean[i]), worst_off)

    judged: Judged = "exact" if trajectory.origin.source == "theory" else "same points"
    return Stopping(
        fairest=best("smallest gap", gap),
        best_mean=best("best mean", mean),
        best_worst=best("best worst group", worst),
        within=within,
        clock=trajectory.clock,
        curve=curve,
        by_group=_by_group(groups_of(values), times, per_group, sign),
        judged="other points" if judge is not None else judged,
        quality=quality,
        better="lower" if sign > 0 else "higher",
    )


def _by_group(groups: list[Hashable], times: np.ndarray, per_group: np.ndarray, sign: int) -> tuple[BestForGroup, ...]:
    pain = sign * per_group
    unknown = [group for group, seen in zip(groups, np.isfinite(pain).any(axis=0), strict=True) if not seen]
    if unknown:
        raise ValueError(f"Advice when to stop needs values of every group. Found none of {group_name(unknown[0])}.")
    best = np.nanmin(pain, axis=0)
    found = []
    for i, group in enumerate(groups):
        at = int(np.nanargmin(pain[:, i]))
        pay = np.delete(pain[at] - best, i)
        value = float(per_group[at, i])
        found.append(BestForGroup(group, float(times[at]), value, float(pay.max()) if pay.size else 0.0))
    return tuple(found)


def _per_group(values: xr.DataArray) -> tuple[np.ndarray, np.ndarray]:
    """Times, and values (time, group) averaged over seeds."""
    groups_of(values)
    extra = [dim for dim in values.dims if dim not in ("time", "group", "seed")]
    if extra:
        raise ValueError(f"`stopping` is for one run; select one point of {', '.join(map(str, extra))} first.")
    averaged = values.mean("seed") if "seed" in values.dims else values
    return values.coords["time"].values, averaged.transpose("time", "group").values
