"""Levelling down: the smallest gap over training is reached by harming everybody; a guard finds a better one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import tiltmeter as tm
from tiltmeter_lab.catalogue import Keep, Runs
from tiltmeter_lab.claim import Claim
from tiltmeter_lab.shared.steered_cases import PROBLEMS, evaluations, steered

TITLE = "The fixed weights of smallest gap harm everybody; the area under the worst group's loss tells"
PAPER = "Mittelstadt, Wachter and Russell, The unfairness of fair machine learning (2023); theory of this package"
NEEDS: tuple[str, ...] = ()


@dataclass(frozen=True)
class Setting:
    """Pieces of the best schedule, and the size of the simulation."""

    pieces: int = 8
    d: int = 1000
    seeds: int = 48


QUICK, FULL = Setting(), Setting(pieces=16, d=10_000, seeds=96)


def run(setting: Setting, keep: Keep) -> Runs:
    """Problem A: plain, the best fixed weights with and without guard, a schedule, damped DRO; and simulated."""
    problem, lr, until = PROBLEMS["A"]
    times = evaluations(until)
    at = np.unique(np.rint(np.array([20.0, 40.0, 60.0]) * setting.d)) / setting.d

    def best(**more: Any) -> tm.Trajectory:
        return steered(
            "A", tm.theory.optimal_schedule(problem, tm.SGD(lr=lr), times, tm.fairness.criteria.GapArea(), **more).law
        )

    damped = tm.interventions.GroupDRO(30.0, 150.0, begin="shares", by="draws")
    leveller = tm.theory.optimal_schedule(
        problem, tm.SGD(lr=lr), times, tm.fairness.criteria.GapArea(), pieces=1, by="weights", guard=False
    ).law
    return {
        "plain": keep("plain", lambda: steered("A", None)),
        "unguarded": keep("unguarded", lambda: steered("A", leveller)),
        "guarded": keep("guarded", lambda: best(pieces=1, by="weights")),
        "schedule": keep("schedule", lambda: best(pieces=setting.pieces)),
        "damped DRO": keep("damped DRO", lambda: steered("A", damped)),
        "unguarded, simulated": keep(
            "unguarded, simulated",
            lambda: tm.simulate(
                problem,
                tm.SGD(lr=lr, interventions=(replace(leveller, every=100),)),
                at,
                setting.d,
                setting.seeds,
                curves=("loss",),
                method=tm.theory.Chain(progress=False),
            ),
        ),
        "plain, simulated": keep(
            "plain, simulated",
            lambda: tm.simulate(
                problem,
                tm.SGD(lr=lr),
                at,
                setting.d,
                setting.seeds,
                curves=("loss",),
                method=tm.theory.Chain(progress=False),
            ),
        ),
    }


def claims(runs: Runs) -> tuple[Claim, ...]:
    """Gap and worst group of each; every group is worse off without the guard, in theory and in simulated students."""
    names = ("plain", "unguarded", "guarded", "schedule", "damped DRO")
    gap = {name: float(tm.fairness.criteria.GapArea().of(runs[name])) for name in names}
    worst = {name: float(tm.fairness.criteria.WorstGroupArea().of(runs[name])) for name in names}
    last = {name: float(tm.fairness.criteria.WorstGroupLoss().of(runs[name])) for name in names}
    ends = [runs[name]["loss"].isel(time=-1) for name in ("unguarded, simulated", "plain, simulated")]
    harm = ends[0].mean("seed") - ends[1].mean("seed")
    error = np.sqrt(sum(end.var("seed", ddof=1) / end.sizes["seed"] for end in ends))
    return (
        Claim(
            "Without a guard the smallest gap is smaller than one tenth of that of plain training",
            gap["unguarded"] / gap["plain"],
            "ratio of areas under the gap",
            0.1,
            rule="at most",
        ),
        Claim(
            "The worst group pays for it with a larger loss",
            last["unguarded"] - last["plain"],
            "rise of the worst group's last loss",
            0.05,
            f"From {last['plain']:.3f} to {last['unguarded']:.3f}; its mean over training from {worst['plain']:.3f} to "
            f"{worst['unguarded']:.3f}.",
        ),
        Claim(
            "With the guard the worst group gains",
            worst["guarded"] - worst["plain"],
            "change of the worst group's mean loss",
            0.0,
            f"The area under the gap is {gap['guarded'] / gap['plain']:.2f} of that of plain training.",
            rule="at most",
        ),
        Claim(
            "A schedule, or damped group DRO, needs no such price",
            max(worst["schedule"], worst["damped DRO"]) - worst["guarded"],
            "worst group's mean loss beyond that of the best guarded weights",
            0.0,
            f"Areas under the gap: {gap['schedule'] / gap['plain']:.3f} and {gap['damped DRO'] / gap['plain']:.3f} of "
            "that of plain training.",
            rule="at most",
        ),
        Claim(
            "Simulated students of every group are harmed, too",
            float((harm / error).min()),
            "smallest rise of a group's last loss, in standard errors",
            4.0,
            seeds=ends[0].sizes["seed"],
            error=1.0,
            neutral=0.0,
        ),
    )


def pictures(runs: Runs) -> dict[str, Any]:
    """Worst against mean loss: levelling down stops high on the diagonal."""
    from tiltmeter_lab.shared.pictures import lines

    rows = []
    for name in ("plain", "unguarded", "guarded", "schedule"):
        loss = runs[name]["loss"].transpose("time", "group").values
        mean = loss @ PROBLEMS["A"][0].weight.values
        rows += [(float(m), float(w), name) for m, w in zip(mean[1:], loss[1:].max(1), strict=True)]
    return {"Worst group against mean": lines(rows, "mean loss", "loss of the worst group", "pulls", zero=False)}
