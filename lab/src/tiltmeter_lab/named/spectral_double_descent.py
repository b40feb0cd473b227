"""spectral-double-descent: high frequencies come with memorised label noise, and may go again (Zhang et al., 2021).

Lines go through training images in random directions, because the directions of the authors are not known. Logits are
windowed and detrended: otherwise the spectrum shows only the leakage of their linear trend.
"""

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
from tiltmeter_lab.shared.over_seeds import best_of_others, mean_and_error
from tiltmeter_lab.shared.seed_study import seed_study

TITLE = "Memorising label noise raises high frequencies along lines through training images"
PAPER = "Zhang, Xiong and Wu, Rethink the Connections among Generalization, Memorization and the Spectral Bias (2021)"
NEEDS: tuple[str, ...] = ()

WRONG, RIGHT = "wrong labels", "right labels"
#: Frequencies from here on count as high, in periods per line.
HIGH = 4


@dataclass(frozen=True)
class Setting:
    """A fully connected network on digits, with and without wrong labels; lines start at training images."""

    points: int = 600
    noise: float = 0.2
    width: int = 256
    lr: float = 1e-3
    steps: int = 1500
    lines: int = 100
    seeds: int = 3
    together: int | None = None


QUICK = Setting()
#: The setting was chosen on other seeds; seeds from here on had not been used.
FRESH = 100
FULL = Setting(lr=5e-4, steps=8000, seeds=8, together=2)


@dataclass(frozen=True)
class HeldOut:
    """Error on held-out points, in addition to measures on training points."""

    data: tm.GroupedData

    def __call__(self, snapshot: tm.measures.Snapshot) -> dict[str, xr.DataArray]:
        wrong = snapshot.model.decide(snapshot.model.scores(self.data.x)) != self.data.y
        return {
            "held_out_error": snapshot.reading(
                "held_out_error",
                np.asarray(float(wrong.mean())),
                {},
                long_name="share of wrong decisions on points not trained on",
                better="lower",
                null="0.9: one answer out of ten, at random",
            )
        }


def run(setting: Setting, keep: Keep) -> Runs:
    """The same images with some wrong labels, and with right ones only."""
    return seed_study(keep, "spectral-double-descent", setting, (WRONG, RIGHT), range(FRESH, FRESH + setting.seeds))


def arm(setting: Setting, name: str, seeds: list[int]) -> tm.Trajectory:
    """Some seeds with wrong or with right labels."""
    return tm.stack([_train(setting, setting.noise if name == WRONG else 0.0, seed) for seed in seeds])


def _train(setting: Setting, noise: float, seed: int) -> tm.Trajectory:
    data, held_out = tm.data.plain_digits(setting.points, noise, seed)
    torch.manual_seed(seed)
    return tm.train(
        tm.modules.mlp(64, (setting.width, setting.width), 10),
        data,
        data,
        tm.Recipe(partial(torch.optim.Adam, lr=setting.lr), steps=setting.steps, batch=50),
        watch=tm.Watch(
            when=tm.record.log_spaced(6),
            measures=(
                lab.measures.LineSpectrum(("random",), setting.lines, window="hann", detrend="linear", constant=False),
                HeldOut(held_out),
            ),
        ),
        seed=seed,
    )


def high_share(trajectory: tm.Trajectory) -> xr.DataArray:
    """Share of the energy of logits, the constant left out, at high frequencies."""
    ratio = trajectory["energy_ratio"].sel(path="random", frequency=slice(HIGH, None))
    share: xr.DataArray = xr.apply_ufunc(np.exp, ratio).sum("frequency")
    return share


def claims(runs: Runs) -> tuple[Claim, ...]:
    """Return the claims: from the best held-out error to the end, with wrong labels against right ones."""
    noisy, clean = runs[WRONG], runs[RIGHT]
    share, other, failed = high_share(noisy), high_share(clean), noisy["held_out_error"]
    seeds = share.sizes["seed"]
    best = failed.argmin("time")
    peak = _after(share, best).max("time")
    rise = peak / share.isel(time=best)
    late = slice(int(failed.mean("seed").argmin("time")), None)  # from the best moment of the mean on
    fall = 1.0 - np.exp(-best_of_others(xr.apply_ufunc(np.log, share.isel(time=late))))
    again = best_of_others(failed.isel(time=late))
    memorised = 1.0 - noisy["error"].sel(group="wrong").isel(time=-1)
    return (
        Claim(
            "The network memorises the wrong labels",
            float(memorised.min()),
            "smallest share over seeds of wrong labels given back",
            0.9,
            seeds=seeds,
        ),
        Claim(
            "While wrong labels are memorised, the share of high frequencies rises",
            float(rise.mean()),
            "mean ratio of its later peak to the best moment on points not trained on",
            1.1,
            error=mean_and_error(rise)[1],
            seeds=seeds,
            safe=False,
            neutral=1.0,
        ),
        Claim(
            "Control: with right labels the share of high frequencies at the end is lower",
            float((share.isel(time=-1) / other.isel(time=-1)).min()),
            "smallest ratio over seeds, wrong to right labels",
            1.1,
            seeds=seeds,
            safe=False,
        ),
        Claim(
            "Late in training the error on points not trained on falls again",
            float(again.mean()),
            "mean fall from its worst moment after the best one, found on the other half of the seeds, to the end",
            0.01,
            error=mean_and_error(again)[1],
            seeds=seeds,
            safe=False,
            neutral=0.0,
        ),
        Claim(
            "After its peak the share of high frequencies falls again",
            float(fall.mean()),
            "mean fall from its peak after the best moment, found on the other half of the seeds, to the end, in parts "
            "of the peak",
            0.05,
            "A second descent needs longer training and a larger network than this."
            if float(again.mean()) < 0.01
            else "",
            error=mean_and_error(fall)[1],
            seeds=seeds,
            safe=False,
            neutral=0.0,
        ),
    )


def _after(curve: xr.DataArray, place: xr.DataArray) -> xr.DataArray:
    """Return the curve from a place on, which differs between seeds; NaN before."""
    return curve.where(xr.DataArray(np.arange(curve.sizes["time"]), dims="time") >= place, -np.inf)


def pictures(runs: Runs) -> Mapping[str, Any]:
    """The share of high frequencies, and the errors, with wrong and with right labels."""
    names = xr.DataArray(list(runs), dims="labels", name="labels")
    share, failed = (
        xr.concat([read(found) for found in runs.values()], names, coords="minimal", compat="override", join="outer")
        for read in (high_share, lambda found: found["held_out_error"])
    )
    return {
        "Share of high frequencies": lab.plot.labelled_lines(
            share,
            "labels",
            null=0.0,  # logits linear along the lines, detrended
            title="Lines through training images",
            y_title="share of energy at high frequency",
        ),
        "Error on points not trained on": lab.plot.labelled_lines(
            failed, "labels", null=0.9, title="Error beside the lines", y_title="error on points not trained on"
        ),
    }
