"""shortcuts: four small settings in which an easy feature is preferred to a more predictive or a harder one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import tiltmeter as tm
import tiltmeter_lab as lab
from tiltmeter_lab.catalogue import Keep, Runs
from tiltmeter_lab.claim import Claim
from tiltmeter_lab.shared import shortcut_availability, shortcut_domino, shortcut_moons, shortcut_shares
from tiltmeter_lab.shared.shortcut_availability import Amplified
from tiltmeter_lab.shared.shortcut_domino import Domino
from tiltmeter_lab.shared.shortcut_moons import Moons
from tiltmeter_lab.shared.shortcut_shares import Shares

TITLE = "Easy features win: in decisions, in representations, and over the gradients of others"
PAPER = (
    "Tsoy and Konstantinov 2024 (domino), Hermann et al. 2024 (availability), Lampinen et al. 2024 (representations), "
    "Pezeshki et al. 2021 (starvation), Scimeca et al. 2022 (cues)"
)
NEEDS: tuple[str, ...] = ()


@dataclass(frozen=True)
class Setting:
    """One setting for each part."""

    seeds: int = 3
    domino: Domino = field(default_factory=Domino)
    amplified: Amplified = field(default_factory=Amplified)
    shares: Shares = field(default_factory=Shares)
    moons: Moons = field(default_factory=Moons)


QUICK = Setting()
FULL = Setting(
    seeds=10,
    domino=Domino(steps=1500),
    amplified=Amplified(points=10_000, steps=3000),
    shares=Shares(steps=1500),
    moons=Moons(width=500, steps=1000),
)


def run(setting: Setting, keep: Keep) -> Runs:
    """All arms of all parts."""
    seeds, runs = setting.seeds, {}
    for name, change in shortcut_domino.arms(setting.domino).items():
        arm = replace(setting.domino, **change)  # type: ignore[arg-type]
        runs[name] = keep(name, lambda arm=arm: shortcut_domino.trained(arm, seeds))  # type: ignore[misc]
    wide = setting.amplified
    runs["available-linear"] = keep("available-linear", lambda: shortcut_availability.converged_linear(wide, seeds))
    for depth in wide.depths:
        name = f"available-depth-{depth}"
        runs[name] = keep(name, lambda depth=depth: shortcut_availability.networks(wide, depth, seeds))  # type: ignore[misc]
    runs["shares"] = keep("shares", lambda: shortcut_shares.trained(setting.shares, seeds))
    for name, (margin, strength) in shortcut_moons.arms(setting.moons).items():
        runs[name] = keep(
            name,
            lambda margin=margin, strength=strength: shortcut_moons.trained(setting.moons, margin, strength, seeds),  # type: ignore[misc]
        )
    return runs


def claims(runs: Runs) -> tuple[Claim, ...]:
    """The published findings, each with its verdict; evaluations and ratios are the same in all settings."""
    return (
        *shortcut_domino.claims(runs, QUICK.domino),
        *shortcut_availability.claims(runs, QUICK.amplified),
        *shortcut_shares.claims(runs),
        *shortcut_moons.claims(runs),
    )


def pictures(runs: Runs) -> Mapping[str, Any]:
    """The probe of the last layer, cues, shares of the representation, and reliance against amplification."""

    names = {
        "domino": "easy block",
        "domino-no-decay": "easy block, no weight decay",
        "domino-control": "no easy block",
        "domino-large-weights": "easy block, larger weights at first",
    }
    kinds = {"available-linear": "linear, converged"}
    kinds |= {f"available-depth-{depth}": f"{depth} hidden" for depth in QUICK.amplified.depths}
    return {
        "What a linear probe finds of the digit in the last layer": tm.plot.curves(
            *(runs[name] for name in names), curve="probe_accuracy", labels=list(names.values())
        ),
        "Which cue decides": tm.plot.curves(
            lab.plot.as_groups(runs["domino"], "cue_adoption", "cue"), curve="cue_adoption"
        ),
        "Shares of the representation": tm.plot.curves(
            lab.plot.as_groups(runs["shares"], "feature_variance", "feature"), curve="feature_variance"
        ),
        "Bias towards the louder feature": lab.plot.reliance(
            {label: runs[name]["availability_bias"] for name, label in kinds.items()}
        ),
    }
