"""tabular-groups: people in tables (Adult by sex, COMPAS by race, German credit by sex): who leads, and when?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import tiltmeter as tm
import tiltmeter_lab as lab
from tiltmeter_lab.catalogue import Keep, Runs
from tiltmeter_lab.claim import Claim
from tiltmeter_lab.shared.over_seeds import mean_and_error

TITLE = "Adult, COMPAS and German credit: which group is served better, and when that changes"
PAPER = "No published answer; data of Kohavi (1996), ProPublica (2016) and Hofmann (1994)"
NEEDS: tuple[str, ...] = ("adult", "compas", "german")

TABLES: dict[str, Callable[[], tuple[tm.GroupedData, tm.GroupedData]]] = {
    "Adult by sex": lambda: tm.data.adult("sex"),
    "COMPAS by race": lambda: tm.data.compas(),
    "German credit by sex": lambda: lab.data.german("sex"),
}
#: Curves in which leaders are determined: they may cross in one and not in another.
ASKED = ("loss", "error", "fpr", "tpr")


@dataclass(frozen=True)
class Setting:
    """One hidden layer, logistic loss, plain SGD on finite data."""

    seeds: int = 8
    steps: int = 2000
    batch: int = 32
    hidden: int = 32
    lr: float = 0.02
    per_decade: int = 10


QUICK = Setting()
FULL = Setting(seeds=32, steps=20_000, per_decade=20)


def run(setting: Setting, keep: Keep) -> Runs:
    """One ensemble of seeds for every table."""

    def make(load: Callable[[], tuple[tm.GroupedData, tm.GroupedData]]) -> tm.Trajectory:
        train, held_out = load()
        return tm.ensemble(
            partial(tm.modules.mlp, train.x.shape[1], (setting.hidden,), 1),
            train,
            held_out,
            tm.Recipe(lr=setting.lr, steps=setting.steps, batch=setting.batch, loss=tm.Logistic()),
            watch=tm.Watch(when=tm.record.log_spaced(setting.per_decade)),
            seeds=setting.seeds,
        )

    return {name: keep(name, partial(make, load)) for name, load in TABLES.items()}


def claims(runs: Runs) -> tuple[Claim, ...]:
    """For every table the last gap in error, and in which curves the first leader is not the last."""
    return tuple(_claim(name, one) for name, one in runs.items())


def _claim(name: str, one: tm.Trajectory) -> Claim:
    found = {curve: tm.leaders(one, curve) for curve in ASKED}
    last = one["error"].isel(time=-1)
    gap = last.isel(group=0) - last.isel(group=1)
    # Seeds share the held-out people, so their error is added to the scatter over seeds.
    people = float((one["error_se"].isel(time=-1).mean("seed") ** 2).sum() ** 0.5)
    middle, scatter = mean_and_error(gap)
    a, b = one["error"].coords["group"].values.tolist()
    told = "; ".join(f"{curve} {what.first or 'nobody'}, {what.last or 'nobody'}" for curve, what in found.items())
    error = float((people**2 + (scatter**2 if gap.sizes["seed"] > 1 else 0.0)) ** 0.5)
    return Claim(
        f"{name}: the trained model is shown to err more often in one group",
        abs(middle) / error,
        f"final gap in error between {a} and {b}, in standard errors",
        2.0,
        f"The gap is {middle:.3f} ± {error:.3f}. Shown to lead first and last, by points and seeds together: {told}.",
        seeds=gap.sizes["seed"],
        safe=False,
        error=1.0,
        neutral=0.0,
    )


def pictures(runs: Runs) -> dict[str, Any]:
    """Loss and error of the groups of every table."""

    return {
        f"{name}, {curve}": tm.plot.curves(one, curve=curve, title=name)
        for name, one in runs.items()
        for curve in ("loss", "error")
    }
