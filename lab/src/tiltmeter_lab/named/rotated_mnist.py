"""rotated-mnist: faint upright digits (the majority) and bright turned ones; the label is even or odd."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from torch import nn

import tiltmeter as tm
import tiltmeter_lab as lab
from tiltmeter_lab.catalogue import Keep, Runs
from tiltmeter_lab.claim import Claim, whether
from tiltmeter_lab.shared.drawn_ensemble import drawn_ensemble
from tiltmeter_lab.shared.lead import claim, of_each_seed
from tiltmeter_lab.shared.over_seeds import share
from tiltmeter_lab.shared.picture_tasks import imbalanced, rotated
from tiltmeter_lab.shared.seed_study import seed_study

TITLE = "Upright and turned MNIST: variance decides who leads first, number who leads last"
PAPER = "Jain, Nobahari, Baratin and Sarao Mannelli, Bias in Motion (2024), experiments on rotated MNIST"
NEEDS: tuple[str, ...] = ("mnist",)

UPRIGHT, TURNED = "upright", "turned"
PLAIN, IMBALANCED, CONTROL = "two groups", "even digits", "without difference in contrast"


@dataclass(frozen=True)
class Setting:
    """Contrasts of upright and turned digits, share of the upright, and rates of even digits among them."""

    contrast: tuple[float, float] = (0.4, 1.0)
    degrees: float = 90.0
    rho: float = 0.75
    rates: tuple[float, ...] = (0.62,)
    seeds: int = 20
    steps: int = 1000
    batch: int = 16
    hidden: int = 100
    lr: float = 0.01
    points: int = 20_000
    held_out: int = 2000
    per_decade: int = 10
    together: int | None = None


QUICK = Setting()
FULL = Setting(
    rates=(0.55, 0.6, 0.62, 0.65, 0.7), seeds=100, steps=6000, held_out=10_000, points=30_000, per_decade=20, together=5
)


def two_groups(
    setting: Setting, contrast: tuple[float, float], rate: float | None
) -> tuple[tm.GroupedData, tm.GroupedData]:
    """Return different training digits in the two groups, and the same test digits in both orientations."""
    train, test = lab.data.mnist("train"), lab.data.mnist("test")
    pixels = lab.data.standardised(np.concatenate([train.x, test.x]))
    pixels -= pixels.mean(0)
    y = np.where(np.concatenate([train.y, test.y]) % 2 == 0, 1, -1)
    rng = np.random.default_rng(0)
    drawn = rng.permutation(len(train))[: 2 * setting.points]
    seen = len(train) + rng.permutation(len(test))[: setting.held_out]
    found = []
    for upright, turned in ((drawn[: setting.points], drawn[setting.points :]), (seen, seen)):
        x = [pixels[upright] * contrast[0], rotated(pixels[turned], setting.degrees) * contrast[1]]
        members = np.repeat([UPRIGHT, TURNED], [len(upright), len(turned)])
        flat = np.concatenate(x).reshape(len(members), -1).astype(np.float32)
        data = tm.GroupedData(flat, np.concatenate([y[upright], y[turned]]), members, groups=[UPRIGHT, TURNED])
        found.append(data if rate is None else imbalanced(data, {UPRIGHT: rate}))
    return found[0], found[1]


def network(hidden: int) -> nn.Sequential:
    """Make a network whose outputs start at zero: random outputs give the group of larger variance a worse start."""
    model = tm.modules.mlp(28 * 28, (hidden,), 1)
    for parameter in model[-1].parameters():
        nn.init.zeros_(parameter)
    return model


def run(setting: Setting, keep: Keep) -> Runs:
    """Two groups; the same with more even digits among the upright, at several rates; the same with equal contrast."""
    return seed_study(keep, "rotated-mnist", setting, list(arms(setting)), range(setting.seeds))


def arms(setting: Setting) -> dict[str, tuple[tuple[float, float], float | None]]:
    """Contrasts of the two groups and rate of even digits, by name."""
    equal = (setting.contrast[1], setting.contrast[1])
    asked: dict[str, tuple[tuple[float, float], float | None]] = {PLAIN: (setting.contrast, None)}
    asked |= {f"{IMBALANCED} {rate:g}": (setting.contrast, rate) for rate in setting.rates}
    return asked | {CONTROL: (equal, None)}


def arm(setting: Setting, name: str, seeds: list[int]) -> tm.Trajectory:
    """Some seeds of one of them."""
    data = two_groups(setting, *arms(setting)[name])
    shares = {UPRIGHT: setting.rho, TURNED: 1.0 - setting.rho}
    return drawn_ensemble(setting, partial(network, setting.hidden), data, shares, seeds)


def claims(runs: Runs) -> tuple[Claim, ...]:
    """One crossing; two with label imbalance; none where contrast is equal."""
    alone = of_each_seed(runs[PLAIN])
    crossed, _ = share([one.first == TURNED and one.last == UPRIGHT for one in alone])
    twice = {name: tm.leaders(one, "loss") for name, one in runs.items() if name.startswith(IMBALANCED)}
    control = tm.leaders(runs[CONTROL], "loss")
    return (
        Claim(
            "The group of larger variance leads first, the larger group last",
            crossed,
            "share of runs that begin with the turned and end with the upright in the lead",
            0.5,
            f"In the mean over seeds: {claim(runs[PLAIN])}",
            seeds=len(alone),
            trials=len(alone),
        ),
        whether(
            "With label imbalance the lead changes twice",
            any(len(one.changes) >= 2 for one in twice.values()),
            "are two lead changes clear at some rate of even digits among the upright",
            " ".join(f"{name}: {one.headline.line}" for name, one in twice.items())
            + " The quick rate was chosen after a trial of several.",
            seeds=len(alone),
            safe=False,
        ),
        whether(
            "Without a difference in contrast the lead does not change",
            not control.changes,
            "is no lead change clear",
            f"There: {control.headline.line}",
            seeds=len(alone),
            safe=False,
        ),
    )


def pictures(runs: Runs) -> dict[str, Any]:
    """The loss of both groups in the three settings."""

    return {name.capitalize(): tm.plot.curves(one, title=name.capitalize()) for name, one in runs.items()}
