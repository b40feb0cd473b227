"""measures-on-people: what six measures of groups and two interventions find on census, court and photograph data."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch

import tiltmeter as tm
import tiltmeter_lab as lab
from tiltmeter_lab.catalogue import Keep, Runs
from tiltmeter_lab.claim import Claim
from tiltmeter_lab.named.cifar_groups import GROUPS, points
from tiltmeter_lab.networks import small_cnn
from tiltmeter_lab.shared.over_seeds import mean_and_error

TITLE = "Clipping, near points, associations, collapse, cues and frequencies, measured on real data"
PAPER = (
    "tiltmeter's own question, after Bagdasaryan et al. (2019), Dwork et al. (2012), Caliskan et al. (2017), Papyan et "
    "al. (2020), Geirhos et al. (2019)"
)
NEEDS: tuple[str, ...] = ("adult", "compas", "cifar10")
#: Six seeds from 5000 on left two findings open, and asked for 25. Seeds from here on had not been used.
FRESH = 6000


@dataclass(frozen=True)
class Setting:
    """Networks of one hidden layer on tables, a small convolutional one on photographs; `held_out` points of each."""

    hidden: int = 64
    lr: float = 0.05
    steps: int = 300
    picture_steps: int = 150
    held_out: int = 1500
    seeds: int = 3


QUICK = Setting()
FULL = Setting(steps=2000, picture_steps=600, held_out=3000, seeds=8)


def run(setting: Setting, keep: Keep) -> Runs:
    """Adult by sex, COMPAS by race, and the groups of CIFAR-10, each with the measures that suit it."""
    return {
        "adult": keep("adult", partial(_table, setting, "adult")),
        "compas": keep("compas", partial(_table, setting, "compas")),
        "photographs": keep("photographs", partial(_photographs, setting)),
    }


def _table(setting: Setting, name: str) -> tm.Trajectory:
    train, rest = tm.data.adult("sex") if name == "adult" else tm.data.compas()
    measures = (
        lab.measures.AggregatorBias(points=200),
        lab.measures.IndividualConsistency(),
        lab.measures.EmbeddingAssociation(),
        lab.measures.ClassCollapse(),
        lab.measures.GroupGiveaway(most=3),
        lab.measures.Sharpness(count=1, smallest=True),
    )
    runs = []
    for seed in range(FRESH, FRESH + setting.seeds):
        held_out = rest.take(np.sort(np.random.default_rng(seed).permutation(len(rest))[: setting.held_out]))
        torch.manual_seed(seed)
        runs.append(
            tm.train(
                tm.modules.mlp(train.x.shape[1], (setting.hidden,), 1),
                train,
                held_out,
                tm.Recipe(lr=setting.lr, steps=setting.steps, batch=64, loss=tm.Logistic()),
                watch=tm.Watch(when=tm.record.at([0, setting.steps // 10, setting.steps]), measures=measures),
                seed=seed,
            )
        )
    return tm.stack(runs)


def _photographs(setting: Setting) -> tm.Trajectory:
    whole = points()
    runs = []
    for seed in range(FRESH, FRESH + setting.seeds):
        order = np.random.default_rng(seed).permutation(len(whole))
        train, held_out = (whole.take(np.sort(part)) for part in (order[setting.held_out :], order[: setting.held_out]))
        images = [
            tm.GroupedData(part.x.reshape(-1, 3, 32, 32), part.y, [part.groups[code] for code in part.codes])
            for part in (train, held_out)
        ]
        torch.manual_seed(seed)
        watch = tm.Watch(when=tm.record.at([0, setting.picture_steps]), measures=(lab.measures.FrequencyReliance(),))
        adam = partial(torch.optim.Adam, lr=2e-3)
        recipe = tm.Recipe(adam, steps=setting.picture_steps, batch=64, loss=tm.Logistic())
        runs.append(tm.train(small_cnn(3, 1, 16), images[0], images[1], recipe, watch=watch, seed=seed))
    return tm.stack(runs)


def claims(runs: Runs) -> tuple[Claim, ...]:
    """One finding of each measure; directions were fixed before the runs."""
    adult, compas, photographs = (
        {name: curve.isel(time=-1) for name, curve in runs[key].items()} for key in ("adult", "compas", "photographs")
    )
    low, high = (photographs["filtered_accuracy"].sel(filter=name).mean("group") for name in ("low", "high"))
    clipped = adult["aggregator_bias"].sel(aggregator="clipped")
    giveaway = adult["group_giveaway"].max(("cue", "group")) - adult["group_giveaway_null"].max(("cue", "group"))
    subclass = adult["subclass_scatter"] - adult["subclass_scatter_null"]
    crossed = compas["cross_group_change"] - compas["cross_group_change_null"]
    return (
        _claim(
            "Clipped gradients drop more of the step that helps men than of that which helps women, on Adult",
            clipped.sel(group="Male") - clipped.sel(group="Female"),
            "part of the step removed along the gradient of men, less that of women",
        ),
        _claim(
            "Near points of another race are decided differently more often than near points of one race, on COMPAS",
            crossed.mean("group"),
            "share of changed decisions across races less that within, mean over races",
        ),
        _claim(
            "In the last features women are associated with the lower income, on Adult",
            -adult["association_effect"],
            "effect of the association test, turned so that it is positive for this",
        ),
        _claim(
            "Within an income, the last features still tell women from men, on Adult",
            subclass.mean("class"),
            "part of a class's scatter between the sexes, less that of random groups",
        ),
        _claim(
            "A single column tells the sex before any training, on Adult",
            giveaway,
            "area of the best column less that of the best for random groups",
        ),
        _claim(
            "At the end the loss of every race still falls along some direction, on COMPAS",
            -compas["group_hessian_bottom"].max("group"),
            "size of the negative eigenvalue that is nearest to zero over races",
        ),
        _claim(
            f"Low frequencies alone are decided better than high ones alone, on {' and '.join(GROUPS)} of CIFAR-10",
            low - high,
            "accuracy on low-passed less that on high-passed photographs, mean over groups",
        ),
    )


def _claim(sentence: str, values: Any, what: str) -> Claim:
    each = np.asarray(values.values if hasattr(values, "values") else values)
    mean, error = mean_and_error(each)
    return Claim(sentence, mean, what, 0.0, error=error, seeds=each.size, safe=False)


def tables(runs: Runs) -> dict[str, Any]:
    """Accuracy of each group of photographs through every filter, with its 95 % interval over seeds."""
    found = runs["photographs"]["filtered_accuracy"].isel(time=-1)
    rows = [
        (str(name), *(_claim("", found.sel(filter=name, group=group), "").measured for group in GROUPS))
        for name in found.coords["filter"].values
    ]
    return {"Accuracy through filters, CIFAR-10": tm.results.page.Table(("filter", *GROUPS), rows)}


def pictures(_: Runs) -> dict[str, Any]:
    """None: one evaluation is a table."""
    return {}
