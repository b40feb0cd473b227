"""cifar-groups: animals against things of CIFAR-10 in one network, at several shares of the first group."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np

import tiltmeter as tm
import tiltmeter_lab as lab
from tiltmeter_lab.catalogue import Keep, Runs
from tiltmeter_lab.claim import Claim, whether
from tiltmeter_lab.shared.drawn_ensemble import drawn_ensemble
from tiltmeter_lab.shared.lead import changes
from tiltmeter_lab.shared.network_students import student
from tiltmeter_lab.shared.seed_study import seed_study

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")

TITLE = "Two groups of CIFAR-10 classes: the group preferred first need not be the one preferred last"
PAPER = "Jain, Nobahari, Baratin and Sarao Mannelli, Bias in Motion (2024), experiments on CIFAR-10"
NEEDS: tuple[str, ...] = ("cifar10",)

#: Group: classes labelled +1, classes labelled -1.
GROUPS = {
    "group 1": (("deer", "bird"), ("frog", "horse")),
    "group 2": (("cat", "airplane"), ("automobile", "truck")),
}
FIRST, SECOND = GROUPS
#: The step at which the first gap is told, the same for every share of the groups.
EARLY = 25
#: The setting was chosen on other seeds and another split; these had not been used.
FRESH, SPLIT = 2000, 7


@dataclass(frozen=True)
class Setting:
    """One hidden layer, a last layer that starts at zero, a share `rho` of the first group, half the squared error.

    `held_out` is the number of held-out images of each group, of 24,000: with 4,000 of them and random first scores,
    most leads were not clear."""

    rhos: tuple[float, ...] = (0.5, 0.87, 0.95)
    seeds: int = 3
    steps: int = 600
    batch: int = 64
    hidden: int = 256
    lr: float = 5e-3
    held_out: int = 4000
    per_decade: int = 3
    together: int | None = None


QUICK = Setting()
FULL = Setting(rhos=(0.5, 0.8, 0.85, 0.87, 0.9, 0.95), seeds=8, steps=5000, held_out=12_000, per_decade=6, together=2)


@cache
def points() -> tm.GroupedData:
    """Return all images of the eight classes, flat and standardised."""
    numbers: dict[str, Any] = {
        name: tuple(tuple(CLASSES.index(one) for one in classes) for classes in pair) for name, pair in GROUPS.items()
    }
    parts = lab.data.cifar10("train"), lab.data.cifar10("test")
    x = lab.data.standardised(np.concatenate([part.x for part in parts]).reshape(sum(map(len, parts)), -1))
    return lab.data.by_classes(x, np.concatenate([part.y for part in parts]), numbers)


def run(setting: Setting, keep: Keep) -> Runs:
    """One ensemble of seeds for every share."""
    arms = [f"rho {rho:g}" for rho in setting.rhos]
    return seed_study(keep, "cifar-groups", setting, arms, range(FRESH, FRESH + setting.seeds))


def arm(setting: Setting, name: str, seeds: list[int]) -> tm.Trajectory:
    """Some seeds at one share."""
    data = lab.data.set_aside(points(), setting.held_out, np.random.default_rng(SPLIT))
    rho = next(rho for rho in setting.rhos if name == f"rho {rho:g}")
    return drawn_ensemble(
        setting, partial(student, 3072, (setting.hidden,)), data, {FIRST: rho, SECOND: 1.0 - rho}, seeds
    )


def claims(runs: Runs) -> tuple[Claim, ...]:
    """The first leader is not always the last; a large majority leads last."""
    found = {name: (gap_at(one, EARLY), gap_at(one, np.inf)) for name, one in runs.items()}
    names = list(runs)
    first, last = found[names[0]][1], found[names[-1]][1]
    seeds = len(runs[names[0]].origin.seeds)
    # The error rate is divided among the shares, so that a change at any of them is clear at 5 %.
    shown = {name: changes(one, "loss", (FIRST, SECOND), level=0.05 / len(runs)) for name, one in runs.items()}
    crossing = [name for name, crossed in shown.items() if crossed]
    return (
        whether(
            "The group preferred first need not be the group preferred last",
            bool(crossing),
            f"is a lead change clear at one of {len(found)} shares, by points and seeds together",
            f"Loss of {FIRST} minus that of {SECOND} at step {EARLY} and last: {_told(found)}. Errors count seeds and "
            f"pictures. A lead change is clear at: {', '.join(crossing) or 'none'}.",
            seeds=seeds,
            safe=False,
        ),
        Claim(
            "The larger the share of a group, the better off it is in the end",
            first[0] - last[0],
            f"final loss of {FIRST} minus that of {SECOND}, at {names[0]} less at {names[-1]}",
            0.01,
            error=float(np.hypot(first[1], last[1])),
            seeds=seeds,
            neutral=0.0,
        ),
    )


def gap_at(one: tm.Trajectory, step: float) -> tuple[float, float]:
    """Loss of the first group minus that of the second at the last look up to this step, and its error.

    Seeds share the held-out images, so the error of these images is added to the scatter over seeds.
    """
    times = one["loss"].coords["time"].values
    held_out = int(np.searchsorted(times, step, side="right")) - 1
    loss = one["loss"].isel(time=held_out)
    gap = (loss.sel(group=FIRST) - loss.sel(group=SECOND)).values
    of_seeds = float(gap.var(ddof=1) / len(gap)) if len(gap) > 1 else float("nan")
    of_points = float((one["loss_se"].isel(time=held_out).mean("seed") ** 2).sum()) if "loss_se" in one else 0.0
    return float(gap.mean()), float((of_seeds + of_points) ** 0.5)


def _told(found: dict[str, tuple[tuple[float, float], tuple[float, float]]]) -> str:
    return "; ".join(
        f"{name}: {' and '.join(f'{gap:+.3f} ± {error:.3f}' for gap, error in ends)}" for name, ends in found.items()
    )


def pictures(runs: Runs) -> dict[str, Any]:
    """The loss of both groups at every share."""

    return {f"{FIRST} and {SECOND}, {name}": tm.plot.curves(one, title=name) for name, one in runs.items()}
