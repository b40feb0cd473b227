"""Deeper networks start, and stay, with embeddings of lower effective rank (Huh et al., 2023)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
import xarray as xr
from torch import Tensor, nn

import tiltmeter as tm
import tiltmeter_lab as lab
from tiltmeter_lab.catalogue import Keep, Runs
from tiltmeter_lab.claim import Claim
from tiltmeter_lab.shared.arms import joined, made, read_runs, train_arms
from tiltmeter_lab.shared.over_seeds import mean_and_error, mean_claim

TITLE = "Deeper networks have embeddings of lower effective rank"
PAPER = "Huh et al. (2023)"
NEEDS: tuple[str, ...] = ()

ORTHOGONAL = "orthogonal map"


@dataclass(frozen=True)
class Setting:
    """Products of `depth` square Gaussian matrices, ReLU networks of that depth, and the latter trained on digits.

    Trained networks are compared where their loss falls to `equal`."""

    width: int = 64
    depths: tuple[int, ...] = (1, 2, 4, 8, 16)
    points: int = 256
    trained_depths: tuple[int, ...] = (1, 2, 4, 8)
    lr: float = 0.05
    batch: int = 64
    steps: int = 1500
    equal: float = 0.1
    seeds: int = 5


QUICK = Setting()
FULL = Setting(steps=20_000, equal=0.01, seeds=10)


def run(setting: Setting, keep: Keep) -> Runs:
    """`start`: ranks against depth at initialisation. `training`: ReLU networks before and after training."""
    return {
        "start": keep("start", lambda: _start(setting)),
        "training": keep("training", lambda: _training(setting)),
    }


def claims(runs: Runs) -> tuple[Claim, ...]:
    """Depth lowers rank at the start and after training; orthogonal starts are the control."""
    start = runs["start"]["effective_rank"].isel(time=0)
    setting: Any = runs["start"].origin.settings["setting"]
    width, equal = int(setting["width"]), float(setting["equal"])
    mean = start.mean("seed")
    falling = start.shift(depth=1) / start
    found = [
        mean_claim(
            f"At initialisation the effective rank of the {kind} falls with every doubling of depth",
            falling.sel(kind=kind, depth=falling.sel(kind=kind).mean("seed").idxmin("depth")),
            "factor from one depth to the next, where it is smallest, mean over seeds",
            1.1,
            "Ranks: " + ", ".join(f"{float(v):.1f} at depth {int(v.depth)}" for v in mean.sel(kind=kind)) + ".",
            neutral=1.0,
        )
        for kind in mean.kind.values.tolist()
        if kind != ORTHOGONAL
    ]
    trained = rank_at_loss(runs["training"], equal)
    first, *deeper = trained.transpose("depth", "seed")
    falls = {int(rank.depth): mean_and_error(first.values - rank.values) for rank in deeper}
    least = min(falls, key=lambda depth: falls[depth][0] / falls[depth][1])
    return (
        *found,
        mean_claim(
            "Orthogonal matrices keep full rank at every depth",
            abs(start.sel(kind=ORTHOGONAL) - width).max("depth"),
            "largest deviation from the width, mean over seeds",
            1e-3,
            rule="at most",
        ),
        Claim(
            "Trained to equal loss, deeper ReLU networks have embeddings of lower rank than one layer",
            falls[least][0],
            f"rank at depth 1 minus that at depth {least}, the least sure, at a loss of {equal:g}",
            0.0,
            "Ranks: "
            + ", ".join(f"{float(v):.1f} at depth {int(v.depth)}" for v in trained.mean("seed"))
            + ". Among the deeper ones it need not fall further.",
            error=falls[least][1],
            seeds=start.sizes["seed"],
            safe=False,
        ),
    )


def rank_at_loss(run: tm.Trajectory, level: float) -> xr.DataArray:
    """The rank of every depth and seed where its loss first falls to this level, between evaluations on a log scale."""
    loss, rank = (run[name].transpose("time", "depth", "seed") for name in ("training_loss", "effective_rank"))
    found = np.full(loss.shape[1:], np.nan)
    for place in np.ndindex(found.shape):
        height = np.log(loss.values[(slice(None), *place)] / level)
        after = int(np.argmax(height <= 0))
        if height[after] <= 0 < after:
            part = height[after - 1] / (height[after - 1] - height[after])
            before, later = rank.values[(after - 1, *place)], rank.values[(after, *place)]
            found[place] = before + part * (later - before)
    return xr.DataArray(found, {"depth": loss.depth.values, "seed": loss.seed.values}, ("depth", "seed"))


def pictures(runs: Runs) -> Mapping[str, Any]:
    """Rank against depth, at the start and after training."""
    start = runs["start"]["effective_rank"].isel(time=0)
    training = runs["training"]["effective_rank"]
    ends = training.isel(time=[0, -1]).rename(time="step")
    title = "Embeddings of ReLU networks, before and after training on digits"
    return {
        "Effective rank at initialisation": lab.plot.labelled_lines(
            start, "kind", along="depth", title="Effective rank at initialisation", y_title="effective rank"
        ),
        title: lab.plot.labelled_lines(ends, "step", along="depth", title=title, y_title="effective rank"),
    }


def _orthogonal(width: int, depth: int) -> nn.Sequential:
    model = tm.modules.deep_linear(width, width, depth, width)
    for layer in model:
        assert isinstance(layer, nn.Linear)
        nn.init.orthogonal_(layer.weight)
    return model


def _relu(inputs: int, width: int, depth: int, outputs: int) -> nn.Sequential:
    """`depth` layers of He's variance with ReLUs between, and a readout: depth 1 embeds linearly."""
    layers: list[nn.Module] = []
    for i in range(depth):
        layer = nn.Linear(inputs if i == 0 else width, width, bias=False)
        nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
        layers += [nn.ReLU(), layer] if i else [layer]
    return nn.Sequential(*layers, nn.Linear(width, outputs))


def _linear_embedding(width: int, depth: int) -> nn.Sequential:
    return nn.Sequential(*tm.modules.deep_linear(width, width, depth, width), nn.Linear(width, 2, bias=False))


def _start(setting: Setting) -> tm.Trajectory:
    width, seeds = setting.width, range(setting.seeds)
    kinds: dict[str, tuple[Callable[[int], nn.Module], lab.measures.EffectiveRank]] = {
        "linear map": (
            lambda depth: tm.modules.deep_linear(width, width, depth, width),
            lab.measures.EffectiveRank(lab.measures.LinearMap()),
        ),
        ORTHOGONAL: (lambda depth: _orthogonal(width, depth), lab.measures.EffectiveRank(lab.measures.LinearMap())),
        "Gram matrix, linear": (
            lambda depth: _linear_embedding(width, depth),
            lab.measures.EffectiveRank(lab.measures.Gram()),
        ),
        "Gram matrix, ReLU": (
            lambda depth: _relu(width, width, depth, 2),
            lab.measures.EffectiveRank(lab.measures.Gram()),
        ),
    }
    found = np.zeros((1, len(kinds), len(setting.depths), len(seeds)))
    for seed in seeds:
        x = np.random.default_rng([seed, 0]).normal(size=(setting.points, width)).astype(np.float32)
        data = tm.GroupedData(x, np.arange(setting.points) % 2, np.zeros(setting.points))
        for i, (make, rank) in enumerate(kinds.values()):
            for j, depth in enumerate(setting.depths):
                (model,) = made(lambda m=make, k=depth: m(k), [seed])  # type: ignore[misc]
                found[0, i, j, seed] = lab.measure(rank, model, data)["effective_rank"].item()
    coords = {"time": [0], "kind": list(kinds), "depth": list(setting.depths), "seed": list(seeds)}
    words = {"long_name": "effective rank", "better": "neither", "null": "depth 1"}
    return tm.Trajectory(
        {"effective_rank": xr.DataArray(found, coords, tuple(coords), attrs=words)}, "step", _origin(setting)
    )


def _training(setting: Setting) -> tm.Trajectory:
    from sklearn.datasets import load_digits

    bunch = load_digits()
    held_out = tm.GroupedData((bunch.data / 8.0 - 1.0).astype(np.float32), bunch.target, np.zeros(len(bunch.target)))
    x, y = held_out.tensors()
    seeds = range(setting.seeds)
    places = torch.as_tensor(
        np.random.default_rng(0).integers(0, len(x), (setting.steps, setting.seeds, setting.batch))
    )

    def batch(step: int) -> tuple[Tensor, Tensor]:
        return x[places[step]], y[places[step]]

    def loss(outputs: Tensor, labels: Tensor) -> Tensor:
        return nn.functional.cross_entropy(outputs.transpose(1, 2), labels, reduction="none").mean(1)

    def read(stacked: tm.training.Stacked) -> dict[str, xr.DataArray]:
        few = dict.fromkeys(seeds, held_out.take(np.arange(setting.points)))
        found = read_runs(
            stacked, {seed: seed for seed in seeds}, lambda _: (lab.measures.EffectiveRank(lab.measures.Gram()),), few
        )
        losses = loss(stacked.evaluate(x), y.expand(setting.seeds, -1))
        words = {"long_name": "loss on the training points", "better": "lower"}
        mean = xr.DataArray(losses.detach().numpy(), {"seed": list(seeds)}, ("seed",), attrs=words)
        return {**{name: found[name] for name in ("effective_rank", "effective_rank_null")}, "training_loss": mean}

    runs = [
        train_arms(
            made(lambda k=depth: _relu(64, setting.width, k, 10), seeds),  # type: ignore[misc]
            batch,
            loss,
            setting.lr,
            tm.record.log_spaced(12).steps(setting.steps),
            read,
            _origin(setting),
        )
        for depth in setting.trained_depths
    ]
    return runs[0].replace(joined(runs, "depth", setting.trained_depths))


def _origin(setting: Setting) -> tm.record.Origin:
    return tm.record.Origin("training", settings={"setting": asdict(setting)}, seeds=tuple(range(setting.seeds)))
