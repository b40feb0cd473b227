"""celeba-pairs: predict one attribute of faces; another attribute defines the groups."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import tiltmeter as tm
from tiltmeter_lab.catalogue import Keep, Runs
from tiltmeter_lab.claim import Claim, not_run, whether
from tiltmeter_lab.networks import small_cnn

TITLE = "CelebA: which of two groups of faces is served better, pair by pair of attributes"
PAPER = "Jain, Nobahari, Baratin and Sarao Mannelli, Bias in Motion (2024), experiments on CelebA"
NEEDS: tuple[str, ...] = ("celeba",)

#: The attribute to predict, and the attribute that defines the groups.
PAIRS = (("Eyeglasses", "Bags_Under_Eyes"), ("Bangs", "Blurry"), ("Young", "Blond_Hair"))


@dataclass(frozen=True)
class Setting:
    """How many faces of which size, and how a small convolutional network is trained on them.

    The published numbers are not known to us. The full setting takes all faces, twice as large, and a wider network,
    which takes a graphics card.
    """

    points: int = 4000
    held_out: int = 2000
    side: int = 32
    width: int = 16
    lr: float = 0.05
    steps: int = 500
    batch: int = 32
    per_decade: int = 8
    seeds: int = 3


QUICK = Setting()
FULL = Setting(points=162_770, held_out=19_962, side=64, width=64, steps=50_000, batch=64, per_decade=20, seeds=10)


def faces(part: tm.data.Faces, count: int, side: int) -> tuple[np.ndarray, np.ndarray]:
    """Return some photographs of one part, with pixels standardised by fixed numbers, and their places."""
    places = np.sort(np.random.default_rng(0).permutation(len(part))[:count])
    return part.pictures(places, side).astype(np.float32) / 127.5 - 1.0, places


def run(setting: Setting, keep: Keep) -> Runs:
    """One ensemble of seeds for every pair of attributes."""
    parts = {"train": tm.data.celeba("train"), "test": tm.data.celeba("test")}
    drawn = {
        name: faces(parts[name], count, setting.side)
        for name, count in (("train", setting.points), ("test", setting.held_out))
    }

    def grouped(part: str, target: str, group: str) -> tm.GroupedData:
        x, places = drawn[part]
        return tm.data.by_attributes(x, parts[part].has(target)[places], parts[part].has(group)[places], group)

    def make(target: str, group: str) -> tm.Trajectory:
        return tm.ensemble(
            partial(small_cnn, 3, 1, setting.width),
            grouped("train", target, group),
            grouped("test", target, group),
            tm.Recipe(lr=setting.lr, momentum=0.9, steps=setting.steps, batch=setting.batch, loss=tm.Logistic()),
            watch=tm.Watch(when=tm.record.log_spaced(setting.per_decade)),
            seeds=setting.seeds,
        )

    return {name_of(*pair): keep(name_of(*pair), partial(make, *pair)) for pair in PAIRS}


def name_of(target: str, group: str) -> str:
    """A pair in words.

    >>> name_of("Young", "Blond_Hair")
    'Young by Blond Hair'
    """
    return f"{target} by {group}".replace("_", " ")


def claims(runs: Runs) -> tuple[Claim, ...]:
    """For every pair, whether the first leader is not the last."""
    sentence = "{}: the group that leads first is not the one that leads last"
    found = []
    for pair in PAIRS:
        name = name_of(*pair)
        if name not in runs:
            found.append(not_run(sentence.format(name), "Needs the photographs of CelebA."))
            continue
        lead = tm.leaders(runs[name], "loss")
        seeds = runs[name]["loss"].sizes["seed"]
        told = f"In loss: {lead.headline.line}"
        found.append(
            whether(
                sentence.format(name), lead.first != lead.last, "does the lead change", told, seeds=seeds, safe=False
            )
        )
    return tuple(found)


def pictures(runs: Runs) -> dict[str, Any]:
    """The loss of both groups, pair by pair."""

    return {name: tm.plot.curves(one, title=name) for name, one in runs.items()}
