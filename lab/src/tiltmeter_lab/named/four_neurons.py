"""four-neurons: the merged network of four neurons ends where the wide one does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import xarray as xr
from torch import nn

import tiltmeter as tm
import tiltmeter_lab as lab
from tiltmeter_lab.catalogue import Keep, Runs
from tiltmeter_lab.claim import Claim
from tiltmeter_lab.shared.over_seeds import mean_claim
from tiltmeter_lab.shared.symmetric_network import clusters_of, extremes_of, network, steps_to

TITLE = "A wide network, condensed to four directions, ends as the four neurons it merges to"
PAPER = "Tsoy and Konstantinov, Simplicity bias of two-layer networks beyond linearly separable data, ICML 2024"
NEEDS: tuple[str, ...] = ()


@dataclass(frozen=True)
class Setting:
    """The wide network is merged when its sizes add up to `merge_at`, then both go on for `steps`."""

    seeds: int = 3
    width: int = 50
    d: int = 2
    points: int = 16
    scale: float = 1e-4
    large: float = 2.0
    lr: float = 1.0
    merge_at: float = 0.1
    steps: int = 600


QUICK = Setting()
FULL = Setting(seeds=10, width=4096, points=32, scale=1e-6, lr=0.25, steps=20_000)


@dataclass(frozen=True, eq=False)
class DistanceTo:
    """Relative distance of the model's outputs to another model's, now, on the points looked at."""

    other: nn.Module

    def __call__(self, snapshot: tm.measures.Snapshot) -> dict[str, xr.DataArray]:
        seen = snapshot.model
        own = seen.scores(seen.x)[:, 0].double()
        others = self.other(seen.x.to(next(self.other.parameters()).dtype)).reshape(-1).double()
        scale = own.norm().item()
        apart = (own - others).norm().item() / scale if scale > 0 else 0.0
        meaning = "relative distance of outputs to those of the four neurons"
        return {
            "output_distance": snapshot.reading(
                "output_distance", np.asarray(apart), {}, long_name=meaning, better="lower", null="1, a zero network"
            )
        }


def run(setting: Setting, keep: Keep) -> Runs:
    """The wide network with its merged twin beside it, from a small and from a large initialisation."""
    return {
        name: keep(name, lambda scale=scale: tm.stack([_one(setting, scale, seed) for seed in range(setting.seeds)]))  # type: ignore[misc]
        for name, scale in (("small", setting.scale), ("large", setting.large))
    }


def _one(setting: Setting, scale: float, seed: int) -> tm.Trajectory:
    data = clusters_of(setting.d, setting.points, seed)
    wide = network(setting.d, setting.width, scale, seed)
    rate = extremes_of(data).rate
    x, y = data.tensors(torch.float64)
    early = steps_to(setting.merge_at, wide, rate, setting.lr)
    for _ in range(early):
        _step(wide, x, y, setting.lr)
    angle = lab.measures.EarlyAlignment(lr=setting.lr).tolerance(extremes_of(data))
    four = lab.measures.merged(wide, angle, most=4)
    evaluated = [
        tm.Probe(
            wide,
            data,
            watch=tm.Watch(
                when=tm.record.log_spaced(10), measures=(DistanceTo(four), lab.measures.EarlyAlignment(lr=setting.lr))
            ),
            seed=seed,
            budget=None,
        ),
        tm.Probe(four, data, watch=tm.Watch(when=tm.record.log_spaced(10), measures=()), seed=seed, budget=None),
    ]
    with evaluated[0], evaluated[1]:
        for step in range(setting.steps):
            for probe in evaluated:
                probe(step)
            for net in (wide, four):
                _step(net, x, y, setting.lr)
    found, twin = (probe.trajectory() for probe in evaluated)
    return found.replace({**found, "loss_of_four": twin["loss"]})


def _step(net: nn.Module, x: torch.Tensor, y: torch.Tensor, lr: float) -> None:
    """One step of gradient descent on all points."""
    weights = list(net.parameters())
    loss = nn.functional.softplus(-y * net(x)).mean()
    with torch.no_grad():
        for weight, slope in zip(weights, torch.autograd.grad(loss, weights), strict=True):
            weight.sub_(slope, alpha=lr)


def claims(runs: Runs) -> tuple[Claim, ...]:
    """The published findings, each with its verdict."""
    apart, control = (runs[name]["output_distance"].isel(time=-1) for name in ("small", "large"))
    losses = [runs["small"][name].isel(time=-1).mean("group") for name in ("loss", "loss_of_four")]
    return (
        mean_claim(
            "Merged to four neurons early, a condensed network has the same outputs at the end",
            apart,
            "mean relative distance of outputs",
            1e-4,
            rule="at most",
        ),
        mean_claim(
            "and the same loss",
            abs(losses[0] / losses[1] - 1.0),
            "mean relative difference of losses",
            1e-3,
            f"The loss is {float(losses[0].mean()):.2g} by then.",
            rule="at most",
        ),
        mean_claim(
            "At the end the large network merges to four neurons without loss",
            runs["small"]["merged_distance"].isel(time=-1),
            "mean relative distance of outputs to the network merged at the end",
            1e-4,
            rule="at most",
        ),
        mean_claim(
            "A network that starts large is no network of four neurons",
            control,
            "mean relative distance of outputs",
            0.05,
            neutral=0.0,
        ),
    )


def pictures(runs: Runs) -> Mapping[str, Any]:
    """The loss of both networks, and how far apart their outputs are."""

    small = [
        runs["small"].replace({"loss": runs["small"][name].mean("group", keep_attrs=True)})
        for name in ("loss", "loss_of_four")
    ]
    labels = ["small initial weights", "large initial weights"]
    return {
        "Loss of the wide network and of four neurons": tm.plot.curves(
            *small, curve="loss", labels=["wide", "four neurons"]
        ),
        "Distance of outputs": tm.plot.curves(runs["small"], runs["large"], curve="output_distance", labels=labels),
    }
