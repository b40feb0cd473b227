"""spectral-interpolation: how fast probabilities vary within and between classes (Fridovich-Keil et al., 2022)."""

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
from tiltmeter_lab.shared.over_seeds import mean_claim

TITLE = "Better models vary faster between classes and slower within them"
PAPER = "Fridovich-Keil et al., Spectral Bias in Practice (2022)"
NEEDS: tuple[str, ...] = ()

#: Frequencies from here on count as high, in periods per line.
HIGH = 3


@dataclass(frozen=True)
class Setting:
    """Fully connected networks on digits, of many and of few training points, and a linear one."""

    points: int = 900
    few: int = 100
    width: int = 128
    lr: float = 1e-3
    steps: int = 1000
    lines: int = 100
    seeds: int = 3


QUICK = Setting()
FULL = Setting(width=1024, steps=20_000, lines=2000, seeds=10)


def run(setting: Setting, keep: Keep) -> Runs:
    """Many training points, few, and a linear classifier on many."""
    return {name: keep(name, partial(_arm, setting, name)) for name in ("many points", "few points", "linear")}


def _arm(setting: Setting, name: str) -> tm.Trajectory:
    return tm.stack([_train(setting, name, seed) for seed in range(setting.seeds)])


def _train(setting: Setting, name: str, seed: int) -> tm.Trajectory:
    data, held_out = tm.data.plain_digits(setting.few if name == "few points" else setting.points, seed=seed)
    torch.manual_seed(seed)
    model = tm.modules.mlp(64, () if name == "linear" else (setting.width, setting.width), 10)
    return tm.train(
        model,
        data,
        held_out,
        tm.Recipe(partial(torch.optim.Adam, lr=setting.lr), steps=setting.steps, batch=50),
        watch=tm.Watch(
            when=tm.record.log_spaced(4),
            measures=(
                lab.measures.LineSpectrum(lines=setting.lines, window="hann", detrend="linear", signal="distance"),
            ),
        ),
        seed=seed,
    )


def high_energy(trajectory: tm.Trajectory, null: bool = False) -> xr.DataArray:
    """Energy of the probabilities' distance at high frequencies, per path."""
    return trajectory["line_energy_null" if null else "line_energy"].sel(frequency=slice(HIGH, None)).sum("frequency")


def claims(runs: Runs) -> tuple[Claim, ...]:
    """What the energies at high frequencies say, at the end and over training."""
    many, few, linear = (high_energy(found) for found in runs.values())
    end, start = many.isel(time=-1), many.isel(time=0)
    between, within = end.sel(path="between"), end.sel(path="within")
    gain = runs["few points"]["error"].isel(time=-1, group=0) - runs["many points"]["error"].isel(time=-1, group=0)
    beyond = end / high_energy(runs["many points"], null=True).isel(time=-1)
    linear_ratio = linear.isel(time=-1) / high_energy(runs["linear"], null=True).isel(time=-1)
    return (
        mean_claim(
            "Answers vary faster between classes than within them",
            np.log10(between / within),
            "mean log10 of the ratio of energies at high frequency",
            np.log10(2.0),
            neutral=0.0,
        ),
        mean_claim(
            "Energy at high frequency between classes rises in training",
            np.log10(between / start.sel(path="between")),
            "mean log10 of the ratio of last to first evaluation",
            1.0,
            neutral=0.0,
        ),
        mean_claim(
            "A model of more training points generalises better",
            gain,
            "mean gain in error",
            0.02,
            neutral=0.0,
        ),
        mean_claim(
            "The better model varies faster between classes",
            between / few.isel(time=-1).sel(path="between"),
            "mean ratio of energies at high frequency, many to few training points",
            1.0,
            safe=False,
        ),
        mean_claim(
            "The better model varies slower within classes",
            within / few.isel(time=-1).sel(path="within"),
            "mean ratio of energies at high frequency, many to few training points",
            1.0,
            rule="at most",
            safe=False,
        ),
        mean_claim(
            "Between classes this is more than a softmax of logits that are linear between the same ends",
            beyond.sel(path="between"),
            "mean ratio of energies at high frequency, the model's to its null",
            2.0,
            f"Within classes {float(beyond.sel(path='within').mean()):.2f} on average: what differs and rises is "
            "mostly how sure the answers at the ends are.",
            neutral=1.0,
            safe=False,
        ),
        mean_claim(
            "Control: a linear classifier shows what its ends imply and nothing else",
            abs(xr.apply_ufunc(np.log, linear_ratio)).max("path"),
            "largest log ratio of its energy to that of logits linear along the lines, mean over seeds",
            1e-3,
            rule="at most",
        ),
    )


def pictures(runs: Runs) -> Mapping[str, Any]:
    """High-frequency energy over training beside that of logits linear along the lines, and the spectrum at the end."""
    found = {}
    for name in runs:
        own, null = high_energy(runs[name]), high_energy(runs[name], null=True)
        both = xr.concat([own, null.assign_coords(path=[f"{path}, null" for path in null.path.values])], "path")
        log = xr.apply_ufunc(np.log10, both)
        found[f"Energy at high frequency, {name}"] = lab.plot.labelled_lines(
            log, "path", title=f"Digits, {name}", y_title="log10 of the energy at high frequency along lines"
        )
    last = runs["many points"]["energy_ratio"].isel(time=-1).sel(frequency=slice(1, None))
    null = runs["many points"]["energy_ratio_null"].isel(time=-1).sel(frequency=slice(1, None))
    found["Spectrum along lines"] = lab.plot.labelled_lines(
        last, "path", "frequency", null=null.mean(("path", "seed")), title="Digits, at the end of training"
    )
    return found
