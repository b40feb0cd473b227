"""spectral-kernel: on the circle theory says when each frequency is learned, and where first (Basri et al., 2020)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
import xarray as xr
from torch import Tensor, nn

import tiltmeter as tm
import tiltmeter_lab as lab
from tiltmeter_lab.catalogue import Keep, Runs
from tiltmeter_lab.claim import Claim
from tiltmeter_lab.shared.arms import made
from tiltmeter_lab.shared.over_seeds import mean_claim

TITLE = "Waves on the circle are learned in the square of their frequency over the density of points"
PAPER = "Basri et al., Frequency Bias in Neural Networks for Input of Non-Uniform Density (2020)"
NEEDS: tuple[str, ...] = ()

#: The kernel of these networks, of units +-1 / sqrt(width), is twice the one of the theory.
TWICE = 2.0
#: Ratio of the points per region; points nearer than this to the other region (in radian) are left out.
DENSITIES, BORDER = (4.0, 1.0), 0.4
#: The control: the second frequency with an amplitude that many times as large.
LARGE, TEN = "large wave", 10.0
BIASES = ("with bias", "without bias")
EIGENVALUES = tuple(range(1, 9))


@dataclass(frozen=True)
class Setting:
    """Two layers of ReLU units, the first trained by full batches of half the mean squared error.

    Waves have the `amplitude`: the theory is for small changes, and a wave of amplitude 1 moves 1000 units too far.
    """

    width: int = 1000
    points: int = 250
    grid: int = 128
    frequencies: tuple[int, ...] = (4, 6, 10)
    amplitude: float = 0.1
    lr: float = 2.0
    steps: int = 1000
    seeds: int = 3


QUICK = Setting()
FULL = Setting(20_000, 1000, 512, (4, 6, 10, 14), 0.1, 2.0, 2500, 10)


class FirstLayer(nn.Module):
    """Pairs of equal units with opposite signs: the output is zero at first, and only the first layer is trained."""

    signs: Tensor

    def __init__(self, width: int, bias: bool) -> None:
        super().__init__()
        half = torch.randn(width // 2, 2)
        self.weight = nn.Parameter(torch.cat([half, half]))
        self.bias = nn.Parameter(torch.zeros(len(self.weight))) if bias else None
        one = torch.ones(len(half)) / len(self.weight) ** 0.5
        self.register_buffer("signs", torch.cat([one, -one]))

    def forward(self, x: Tensor) -> Tensor:
        inner = x @ self.weight.T
        return torch.relu(inner if self.bias is None else inner + self.bias) @ self.signs


def run(setting: Setting, keep: Keep) -> Runs:
    """Kernels of random networks, and one training per frequency on points of two densities."""
    return {
        "kernel": keep("kernel", partial(_kernels, setting)),
        **{
            f"frequency {k}": keep(f"frequency {k}", partial(_density, setting, k, setting.amplitude))
            for k in setting.frequencies
        },
        LARGE: keep(LARGE, partial(_density, setting, setting.frequencies[1], TEN * setting.amplitude)),
    }


def _kernels(setting: Setting) -> tm.Trajectory:
    highest = min(max(EIGENVALUES), setting.grid // 2 - 1)
    chosen = lab.measures.KernelSpectrum(points=setting.grid, frequencies=EIGENVALUES[:highest])
    data = lab.data.sines(lab.data.Sines((1,)), setting.grid, circle=True)
    seeds = range(setting.seeds)
    names = ("frequency_eigenvalue", "frequency_eigenvalue_null")
    parts = {name: np.zeros((1, len(BIASES), len(chosen.frequencies), setting.seeds)) for name in names}
    for i in range(len(BIASES)):
        for seed, model in zip(seeds, made(lambda b=i == 0: FirstLayer(setting.width, b), seeds), strict=True):  # type: ignore[misc]
            found = lab.measure(chosen, model, data)
            for name in names:
                parts[name][0, i, :, seed] = found[name].values
    coords = {"time": [0], "network": list(BIASES), "frequency": list(chosen.frequencies), "seed": list(seeds)}
    words = {"long_name": "tangent kernel along a frequency", "better": "neither"}
    curves = {name: xr.DataArray(values, coords, tuple(coords), attrs=words) for name, values in parts.items()}
    settings = {"points": setting.grid, "width": setting.width}
    return tm.Trajectory(curves, "step", tm.record.Origin("training", settings=settings, seeds=tuple(seeds)))


def _density(setting: Setting, frequency: int, amplitude: float) -> tm.Trajectory:
    data = lab.data.sines(lab.data.Sines((frequency,), (amplitude,)), setting.points, DENSITIES, circle=True)
    held_out, sgd = _inner(data), partial(torch.optim.SGD, lr=setting.lr)
    runs = []
    for seed, model in enumerate(made(lambda: FirstLayer(setting.width, True), range(setting.seeds))):
        runs.append(
            tm.train(
                model,
                data,
                held_out,
                tm.Recipe(sgd, steps=setting.steps, batch=len(data), loss=tm.Square()),
                watch=tm.Watch(when=tm.record.every(4)),
                seed=seed,
            )
        )
    return tm.stack(runs)


def _inner(data: tm.GroupedData) -> tm.GroupedData:
    """The points away from the borders of their region."""
    angle = np.mod(np.arctan2(data.x[:, 1], data.x[:, 0]), 2.0 * np.pi)
    within = np.mod(angle, np.pi)
    return data.take(np.flatnonzero((within >= BORDER) & (within <= np.pi - BORDER)))


def left(trajectory: tm.Trajectory) -> xr.DataArray:
    """Part of the wave that is still to be learned, per region."""
    loss = trajectory["loss"]
    part: xr.DataArray = (loss / loss.isel(time=0)) ** 0.5
    return part


def half_times(trajectory: tm.Trajectory) -> np.ndarray:
    """(seeds, regions): the time, steps x rate x 2, at which half of the wave is left; infinite if never."""
    part = left(trajectory).transpose("seed", "group", "time")
    recipe: Any = trajectory.origin.settings["recipe"]
    time = TWICE * float(recipe["optimiser"]["lr"]) * part["time"].values.astype(float)
    found = np.full(part.shape[:2], np.inf)
    for place in np.ndindex(found.shape):
        values = part.values[place]
        if (values < 0.5).any():
            after = int(np.argmax(values < 0.5))
            found[place] = np.interp(0.5, values[[after, after - 1]], time[[after, after - 1]])
    return found


def claims(runs: Runs) -> tuple[Claim, ...]:
    """Eigenvalues against theory, the control without bias, and times against frequency and density."""
    kernel = runs["kernel"]["frequency_eigenvalue"].isel(time=0)
    grid: Any = runs["kernel"].origin.settings["points"]
    wave = kernel["frequency"].values
    theory = TWICE * lab.measures.circle_eigenvalues(int(wave[-1]), points=int(grid))[wave]
    own, without = (kernel.sel(network=name).transpose("seed", "frequency").values for name in BIASES)
    odd = [i for i, k in enumerate(wave) if k % 2 and 3 <= k < wave[-1]]
    missing = without[:, odd] / without[:, [i + 1 for i in odd]] if odd else np.full((1, 1), np.nan)
    waves = [int(name.split()[1]) for name in runs if name.startswith("frequency")]
    times = {k: half_times(runs[f"frequency {k}"]) for k in waves}
    trained: Any = runs[f"frequency {waves[0]}"].origin.settings["train"]
    expected = {k: lab.measures.region_half_times(k, DENSITIES, int(trained["points"]), BORDER) for k in waves}
    large = np.abs(half_times(runs[LARGE]) / expected[waves[1]] - 1.0).max(1)
    off = np.max([np.abs(times[k] / expected[k] - 1.0).max(1) for k in waves], axis=0)
    ratios = {k: found[:, 1] / found[:, 0] for k, found in times.items()}
    ratio = {k: found[1] / found[0] for k, found in expected.items()}
    ratio_off = np.max([np.abs(ratios[k] / ratio[k] - 1.0) for k in waves], axis=0)
    scaled = np.array([times[k][:, 0] / k**2 for k in waves])
    return (
        mean_claim(
            "The tangent kernel of wide networks has the eigenvalues of the theory",
            np.abs(own / theory - 1.0).max(1),
            f"largest relative deviation, frequencies {wave[0]} to {wave[-1]}, mean over seeds",
            1e-3,
            rule="at most",
        ),
        mean_claim(
            "They fall with frequency",
            (own[:, :-1] / own[:, 1:]).min(1),
            "smallest ratio of one to the next, mean over seeds",
            1.1,
            neutral=1.0,
        ),
        mean_claim(
            "Control: without bias, odd frequencies from 3 on are not learned",
            missing.max(1),
            "largest ratio of their eigenvalues to that of the even frequency above, mean over seeds",
            0.1,
            rule="at most",
        ),
        mean_claim(
            "The time to learn a wave grows as the square of its frequency",
            scaled.max(0) / scaled.min(0),
            "largest to smallest half time over squared frequency, where points are dense, mean over seeds",
            1.5,
            "Half times over squares: "
            + ", ".join(f"{t:.1f} at {k}" for k, t in zip(waves, scaled.mean(1), strict=True))
            + ".",
            rule="at most",
        ),
        mean_claim(
            "Half of a wave is learned when the kernel of infinitely wide networks says so",
            off,
            "largest relative deviation of half times, both regions, mean over seeds",
            0.25,
            rule="at most",
        ),
        mean_claim(
            f"Control: a wave {TEN:g} times as large is not, since its changes are not small",
            large,
            "largest relative deviation of half times, both regions, mean over seeds",
            0.25,
            safe=False,
        ),
        mean_claim(
            "Where points are four times as dense, waves are learned about four times as fast, as the kernel says",
            ratio_off,
            "largest relative deviation of the ratio of half times from that of the theory, mean over seeds",
            0.15,
            "Ratios: " + ", ".join(f"{ratios[k].mean():.2f} at {k} ({ratio[k]:.2f})" for k in waves) + ".",
            rule="at most",
        ),
    )


def pictures(runs: Runs) -> Mapping[str, Any]:
    """Eigenvalues against frequency, and what is left to be learned in each region."""
    kernel = runs["kernel"]
    title = "Eigenvalues of random networks on the circle"
    squared = kernel["frequency_eigenvalue"].isel(time=0) * kernel["frequency_eigenvalue"]["frequency"] ** 2
    null = kernel["frequency_eigenvalue_null"].isel(time=0).mean(("network", "seed"))
    words = "eigenvalue times squared frequency"
    found = {
        title: lab.plot.labelled_lines(
            squared, "network", "frequency", null=null * null["frequency"] ** 2, title=title, y_title=words
        )
    }
    for name in runs:
        if name != "kernel":
            found[f"What is left, {name}"] = lab.plot.labelled_lines(
                left(runs[name]).assign_coords(group=["dense", "sparse"]).rename(group="points"),
                "points",
                null=1.0,
                title=f"Points in the ratio 4 to 1, {name}",
                y_title="part of the wave still to be learned",
            )
    return found
