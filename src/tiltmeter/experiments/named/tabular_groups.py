"""tabular-groups: people in tables (Adult by sex, COMPAS by race, German credit by sex): who leads, and when?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from tiltmeter.analysis.crossings import crossings
from tiltmeter.analysis.over_seeds import mean_and_error
from tiltmeter.data.grouped import GroupedData
from tiltmeter.data.public.adult import adult
from tiltmeter.data.public.compas import compas
from tiltmeter.data.public.german import german
from tiltmeter.experiments.catalogue import Keep, Runs
from tiltmeter.experiments.claim import Claim
from tiltmeter.losses import Logistic
from tiltmeter.networks.mlp import mlp
from tiltmeter.recipe import Recipe, Watch
from tiltmeter.record import Trajectory, log_spaced
from tiltmeter.training.ensemble import ensemble

TITLE = "Adult, COMPAS and German credit: which group is served better, and when that changes"
PAPER = "No published answer; data of Kohavi (1996), ProPublica (2016) and Hofmann (1994)"
NEEDS: tuple[str, ...] = ("adult", "compas", "german")

TABLES: dict[str, Callable[[], tuple[GroupedData, GroupedData]]] = {
    "Adult by sex": lambda: adult("sex"),
    "COMPAS by race": lambda: compas(),
    "German credit by sex": lambda: german("sex"),
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

    def make(load: Callable[[], tuple[GroupedData, GroupedData]]) -> Trajectory:
        train, look = load()
        return ensemble(
            partial(mlp, train.x.shape[1], (setting.hidden,), 1),
            train,
            look,
            Recipe(lr=setting.lr, steps=setting.steps, batch=setting.batch, loss=Logistic()),
            watch=Watch(when=log_spaced(setting.per_decade)),
            seeds=setting.seeds,
        )

    return {name: keep(name, partial(make, load)) for name, load in TABLES.items()}


def claims(runs: Runs) -> tuple[Claim, ...]:
    """For every table the last gap in error, and in which curves the first leader is not the last."""
    return tuple(_claim(name, one) for name, one in runs.items())


def _claim(name: str, one: Trajectory) -> Claim:
    found = {curve: crossings(one, curve) for curve in ASKED}
    last = one["error"].isel(time=-1)
    gap = last.isel(group=0) - last.isel(group=1)
    # Seeds share the held-out people, so their error is added to the scatter over seeds.
    people = float((one["error_se"].isel(time=-1).mean("seed") ** 2).sum() ** 0.5)
    middle, scatter = mean_and_error(gap)
    a, b = one["error"].coords["group"].values.tolist()
    told = "; ".join(
        f"{curve} {what.first_leader or 'nobody'}, {what.last_leader or 'nobody'}" for curve, what in found.items()
    )
    error = float((people**2 + (scatter**2 if gap.sizes["seed"] > 1 else 0.0)) ** 0.5)
    return Claim(
        f"{name}: the trained model is shown to err more often in one group",
        abs(middle) / error,
        f"final gap in error between {a} and {b}, in standard errors",
        2.0,
        f"The gap is {middle:.3f} ± {error:.3f}. Shown to lead first and last, by points and seeds together: {told}.",
        seeds=gap.sizes["seed"],
        safe=False,
    )


def pictures(runs: Runs) -> dict[str, Any]:
    """Loss and error of the groups of every table."""
    from tiltmeter.plot.curves import curves

    return {
        f"{name}, {curve}": curves(one, curve=curve, title=name)
        for name, one in runs.items()
        for curve in ("loss", "error")
    }
