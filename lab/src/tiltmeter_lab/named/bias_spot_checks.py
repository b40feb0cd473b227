"""Spot checks: five simplicity biases in a residual network and a transformer, beside a fully connected network."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
import xarray as xr
from torch import nn

import tiltmeter as tm
import tiltmeter_lab as lab
from tiltmeter_lab.catalogue import Keep, Runs
from tiltmeter_lab.claim import Claim
from tiltmeter_lab.networks import resnet18, transformer
from tiltmeter_lab.shared.atlas_tasks import two_features

TITLE = "Simplicity biases in a ResNet-18 and a transformer, at a small scale"
PAPER = (
    "Shah et al. (2020), Belrose et al. (2024), Huh et al. (2023), Le and Jegelka (2022), Vasudeva et al. (2024): each "
    "bias was shown in some architectures"
)
NEEDS: tuple[str, ...] = ()

#: Each as one number, 0 without the bias, defined as in the atlas of biases.
BIASES = ("shortcut", "distributional", "low-rank weights", "low-rank features", "low sensitivity")
NETWORKS = ("fully connected", "ResNet-18", "transformer")
#: The accuracy above which a network counts as having learned something, and the bound of a bias that is not there.
LEARNED, ABSENT = 0.6, 0.1


@dataclass(frozen=True)
class Setting:
    """Images of 8 x 8 pixels; a residual network of `width` to 8 `width` channels (the original has 64 to 512)."""

    width: int = 16
    points: int = 400
    steps: int = 150
    seeds: int = 3


QUICK = Setting()
FULL = Setting(width=64, points=1000, steps=1500, seeds=5)


def network(name: str, width: int) -> nn.Module:
    """One output, for flat images; the transformer takes the rows of an image as its tokens."""
    if name == "ResNet-18":
        return nn.Sequential(nn.Unflatten(1, (1, 8, 8)), resnet18(1, 1, width))
    if name == "transformer":
        return nn.Sequential(nn.Unflatten(1, (8, 8)), transformer(8, 8))
    return tm.modules.mlp(64, (64, 64), 1)


def run(setting: Setting, keep: Keep) -> Runs:
    """One run for each network, over seeds."""
    return {name: keep(name, partial(_trained, setting, name)) for name in NETWORKS}


def _trained(setting: Setting, name: str) -> tm.Trajectory:
    runs = []
    for seed in range(setting.seeds):
        task = two_features("digits", setting.points, seed)
        measures = (
            lab.measures.Randomised({"easy": task.easy, "hard": task.hard}),
            lab.measures.CloneAccuracy({"class covariance": lab.data.ClassCovariance()}),
            lab.measures.StableRank(),
            lab.measures.EffectiveRank(),
            lab.measures.NoiseSensitivity(sigma=0.2, patch=8, repeats=1, points=80),
        )
        torch.manual_seed(seed)
        recipe = tm.Recipe(partial(torch.optim.Adam, lr=1e-3), steps=setting.steps, batch=32, loss=tm.Square())
        watch = tm.Watch(when=tm.record.log_spaced(7), measures=measures)
        runs.append(tm.train(network(name, setting.width), task.train, task.held_out, recipe, watch=watch, seed=seed))
    return tm.stack(runs)


def biases(trajectory: tm.Trajectory) -> xr.DataArray:
    """The five numbers over time and seeds."""
    exchanged = trajectory["randomised_accuracy"]
    accuracy = exchanged.isel(feature=0).sel(part="none", drop=True)
    part = exchanged.sel(part="set")
    clones = trajectory["clone_accuracy"]
    above = clones.sel(clone="class covariance", drop=True) - 0.5
    weights = trajectory["stable_rank"] / trajectory["stable_rank_null"]
    sensitivity, null = trajectory["noise_sensitivity"], trajectory["noise_sensitivity_null"]
    found = {
        "shortcut": part.sel(feature="hard", drop=True) - part.sel(feature="easy", drop=True),
        "distributional": (above / (clones.sel(clone="real", drop=True) - 0.5)).where(accuracy > LEARNED),
        # The last layer has one row, whose rank is 1 whatever it holds.
        "low-rank weights": 1.0 - weights.isel(layer=slice(0, -1)).mean("layer"),
        "low-rank features": 1.0 - trajectory["effective_rank"] / trajectory["effective_rank_null"],
        "low sensitivity": (1.0 - sensitivity / null).where(null > 0.05),
    }
    plain = [one.drop_vars([name for name in one.coords if name not in one.dims]) for one in found.values()]
    return xr.concat(plain, "bias", join="exact").assign_coords(bias=list(found)).transpose("time", "bias", "seed")


def claims(runs: Runs) -> tuple[Claim, ...]:
    """Whether each bias of each network is above its null value at the end; controls at the start."""
    seeds = runs[NETWORKS[0]]["effective_rank"].sizes["seed"]
    found = []
    for name in NETWORKS:
        table = biases(runs[name])
        for bias in BIASES:
            last, first = (table.sel(bias=bias).isel(time=place).values for place in (-1, 0))
            mean, error = _mean(last)
            before = _mean(first)[0]
            found.append(
                Claim(
                    f"{name}: the bias of {bias} shows at the end of training",
                    mean,
                    "its number, 0 without the bias",
                    ABSENT,
                    f"Before training {before:.2f}." if np.isfinite(before) else "",
                    error=error,
                    seeds=seeds,
                    safe=False,
                    neutral=0.0,
                )
            )
        mean, error = _mean(np.abs(table.sel(bias="shortcut").isel(time=0).values))
        found.append(
            Claim(
                f"Control, {name}: an untrained network uses neither feature",
                mean,
                "size of the number for the shortcut before training",
                ABSENT,
                rule="at most",
                error=error,
                seeds=seeds,
                safe=False,
            )
        )
    return tuple(found)


def _mean(values: np.ndarray) -> tuple[float, float | None]:
    values = values[np.isfinite(values)]
    if not len(values):
        return np.nan, None
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else None


def tables(runs: Runs) -> dict[str, tm.results.page.Table]:
    """All numbers before training and at the end, and the accuracy on held-out images."""
    rows = []
    for name in NETWORKS:
        table = biases(runs[name]).mean("seed")
        right = runs[name]["randomised_accuracy"].isel(feature=0, time=-1).sel(part="none").mean("seed")
        told = [f"{float(a):.2f} to {float(b):.2f}" for a, b in zip(table[0].values, table[-1].values, strict=True)]
        rows.append((name, f"{float(right):.2f}", *told))
    title = "Simplicity biases before training and at the end, mean over seeds"
    return {title: tm.results.page.Table(("network", "accuracy", *BIASES), tuple(rows))}


def pictures(runs: Runs) -> dict[str, Any]:
    """Every network's biases over training."""
    drawn = {}
    for name in NETWORKS:
        title = f"Simplicity biases of the network: {name}"
        drawn[title] = lab.plot.labelled_lines(
            biases(runs[name]), "bias", null=0.0, title=title, y_title="bias, 0 without it"
        )
    return drawn
