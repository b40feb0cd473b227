"""An easy and a hard feature, both learned: how much of the variance of the last layer each explains."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import torch

import tiltmeter as tm
import tiltmeter_lab as lab
from tiltmeter_lab.catalogue import Runs
from tiltmeter_lab.claim import Claim
from tiltmeter_lab.shared.over_seeds import mean_claim


@dataclass(frozen=True)
class Shares:
    """One bit and a parity of three others, on all points of the cube; the four classes encode both."""

    bits: int = 8
    hidden: tuple[int, ...] = (64, 64, 32)
    lr: float = 1e-3
    steps: int = 800


def trained(setting: Shares, seeds: int) -> tm.Trajectory:
    """All seeds."""
    return tm.stack([_one(setting, seed) for seed in range(seeds)])


def _one(setting: Shares, seed: int) -> tm.Trajectory:
    x = lab.data.cube(setting.bits)
    easy, hard = x[:, 0], lab.data.Parity((1, 2, 3))(x)
    data = tm.GroupedData(x, (easy > 0) + 2 * (hard > 0), "label")
    torch.manual_seed(seed)
    return tm.train(
        tm.modules.mlp(setting.bits, setting.hidden, 4),
        data,
        data,
        tm.Recipe(partial(torch.optim.Adam, lr=setting.lr), steps=setting.steps, batch=len(x)),
        watch=tm.Watch(
            when=tm.record.at([0, setting.steps // 8, setting.steps // 4, setting.steps // 2, setting.steps]),
            measures=(lab.measures.FeatureVariance({"easy": easy, "hard": hard}),),
        ),
        seed=seed,
    )


def claims(runs: Runs) -> tuple[Claim, ...]:
    """Return the claims about shares."""
    last = runs["shares"]["feature_variance"].isel(time=-1)
    wrong = float(runs["shares"]["error"].isel(time=-1).max())
    return (
        mean_claim(
            "A feature that is easier to learn takes up more of the representation, though both are learned",
            last.sel(feature="easy") / last.sel(feature="hard"),
            "mean ratio of explained variances",
            2.0,
            f"Shares {float(last.sel(feature='easy').mean()):.2f} and {float(last.sel(feature='hard').mean()):.2f}; "
            f"largest error {wrong:.2g}.",
            neutral=1.0,
        ),
    )
