"""growth-phase: directions found at a tiny scale survive while the network grows to one at which the loss moves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import tiltmeter as tm
from tiltmeter_lab.catalogue import Keep, Runs
from tiltmeter_lab.claim import Claim
from tiltmeter_lab.shared.over_seeds import mean_claim, share_claim
from tiltmeter_lab.shared.symmetric_network import (
    at_scale,
    clusters_of,
    descend,
    extremes_of,
    network,
    steps_to,
)

TITLE = "Alignment survives while the network grows from scale r to scale epsilon"
PAPER = "Tsoy and Konstantinov, Simplicity bias of two-layer networks beyond linearly separable data, ICML 2024"
NEEDS: tuple[str, ...] = ()


@dataclass(frozen=True)
class Setting:
    """Sizes of all neurons add up to `r` at the beginning of the phase and to `epsilon` at its end."""

    seeds: int = 3
    widths: tuple[int, ...] = (50, 400)
    d: int = 2
    points: int = 16
    scale: float = 1e-6
    r: float = 1e-3
    epsilon: float = 1.0
    lr: float = 1.0
    every: int = 2


QUICK = Setting()
FULL = Setting(seeds=10, widths=(50, 400, 4096), points=32, lr=0.25, every=4)


def run(setting: Setting, keep: Keep) -> Runs:
    """One run per width, from far below r to beyond epsilon."""
    return {
        f"width-{width}": keep(f"width-{width}", lambda width=width: _trained(setting, width))  # type: ignore[misc]
        for width in setting.widths
    }


def _trained(setting: Setting, width: int) -> tm.Trajectory:
    seeds = range(setting.seeds)
    data = [clusters_of(setting.d, setting.points, seed) for seed in seeds]
    nets = [network(setting.d, width, setting.scale, seed) for seed in seeds]
    needed = [steps_to(setting.epsilon, nets[i], extremes_of(data[i]).rate, setting.lr) for i in seeds]
    # Growth slows down as the loss begins to move: some steps more are enough.
    steps = round(1.2 * max(needed))
    return tm.stack([descend(nets[i], data[i], setting.lr, steps, tm.record.every(setting.every), i) for i in seeds])


def claims(runs: Runs) -> tuple[Claim, ...]:
    """The published findings, each with its verdict; r and epsilon are the same in all settings."""
    r, epsilon = QUICK.r, QUICK.epsilon
    cosines, fours, starts, ends = [], [], [], []
    for one in runs.values():
        scale = one["network_scale"]
        inside = (scale >= r) & (scale <= epsilon)
        cosines.append(one["alignment"].where(inside).min("time"))
        fours.append((one["directions"].where(inside, 4.0) == 4.0).all("time"))
        starts.append(float(at_scale(one, "alignment", r).mean()))
        ends.append(float(at_scale(one, "alignment", epsilon).mean()))
    growth = np.min([one["network_scale"].max("time") for one in runs.values()], axis=0)
    return (
        mean_claim(
            f"The network grows from {r:g} to {epsilon:g} and beyond",
            growth,
            "scale reached, at the width where it is smallest, mean over seeds",
            epsilon,
        ),
        mean_claim(
            "All the while its neurons point where G is extreme",
            np.min(cosines, axis=0),
            "smallest mean cosine in the phase, mean over seeds",
            0.99,
            f"Mean cosine {np.mean(starts):.4f} at its beginning, {np.mean(ends):.4f} at its end.",
        ),
        share_claim(
            "No direction is gained or lost",
            np.all(fours, axis=0),
            "share of seeds in which networks of all widths have four directions throughout the phase",
        ),
    )


def pictures(runs: Runs) -> Mapping[str, Any]:
    """Alignment and scale over time."""

    labels = [name.replace("-", " ") for name in runs]
    return {
        "Alignment with the extremes of G": tm.plot.curves(*runs.values(), curve="alignment", labels=labels),
        "Sum of the sizes of all neurons": tm.plot.curves(*runs.values(), curve="network_scale", labels=labels),
    }
