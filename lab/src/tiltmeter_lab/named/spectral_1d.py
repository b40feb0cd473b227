"""spectral-1d: low frequencies of a function of one number are learned first (Rahaman et al., 2019)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
import xarray as xr

import tiltmeter as tm
import tiltmeter_lab as lab
from tiltmeter_lab.catalogue import Keep, Runs
from tiltmeter_lab.claim import Claim
from tiltmeter_lab.shared.arrival import first_below, times_later
from tiltmeter_lab.shared.over_seeds import mean_claim, share_claim

TITLE = "Low frequencies are learned first, whatever their amplitude"
PAPER = "Rahaman et al., On the Spectral Bias of Neural Networks (2019)"
NEEDS: tuple[str, ...] = ()

#: A frequency counts as learned once less than this part of it is missing.
LEARNED = 0.5


@dataclass(frozen=True)
class Setting:
    """Sums of sines with fresh phases for every seed, full batches, Adam."""

    frequencies: tuple[int, ...] = (1, 2, 4, 8)
    low: float = -1.0
    points: int = 128
    width: int = 128
    hidden: int = 3
    lr: float = 1e-3
    steps: int = 800
    held_out: int = 20
    seeds: int = 3


QUICK = Setting()
FULL = Setting(tuple(range(5, 51, 5)), 0.0, 200, 256, 5, 3e-4, 60_000, 100, 10)


def run(setting: Setting, keep: Keep) -> Runs:
    """Equal amplitudes, amplitudes that rise with frequency, and sine activations with large weights."""
    return {
        name: keep(name, partial(_arm, setting, name))
        for name in ("equal amplitudes", "rising amplitudes", "sine activation")
    }


def _arm(setting: Setting, name: str) -> tm.Trajectory:
    return tm.stack([_train(setting, name, seed) for seed in range(setting.seeds)])


def _train(setting: Setting, name: str, seed: int) -> tm.Trajectory:
    count = len(setting.frequencies)
    amplitudes = tuple(np.linspace(1.0, 4.0, count).tolist()) if name == "rising amplitudes" else (1.0,) * count
    target = lab.data.Sines(
        setting.frequencies, amplitudes, lab.data.random_phases(setting.frequencies, seed), setting.low, 1.0
    )
    data = lab.data.sines(target, setting.points)
    torch.manual_seed(seed)
    wave = name == "sine activation"
    model = tm.modules.mlp(1, (setting.width,) * setting.hidden, 1, "sine" if wave else "relu")
    if wave:
        with torch.no_grad():
            # Scaled so that units oscillate up to 1.5 times as fast as the highest frequency.
            periods = 1.5 * max(setting.frequencies) / (1.0 - setting.low)
            next(model.parameters()).mul_(2.0 * np.pi * periods)
    return tm.train(
        model,
        data,
        data,
        tm.Recipe(partial(torch.optim.Adam, lr=setting.lr), steps=setting.steps, batch=setting.points),
        watch=tm.Watch(when=tm.record.every(setting.held_out), measures=(lab.measures.FrequencyError(target),)),
        seed=seed,
    )


def claims(runs: Runs) -> tuple[Claim, ...]:
    """The order of arrival, from the first evaluation at which half of a frequency is learned."""
    equal, rising, wave = (arrivals(runs[name]) for name in runs)
    low, high = equal["frequency"].values[[0, -1]]
    middle = equal["frequency"].sel(frequency=high / 2, method="nearest").item()
    half = "mean ratio of the times at which half of each is learned, the earlier over the later"
    late = times_later(wave.sel(frequency=high), wave.sel(frequency=low))
    return (
        mean_claim(
            f"The lowest frequency ({low}) is learned before the highest ({high})",
            1.0 / times_later(equal.sel(frequency=high), equal.sel(frequency=low)),  # 0 if the later never arrives
            half,
            0.5,
            rule="at most",
            neutral=1.0,
        ),
        mean_claim(
            f"The highest frequency ({high}) takes over twice the time of one half as high ({middle})",
            1.0 / times_later(equal.sel(frequency=high), equal.sel(frequency=middle)),
            half,
            0.5,
            rule="at most",
        ),
        mean_claim(
            "The lowest frequency is learned first even where amplitudes rise with frequency",
            1.0 / times_later(rising.sel(frequency=high), rising.sel(frequency=low)),
            half,
            0.5,
            "The order of frequencies between the extremes may change.",
            rule="at most",
            neutral=1.0,
        ),
        mean_claim(
            "Frequencies arrive in their order",
            _order(equal),
            "mean rank correlation of frequency and time of arrival",
            0.9,
            neutral=0.0,
            safe=False,
        ),
        share_claim(
            "Control: with sine activations of large weights the highest is not last by as much",
            late <= 2.0,
            "share of seeds in which it takes at most twice the time of the lowest",
            "The bias is one of the activation, not of gradient descent.",
            safe=False,
        ),
    )


def arrivals(trajectory: tm.Trajectory) -> xr.DataArray:
    """First looks at which less than half of each frequency is missing."""
    return first_below(trajectory["frequency_error"], LEARNED)


def _order(times: xr.DataArray) -> list[float]:
    """Of every seed, the rank correlation of frequencies and their arrivals."""
    from scipy.stats import spearmanr

    late = times.where(np.isfinite(times), np.finfo(float).max).transpose("seed", "frequency").values
    # If all arrive at once, there is no order.
    return [float(spearmanr(times["frequency"], row).statistic) if np.ptp(row) > 0 else 0.0 for row in late]


def pictures(runs: Runs) -> Mapping[str, Any]:
    """The error of every frequency over training, one picture per arm; answering zero has error 1."""
    return {
        f"Spectral bias, {name}": lab.plot.labelled_lines(
            found["frequency_error"], "frequency", null=1.0, title=f"Error of every frequency, {name}"
        )
        for name, found in runs.items()
    }
