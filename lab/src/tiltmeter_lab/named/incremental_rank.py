"""Incremental rank: from a small start, gradient descent on a matrix learns one rank after the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

import tiltmeter as tm
from tiltmeter_lab.catalogue import Keep, Runs
from tiltmeter_lab.claim import Claim
from tiltmeter_lab.shared.matrix_sensing import Sensing, descend, greedy_solutions, sensing
from tiltmeter_lab.shared.over_seeds import mean_claim, share_claim

TITLE = "From a small start, gradient descent on matrix sensing learns rank by rank, along the greedy solutions"
PAPER = (
    "Li, Luo and Lyu, Towards resolving the implicit bias of gradient descent for matrix factorization: greedy "
    "low-rank learning (2021); Jin, Li, Lyu, Du and Lee, Understanding incremental learning of gradient descent (2023)"
)
NEEDS: tuple[str, ...] = ()
SMALL, LARGE = "small start", "large start"
#: Relative distances below this are "at" a greedy solution; the control should stay above three times as much.
NEAR = 0.1


@dataclass(frozen=True)
class Setting:
    """A symmetric matrix with these eigenvalues, seen through Gaussian measurements."""

    d: int = 12
    eigenvalues: tuple[float, ...] = (4.0, 2.0, 1.0)
    measurements: int = 400
    small: float = 1e-4
    large: float = 0.5
    lr: float = 0.02
    steps: int = 3000
    every: int = 10
    seeds: int = 4


QUICK = Setting()
FULL = Setting(d=30, eigenvalues=(8.0, 4.0, 2.0, 1.0), measurements=3000, small=1e-6, lr=0.01, steps=12000, seeds=10)


def run(setting: Setting, keep: Keep) -> Runs:
    """Distances of the product U U^T from the greedy solution of every rank, over training."""

    def make(scale: float) -> tm.Trajectory:
        curves = [_distances(setting, scale, seed) for seed in range(setting.seeds)]
        curve = xr.DataArray(
            np.stack(curves, -1),
            dims=("time", "rank", "seed"),
            coords={
                "time": np.arange(0, setting.steps + 1, setting.every),
                "rank": np.arange(1, len(setting.eigenvalues) + 1),
                "seed": np.arange(setting.seeds),
            },
            attrs={"long_name": "distance from the greedy solution over its norm", "better": "neither"},
        )
        origin = tm.record.Origin("training", settings={"scale": scale}, seeds=tuple(range(setting.seeds)))
        return tm.Trajectory({"greedy_distance": curve}, "step", origin)

    sizes = {SMALL: setting.small, LARGE: setting.large}
    return {name: keep(name, lambda scale=scale: make(scale)) for name, scale in sizes.items()}  # type: ignore[misc]


def _distances(setting: Setting, scale: float, seed: int) -> np.ndarray:
    task: Sensing = sensing(setting.d, setting.eigenvalues, setting.measurements, seed)
    greedy = greedy_solutions(task, len(setting.eigenvalues), setting.lr, 2 * setting.steps)
    start = scale * np.random.default_rng([seed, 1]).normal(size=(setting.d, setting.d)) / np.sqrt(setting.d)
    found = [
        [np.linalg.norm(product - one) / np.linalg.norm(one) for one in greedy]
        for product in descend(task, start, setting.lr, setting.steps, setting.every)
    ]
    return np.array(found)


def claims(runs: Runs) -> tuple[Claim, ...]:
    """How near training comes to each greedy solution, in which order, and that a large start does not."""
    near, far = (runs[name]["greedy_distance"].min("time") for name in (SMALL, LARGE))
    order = runs[SMALL]["greedy_distance"].argmin("time")
    steps = order.diff("rank") > 0
    last = int(near["rank"][-1])
    before = near.isel(rank=slice(0, -1)).max("rank")
    return (
        mean_claim(
            "Training from a small start passes by the greedy solution of every rank below the last",
            before,
            "smallest relative distance over training, at the rank where it is largest, mean over seeds",
            NEAR,
            "Rank by rank: "
            + ", ".join(f"{float(near.sel(rank=rank).max()):.3f}" for rank in near["rank"].values)
            + ".",
            rule="at most",
        ),
        share_claim(
            "It does so in the order of the ranks",
            steps.all("rank"),
            f"share of seeds that pass the solutions up to rank {last} one after the other",
        ),
        mean_claim(
            "Training from a large start does not come near the solution of rank 1",
            far.sel(rank=1),
            "smallest relative distance over training, mean over seeds",
            3 * NEAR,
        ),
    )


def pictures(runs: Runs) -> dict[str, Any]:
    """Distances over training, small start and large."""
    drawn = {}
    for name, one in runs.items():
        curve = one["greedy_distance"].mean("seed").rename(rank="group")
        shown = one.replace(
            {"greedy_distance": curve.assign_coords(group=[f"rank {k}" for k in curve["group"].values])}
        )
        drawn[f"Distance from the greedy solutions, {name}"] = tm.plot.curves(shown, curve="greedy_distance")
    return drawn
