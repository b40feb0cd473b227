"""Normalised gradients: with small batches they are no balance, and Jacobian descent is nothing but balance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import tiltmeter as tm
from tiltmeter_lab.catalogue import Keep, Runs
from tiltmeter_lab.claim import Claim
from tiltmeter_lab.shared.steered_cases import PROBLEMS, evaluations

TITLE = "Normalised group gradients count a group like the root of its points; UPGrad on small batches only balances"
PAPER = "Francazi, Baity-Jesi and Lucchi (2023); Quinton and Rey, Jacobian Descent (2024); theory of this package"
NEEDS: tuple[str, ...] = ()
BATCH = 64


@dataclass(frozen=True)
class Setting:
    """The size of the simulation; batches are of 64 points."""

    d: int = 200
    until: float = 4.0
    seeds: int = 4


QUICK, FULL = Setting(), Setting(d=2000, until=20.0, seeds=12)


def run(setting: Setting, keep: Keep) -> Runs:
    """The limit of large batches in still larger dimensions, balanced and natural batches; and simulated students."""
    problem = PROBLEMS["A"][0]
    even = {"+": 0.5, "-": 0.5}
    at = np.unique(np.rint(np.linspace(1.0, setting.until, 4) * setting.d)) / setting.d

    def sgd(law: tm.interventions.GroupIntervention, lr: float, proportions: Mapping[Any, Any] | None) -> tm.SGD:
        return tm.SGD(lr=lr, batch=BATCH, proportions=proportions, interventions=(law,))

    arms: dict[str, tm.SGD] = {
        "normalised, balanced": sgd(tm.interventions.NormalisedGradient(), 0.05, even),
        "normalised, natural": sgd(tm.interventions.NormalisedGradient(), 0.05, None),
        "UPGrad, natural": sgd(tm.interventions.UPGrad(), 0.2, None),
    }
    found = {}
    for name, chosen in arms.items():
        found[f"{name}, limit"] = keep(
            f"{name}, limit", lambda chosen=chosen: tm.theory.gram_limit(problem, chosen, evaluations(60.0, 200))  # type: ignore[misc]
        )  # fmt: skip
        found[f"{name}, simulated"] = keep(
            f"{name}, simulated",
            lambda chosen=chosen: tm.simulate(  # type: ignore[misc]
                problem,
                chosen,
                at,
                setting.d,
                setting.seeds,
                curves=("loss", "pull"),
                method=tm.theory.Chain(progress=False),
            ),
        )
    balanced = tm.SGD(lr=0.2, batch=BATCH, weights={"+": 0.5 / 0.75, "-": 2.0})
    found["re-weighted"] = keep("re-weighted", lambda: tm.predict(problem, balanced, evaluations(60.0, 200), ("loss",)))
    return found


def claims(runs: Runs) -> tuple[Claim, ...]:
    """Gaps at the end in the limit; UPGrad equals re-weighting; simulated students are near the limit."""
    ends = {
        name: runs[f"normalised, {name}, limit"]["loss"].isel(time=-1).diff("group").item()
        for name in ("balanced", "natural")
    }
    pull = runs["normalised, natural, limit"]["pull"].isel(time=1).values
    same = float(abs(runs["UPGrad, natural, limit"]["loss"] - runs["re-weighted"]["loss"]).max())
    far = []
    for name in ("normalised, balanced", "normalised, natural", "UPGrad, natural"):
        seen = runs[f"{name}, simulated"]["loss"]
        exact = runs[f"{name}, limit"]["loss"].interp(time=seen.coords["time"].values)
        far.append(float(abs(seen.mean("seed").values - exact.values).max()))
    seeds = runs["UPGrad, natural, simulated"]["loss"].sizes["seed"]
    ratio = float(pull[0] / pull[1])
    root = float(np.sqrt(0.75 * 1.5 / (0.25 * 0.5)))
    return (
        Claim(
            "With natural batches the larger group counts more, like the root of its points over its variance",
            abs(ratio / root - 1.0),
            "relative distance of the first ratio of pulls from the rule",
            0.01,
            f"{ratio:.3f} against {root:.3f}.",
            rule="at most",
        ),
        Claim("So a gap remains at the end", abs(ends["natural"]), "gap in loss", 0.1),
        Claim("Balanced batches take it away", abs(ends["balanced"]), "gap in loss", 0.01, rule="at most"),
        Claim("UPGrad is balancing", same, "largest difference of a loss from re-weighting", 1e-6, rule="at most"),
        Claim(
            f"Simulated students with batches of {BATCH} are near the limit",
            max(far),
            "largest distance of a mean loss",
            0.02,
            rule="at most",
            seeds=seeds,
            safe=False,
        ),
    )


def pictures(runs: Runs) -> dict[str, Any]:
    """Losses in the limit."""
    from tiltmeter_lab.shared.pictures import lines

    rows = [
        (float(t), float(v), f"{group}, {name} batches")
        for name in ("natural", "balanced")
        for group in ("+", "-")
        for t, v in zip(
            runs[f"normalised, {name}, limit"]["loss"].coords["time"].values[1:],
            runs[f"normalised, {name}, limit"]["loss"].sel(group=group).values[1:],
            strict=True,
        )
    ]
    return {"Losses under normalised gradients": lines(rows, "t", "loss", "group and batches", log_x=True, zero=False)}
