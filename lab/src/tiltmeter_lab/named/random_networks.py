"""Random networks: how intricate their functions are before any training, by activation and size of weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
import xarray as xr

import tiltmeter as tm
import tiltmeter_lab as lab
from tiltmeter_lab.catalogue import Keep, Runs
from tiltmeter_lab.claim import Claim
from tiltmeter_lab.shared.over_seeds import mean_and_error
from tiltmeter_lab.shared.random_streams import kept_streams

TITLE = "Random ReLU networks are simple functions whatever the size of their weights; sine networks are not"
PAPER = "Teney, Nicolicioiu, Hartmann and Abbasnejad, Neural Redshift (2024)"
NEEDS: tuple[str, ...] = ()
SIMPLE, INTRICATE = "relu", "sine"


@dataclass(frozen=True)
class Setting:
    """Three hidden layers on the square; all weights and biases uniform, times a magnitude."""

    seeds: int = 5
    activations: tuple[str, ...] = ("relu", "gelu", "tanh", "sine", "gaussian")
    magnitudes: tuple[float, ...] = (0.5, 1.0, 2.0, 5.0, 10.0)
    width: int = 64
    points: int = 48


QUICK = Setting()
FULL = replace(QUICK, seeds=20, points=300)


def run(setting: Setting, keep: Keep) -> Runs:
    """The mean frequency of every activation; the clock counts magnitudes of the weights, not steps."""

    def make(activation: str) -> tm.Trajectory:
        with kept_streams():
            values = [
                [_frequency(setting, activation, size, seed) for seed in range(setting.seeds)]
                for size in setting.magnitudes
            ]
        curve = xr.DataArray(
            values,
            dims=("time", "seed"),
            coords={"time": list(setting.magnitudes), "seed": range(setting.seeds)},
            attrs={"long_name": "mean frequency of a random network", "better": "neither"},
        )
        origin = tm.record.Origin("measure", settings={"activation": activation}, seeds=tuple(range(setting.seeds)))
        return tm.Trajectory({"grid_frequency": curve}, "t", origin)

    return {name: keep(name, lambda n=name: make(n)) for name in setting.activations}  # type: ignore[misc]


def _frequency(setting: Setting, activation: str, magnitude: float, seed: int) -> float:
    torch.manual_seed(seed)
    model = tm.modules.mlp(2, (setting.width,) * 3, 1, activation)
    with torch.no_grad():
        for layer in model:
            if isinstance(layer, torch.nn.Linear):
                bound = magnitude * (6.0 / layer.in_features) ** 0.5
                layer.weight.uniform_(-bound, bound)
                layer.bias.uniform_(-magnitude, magnitude)
    corners = tm.GroupedData(np.array([[-1.0, -1.0], [1.0, 1.0]] * 30), [0, 1] * 30, [0, 1] * 30)
    reading = lab.measure(
        lab.measures.NetworkComplexity(plane="inputs", extent=1.0, points=setting.points), model, corners
    )
    return float(reading["grid_frequency"])


def claims(runs: Runs) -> tuple[Claim, ...]:
    """Flat for ReLU, rising for sine; so the bias is one of the components, not of gradient descent."""
    seeds = len(runs[SIMPLE].origin.seeds)
    rises = {
        name: one["grid_frequency"].isel(time=-1) / one["grid_frequency"].isel(time=0) for name, one in runs.items()
    }
    told = ", ".join(f"{name} {float(rise.mean()):.2g}" for name, rise in rises.items())
    return (
        Claim(
            "The complexity of random ReLU networks does not depend on the size of their weights",
            float(rises[SIMPLE].mean()),
            "mean frequency at the largest weights over that at the smallest",
            2.0,
            f"All of them: {told}.",
            rule="at most",
            error=mean_and_error(rises[SIMPLE])[1],
            seeds=seeds,
        ),
        Claim(
            "That of random sine networks grows with it",
            float(rises[INTRICATE].mean()),
            "mean frequency at the largest weights over that at the smallest",
            3.0,
            error=mean_and_error(rises[INTRICATE])[1],
            seeds=seeds,
            neutral=1.0,
        ),
    )


def pictures(runs: Runs) -> Mapping[str, Any]:
    """Frequency against the size of the weights, one chart for all."""
    chart = tm.plot.curves(*runs.values(), curve="grid_frequency", labels=list(runs))
    return {"Mean frequency of random networks against the magnitude of their weights (time axis)": chart}
