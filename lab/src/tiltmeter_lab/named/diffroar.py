"""DiffROAR: input gradients of standard networks do not highlight what tells the label."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
import xarray as xr
from torch import nn

import tiltmeter as tm
from tiltmeter_lab.catalogue import Keep, Runs
from tiltmeter_lab.claim import Claim
from tiltmeter_lab.shared.feature_highlighting import diffroar, fitted, input_gradient, signal_points
from tiltmeter_lab.shared.over_seeds import mean_and_error
from tiltmeter_lab.shared.random_streams import kept_streams

TITLE = "Input gradients of standard networks highlight what does not tell the label; those of robust ones do"
PAPER = "Shah, Jain and Netrapalli, Do input gradients highlight discriminative features? (2021)"
NEEDS: tuple[str, ...] = ()
STANDARD, ROBUST, LINEAR = "standard", "robust", "linear"


@dataclass(frozen=True)
class Setting:
    """Points y e_j + noise in d dimensions; `kept` numbers of coordinates are kept of every point."""

    d: int = 10
    points: int = 600
    width: int = 100
    radius: float = 0.5
    steps: int = 200
    lr: float = 0.01
    kept: tuple[int, ...] = (1, 3, 5)
    seeds: int = 3


QUICK = Setting()
FULL = Setting(points=4000, width=500, steps=1000, kept=(1, 2, 3, 4, 5), seeds=10)


def run(setting: Setting, keep: Keep) -> Runs:
    """For each kind of network, DiffROAR by number of coordinates kept; the clock counts coordinates, not steps."""

    def make(kind: str) -> tm.Trajectory:
        with kept_streams():
            found = [_one(setting, kind, seed) for seed in range(setting.seeds)]
        coords = {"time": list(setting.kept), "seed": range(setting.seeds)}
        about = {"better": "higher", "null": "0: gradients tell nothing about what matters"}
        curves = {
            "diffroar": xr.DataArray(
                np.array([one for one, _ in found]).T,
                dims=("time", "seed"),
                coords=coords,
                attrs={"long_name": "accuracy with top coordinates less that with bottom ones", **about},
            ),
            "signal_found": xr.DataArray(
                np.array([[hit] * len(setting.kept) for _, hit in found]).T,
                dims=("time", "seed"),
                coords=coords,
                attrs={"long_name": "share of points whose largest gradient is at the signal", "better": "higher"},
            ),
        }
        return tm.Trajectory(
            curves, "t", tm.record.Origin("training", settings={"d": setting.d}, seeds=tuple(range(setting.seeds)))
        )

    return {kind: keep(kind, partial(make, kind)) for kind in (STANDARD, ROBUST, LINEAR)}


def _one(setting: Setting, kind: str, seed: int) -> tuple[list[float], float]:
    x, y, place = signal_points(setting.d, 2 * setting.points, seed)
    half = setting.points
    train, test = (x[:half], y[:half]), (x[half:], y[half:])
    hidden = () if kind == LINEAR else (setting.width,)
    radius = setting.radius if kind == ROBUST else 0.0
    model = fitted(partial(tm.modules.mlp, setting.d, hidden), *train, setting.steps, setting.lr, seed, radius)
    sizes = (input_gradient(model, *train).abs(), input_gradient(model, *test).abs())

    def again(make: Any, shown: torch.Tensor, labels: torch.Tensor) -> nn.Module:
        return fitted(make, shown, labels, setting.steps, setting.lr, seed + 1000)

    network = partial(tm.modules.mlp, setting.d, (setting.width,))
    found = [diffroar(network, sizes, train, test, count, again) for count in setting.kept]
    return found, float((sizes[1].argmax(1).numpy() == place[half:]).mean())


def claims(runs: Runs) -> tuple[Claim, ...]:
    """At the smallest number of coordinates kept. Bars were fixed before the runs."""
    seeds = len(runs[STANDARD].origin.seeds)
    few = {kind: one["diffroar"].isel(time=0) for kind, one in runs.items()}
    told = ", ".join(f"{kind} {float(one['signal_found'].mean()):.2f}" for kind, one in runs.items())
    gain = few[ROBUST] - few[STANDARD]
    return (
        Claim(
            "Gradients of standard networks do not highlight what tells the label",
            float(few[STANDARD].mean()),
            "DiffROAR with one coordinate kept",
            0.0,
            f"Share of points whose largest gradient is at the signal: {told}.",
            rule="at most",
            error=mean_and_error(few[STANDARD])[1],
            seeds=seeds,
            safe=False,
        ),
        Claim(
            "Those of adversarially trained networks highlight it more",
            float(gain.mean()),
            "DiffROAR of robust networks less that of standard ones",
            0.1,
            error=mean_and_error(gain)[1],
            seeds=seeds,
            safe=False,
            neutral=0.0,
        ),
        Claim(
            "A linear model, whose gradient is the same at every point, highlights nothing",
            float(abs(few[LINEAR]).max()),
            "largest size of DiffROAR over seeds",
            0.2,
            rule="at most",
            seeds=seeds,
            safe=False,
        ),
    )


def pictures(runs: Runs) -> dict[str, Any]:
    """DiffROAR against the number of coordinates kept."""
    chart = tm.plot.curves(*runs.values(), curve="diffroar", labels=list(runs))
    return {"DiffROAR against the number of coordinates kept (time axis)": chart}
