"""Networks use only the simplest feature, though others are as predictive (Shah et al., Morwani et al.)."""

from __future__ import annotations

from collections.abc import Mapping
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
from tiltmeter_lab.shared.arms import made, read_runs, train_arms
from tiltmeter_lab.shared.over_seeds import mean_claim, share_claim

TITLE = "Networks use only the simplest of several sufficient features"
PAPER = "Shah et al. (2020); Morwani et al. (2023)"
NEEDS: tuple[str, ...] = ()

#: The first layer's weights, in a network that starts with Flatten.
FIRST = "1.weight"


@dataclass(frozen=True)
class Setting:
    """LMS-5, turned by a random basis: one linear coordinate and d - 1 of five slabs, each of which tells the label."""

    d: int = 10
    train: int = 20_000
    held_out: int = 1000
    width: int = 100
    lr: float = 0.1
    batch: int = 128
    steps: int = 2000
    seeds: int = 3


QUICK = Setting()
FULL = Setting(d=50, train=100_000, held_out=10_000, batch=256, steps=20_000, seeds=5)


def run(setting: Setting, keep: Keep) -> Runs:
    """`training`: both labels from all features. `without`: the linear one exchanged, so that only slabs help."""
    return {
        "training": keep("training", lambda: _train(setting, linear=True)),
        "without": keep("without", lambda: _train(setting, linear=False)),
    }


def claims(runs: Runs) -> tuple[Claim, ...]:
    """Only the linear coordinate is used, the slabs would do, and one direction suffices."""
    training = runs["training"]
    area = training["randomised_auc"].isel(time=-1)
    rank = training["dependence_rank"].isel(time=-1)
    share = training["projection_accuracy"].isel(time=-1).sel(rank=1)
    stable = training["stable_rank"].isel(time=-1).sel(layer=FIRST)
    other = runs["without"]["randomised_auc"].isel(time=-1).sel(feature="linear", part="none")
    return (
        share_claim(
            "The network separates the labels",
            area.sel(feature="linear", part="none") >= 0.99,
            "share of seeds with an AUC of at least 0.99",
        ),
        mean_claim(
            "With the linear coordinate from other points, nothing is left",
            abs(area.sel(feature="linear", part="set") - 0.5),
            "mean distance of the AUC from chance",
            0.05,
            rule="at most",
        ),
        share_claim(
            "With all slab coordinates from other points, nothing is lost",
            area.sel(feature="linear", part="rest") >= 0.99,
            "share of seeds with an AUC of at least 0.99",
        ),
        share_claim(
            "One direction of input space decides",
            rank <= 1,
            "share of seeds that need one direction",
            f"It alone keeps an accuracy of {float(share.sel(part='rest').mean()):.3f}, all others of "
            f"{float(share.sel(part='set').mean()):.3f}.",
        ),
        mean_claim(
            "Yet the first layer is far from rank 1: its rank is no stand-in for what the function depends on",
            stable,
            "mean stable rank of the first layer",
            1.5,
            neutral=1.0,
            safe=False,
        ),
        mean_claim(
            "A network that cannot use the linear coordinate learns from the slabs",
            other,
            "mean AUC on the slabs",
            0.9,
            ""
            if float(other.min()) > 0.9
            else "Slabs alone are learned after a long plateau; here training ended before.",
            neutral=0.5,
            safe=False,
        ),
    )


def pictures(runs: Runs) -> Mapping[str, Any]:
    """AUC over training with nothing, the linear coordinate or the slabs from other points."""
    curve = runs["training"]["randomised_auc"].sel(feature="linear", drop=True)
    names = {"none": "nothing", "set": "linear coordinate", "rest": "all slabs"}
    named = curve.assign_coords(part=[names[part] for part in curve.part.values]).rename(part="from other points")
    title = "What a network uses of features that all tell the label"
    return {title: lab.plot.labelled_lines(named, "from other points", null=0.5, title=title, y_title="AUC")}


def _train(setting: Setting, linear: bool) -> tm.Trajectory:
    seeds = range(setting.seeds)
    kinds = lab.data.linear_and_slabs(setting.d)
    bases = [lab.data.random_basis(setting.d, seed) for seed in seeds]
    sets = [lab.data.slabs(kinds, setting.train + setting.held_out, basis=bases[seed], seed=seed) for seed in seeds]
    if not linear:
        sets = [_cut(data, bases[seed][0], seed) for seed, data in enumerate(sets)]
    evaluated = {seed: sets[seed].take(np.arange(setting.train, setting.train + setting.held_out)) for seed in seeds}
    x = torch.stack([torch.as_tensor(data.x[: setting.train]) for data in sets])
    y = torch.stack([torch.as_tensor(data.y[: setting.train]) for data in sets]).float()
    rows = torch.arange(setting.seeds)[:, None]
    draw = np.random.default_rng(1)

    def batch(_: int) -> tuple[Tensor, Tensor]:
        places = torch.as_tensor(draw.integers(0, setting.train, (setting.seeds, setting.batch)))
        return x[rows, places], y[rows, places]

    def loss(outputs: Tensor, labels: Tensor) -> Tensor:
        scores = outputs[..., 0]
        return nn.functional.binary_cross_entropy_with_logits(scores, labels, reduction="none").mean(1)

    def measures(seed: int) -> tuple[tm.measures.Measure, ...]:
        return (
            lab.measures.Randomised({"linear": [0]}, bases[seed]),
            lab.measures.ProjectionDependence(ranks=(1, 2, 4)),
            lab.measures.StableRank(),
        )

    def read(stacked: tm.training.Stacked) -> dict[str, xr.DataArray]:
        return read_runs(stacked, {seed: seed for seed in seeds}, measures, evaluated)

    models = made(lambda: tm.modules.mlp(setting.d, (setting.width, setting.width), 1), seeds)
    origin = tm.record.Origin(
        "training", settings={"setting": {**asdict(setting), "linear": linear}}, seeds=tuple(seeds)
    )
    evaluations = sorted({*tm.record.log_spaced(4).steps(setting.steps), setting.steps})
    return train_arms(models, batch, loss, setting.lr, evaluations, read, origin)


def _cut(data: tm.GroupedData, direction: np.ndarray, seed: int) -> tm.GroupedData:
    """The same points with their part along one direction from other points."""
    along = data.x @ direction
    moved = np.random.default_rng([seed, 2]).permutation(along) - along
    return tm.GroupedData((data.x + moved[:, None] * direction).astype(np.float32), data.y, data.y)
