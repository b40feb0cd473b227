"""The last linear layers of a network become rank 1 on separable data (Le and Jegelka, 2022)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import torch
import xarray as xr
from torch import Tensor, nn

import tiltmeter as tm
import tiltmeter_lab as lab
from tiltmeter_lab.catalogue import Keep, Runs
from tiltmeter_lab.claim import Claim
from tiltmeter_lab.shared.arms import joined, made, read_runs, train_arms
from tiltmeter_lab.shared.over_seeds import mean_claim

TITLE = "Last linear layers become rank 1 on separable data"
PAPER = "Le and Jegelka (2022), after Ji and Telgarsky (2019)"
NEEDS: tuple[str, ...] = ()

#: Layers between the first, which a ReLU follows, and the last, which has one row.
LINEAR = ("2.weight", "3.weight")


@dataclass(frozen=True)
class Setting:
    """Network 6-10-10-10-1 without biases, a ReLU after the first layer; descent on the logarithm of the loss."""

    inputs: int = 6
    width: int = 10
    points: int = 60
    margin: float = 0.3
    scales: tuple[float, ...] = (0.3, 1.0)
    lr: float = 0.01
    steps: int = 3000
    loss: float = 1e-11
    drift_lrs: tuple[float, ...] = (0.2, 0.02, 0.002)
    drift_time: float = 2.0
    seeds: int = 3


QUICK = Setting()
FULL = Setting(width=30, points=200, lr=0.003, steps=20_000, seeds=10)


def run(setting: Setting, keep: Keep) -> Runs:
    """`training`: all starts to a tiny loss. `drift`: plain descent with several rates for the same time."""
    return {
        "training": keep("training", lambda: _training(setting)),
        "drift": keep("drift", lambda: _drift(setting)),
    }


def claims(runs: Runs) -> tuple[Claim, ...]:
    """Rank, bound, alignment, the control of a large start, and the conserved quantity."""
    training, drift = runs["training"], runs["drift"]["imbalance_drift"].isel(time=-1)
    last = training["stable_rank"].isel(time=-1)
    small, large = last.isel(scale=0), last.isel(scale=-1)
    excess = training["weight_excess"].isel(time=-1, scale=0).sel(layer=list(LINEAR))
    ratio = (
        np.log10(drift.values[:-1] / drift.values[1:]) / np.log10(drift.lr.values[:-1] / drift.lr.values[1:])[:, None]
    )
    aligned = training["alignment"].isel(time=-1, scale=0, layers=slice(1, None))
    return (
        mean_claim(
            "From a small start, the linear layers end close to rank 1",
            small.sel(layer=list(LINEAR)).max("layer"),
            "largest stable rank of a linear layer, mean over seeds",
            1.15,
            f"The first layer, which a ReLU follows, ends at {float(small.sel(layer='0.weight').mean()):.2f}.",
            rule="at most",
        ),
        mean_claim(
            "What a layer has beyond rank 1 stays below a bound known at initialisation",
            (excess / _bound(training)).max("layer"),
            "largest ratio of excess and bound, mean over seeds",
            1.0,
            rule="at most",
        ),
        mean_claim(
            "Linear layers that follow one another align",
            aligned.min("layers"),
            "smallest overlap of top singular vectors, mean over seeds",
            0.99,
        ),
        mean_claim(
            "From a large start the same loss leaves a higher rank",
            (large - small).sel(layer=list(LINEAR)).min("layer"),
            "smallest difference of stable ranks, mean over seeds",
            0.2,
            neutral=0.0,
        ),
        mean_claim(
            "Descent moves the conserved difference of adjacent layers in proportion to the learning rate",
            np.abs(ratio - 1).max(0),
            "largest deviation of the exponent from 1, mean over seeds",
            0.1,
            "Mean drifts: " + ", ".join(f"{float(d.mean()):.2g} at lr {float(d.lr):g}" for d in drift) + ".",
            rule="at most",
        ),
    )


def pictures(runs: Runs) -> Mapping[str, Any]:
    """Stable ranks over training, for each start."""
    curve = runs["training"]["stable_rank"]
    null = runs["training"]["stable_rank_null"]
    named = {f"Start of scale {float(s):g}": curve.sel(scale=s, layer=["0.weight", *LINEAR]) for s in curve.scale}
    flat = float(null.sel(layer=list(LINEAR)).mean())
    return {title: lab.plot.labelled_lines(values, "layer", null=flat, title=title) for title, values in named.items()}


def _points(setting: Setting, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Gaussian points pushed apart along a random direction: separable with a margin."""
    rng = np.random.default_rng([seed, 0])
    direction = rng.normal(size=setting.inputs)
    direction /= np.linalg.norm(direction)
    x = rng.normal(size=(setting.points, setting.inputs))
    y = np.sign(x @ direction)
    return x + setting.margin * y[:, None] * direction, y


def _network(setting: Setting, scale: float) -> nn.Sequential:
    sizes = (setting.inputs, setting.width, setting.width, setting.width, 1)
    layers = [nn.Linear(a, b, bias=False, dtype=torch.float64) for a, b in pairwise(sizes)]
    for layer in layers:
        nn.init.normal_(layer.weight, 0.0, scale / layer.in_features**0.5)
    return nn.Sequential(layers[0], nn.ReLU(), *layers[1:])


def _logistic(outputs: Tensor, y: Tensor) -> Tensor:
    return nn.functional.softplus(-y * outputs[..., 0]).mean(1)


def _origin(setting: Setting) -> tm.record.Origin:
    return tm.record.Origin("training", settings={"setting": asdict(setting)}, seeds=tuple(range(setting.seeds)))


def _training(setting: Setting) -> tm.Trajectory:
    seeds = range(setting.seeds)
    models = [model for scale in setting.scales for model in made(lambda s=scale: _network(setting, s), seeds)]  # type: ignore[misc]
    drawn = [_points(setting, seed) for seed in seeds]
    x, y = (torch.as_tensor(np.array([pair[i] for pair in drawn])) for i in (0, 1))
    x, y = x.repeat(len(setting.scales), 1, 1), y.repeat(len(setting.scales), 1)
    data = {seed: tm.GroupedData(*drawn[seed], np.zeros(setting.points)) for seed in seeds}

    def loss(outputs: Tensor, labels: Tensor) -> Tensor:
        # The gradient of the logarithm is that of the loss over the loss: late steps are as long as early ones. A run
        # that has reached the loss asked for stays there.
        return _logistic(outputs, labels).clamp_min(setting.loss).log()

    def read(stacked: tm.training.Stacked) -> dict[str, xr.DataArray]:
        both = (lab.measures.StableRank(), lab.measures.Balancedness())
        parts = [
            read_runs(stacked, {seed: i * len(seeds) + seed for seed in seeds}, lambda _: both, data)
            for i in range(len(setting.scales))
        ]
        values = _logistic(stacked(x), y).detach().numpy().reshape(len(setting.scales), -1)
        coords = {"scale": list(setting.scales), "seed": list(seeds)}
        words = {"long_name": "logistic loss of the points trained on", "better": "lower"}
        return {
            **joined(parts, "scale", setting.scales),
            "training_loss": xr.DataArray(values, coords, ("scale", "seed"), attrs=words),
        }

    evaluations = sorted({*tm.record.log_spaced(8).steps(setting.steps), setting.steps})
    return train_arms(models, lambda _: (x, y), loss, setting.lr, evaluations, read, _origin(setting))


def _bound(training: tm.Trajectory) -> xr.DataArray:
    """For each linear layer the sum of the sizes of the conserved differences from it up, at initialisation."""
    sizes = training["imbalance_nuclear"].isel(time=0, scale=0)
    above = [sizes.isel(layers=slice(1 + i, None)).sum("layers") for i in range(len(LINEAR))]
    return xr.concat(above, pd.Index(list(LINEAR), name="layer"))


def _drift(setting: Setting) -> tm.Trajectory:
    found = np.zeros((len(setting.drift_lrs), setting.seeds))
    for seed in range(setting.seeds):
        x, y = (torch.as_tensor(part) for part in _points(setting, seed))
        for place, lr in enumerate(setting.drift_lrs):
            (model,) = made(lambda: _network(setting, 1.0), [seed])
            before = lab.measures.imbalances(model)
            sgd = torch.optim.SGD(model.parameters(), lr=lr)
            for _ in range(round(setting.drift_time / lr)):
                sgd.zero_grad()
                _logistic(model(x)[None], y[None]).sum().backward()  # type: ignore[no-untyped-call]
                sgd.step()
            after = lab.measures.imbalances(model)
            found[place, seed] = max(float((after[name] - before[name]).norm()) for name in after)
    coords = {"time": [setting.drift_time], "lr": list(setting.drift_lrs), "seed": list(range(setting.seeds))}
    words = {"long_name": "largest drift of what gradient flow conserves", "better": "neither", "null": "0 (flow)"}
    curve = xr.DataArray(found[None], coords, ("time", "lr", "seed"), attrs=words)
    return tm.Trajectory({"imbalance_drift": curve}, "t", _origin(setting))
