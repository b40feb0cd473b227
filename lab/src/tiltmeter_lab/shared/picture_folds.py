"""picture_folds: small convolutional networks on photographs of people, each photograph held out once."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

import numpy as np
import xarray as xr

import tiltmeter as tm
from tiltmeter_lab.claim import POWER, Claim, whether
from tiltmeter_lab.networks import small_cnn
from tiltmeter_lab.shared.over_seeds import mean_and_error


class FoldSetting(Protocol):
    """The numbers of such a training; `seeds` is the number of folds, `repeats` that of networks for each."""

    @property
    def seeds(self) -> int: ...
    @property
    def repeats(self) -> int: ...
    @property
    def width(self) -> int: ...
    @property
    def steps(self) -> int: ...
    @property
    def batch(self) -> int: ...
    @property
    def per_decade(self) -> int: ...


def over_folds(
    setting: FoldSetting, data: tm.GroupedData, curves: tuple[str, ...], optimizer: Any, fresh: int
) -> tm.Trajectory:
    """The curves of every fold, the mean over its networks, along `seed`. Points are not kept.

    Folds and networks depend on `fresh`, a number that was not used when the setting was chosen.
    """
    order = np.random.default_rng(fresh).permutation(len(data))
    parts: dict[str, list[xr.DataArray]] = {name: [] for name in curves}
    for fold, held_out in enumerate(np.array_split(order, max(2, setting.seeds))[: setting.seeds]):
        run = tm.ensemble(
            partial(small_cnn, 3, 1, setting.width),
            data.take(np.setdiff1d(order, held_out)),
            data.take(np.sort(held_out)),
            tm.Recipe(optimizer, steps=setting.steps, batch=setting.batch, loss=tm.Logistic()),
            watch=tm.Watch(when=tm.record.log_spaced(setting.per_decade)),
            seeds=[fresh + 10 * fold + repeat for repeat in range(setting.repeats)],
        )
        for name in curves:
            parts[name].append(run[name].mean("seed", keep_attrs=True).expand_dims(seed=[fold], axis=-1))
    joined = {name: xr.concat(found, "seed", combine_attrs="override") for name, found in parts.items()}
    return tm.Trajectory(joined, "step", tm.record.Origin("training", seeds=tuple(range(setting.seeds))))


def gap_at(run: tm.Trajectory, curve: str, step: float) -> Claim:
    """First group minus second at the last evaluation up to this step, with its interval over folds."""
    first, second = run[curve].coords["group"].values[:2]
    found = run[curve].sel(time=slice(None, step)).isel(time=-1)
    mean, error = mean_and_error(found.sel(group=first) - found.sel(group=second))
    return Claim("", mean, "", 0.0, error=error, seeds=found.sizes["seed"])


def lead_change(run: tm.Trajectory, curve: str, early: int, subject: str) -> Claim:
    """Whether the group that leads at an early step is not the one that leads last; both must be clear over folds."""
    gaps = [gap_at(run, curve, step) for step in (early, np.inf)]
    clear = all(gap.interval is not None and gap.interval[0] * gap.interval[1] > 0 for gap in gaps)
    turned = gaps[0].statistic * gaps[1].statistic < 0
    first, second = run[curve].coords["group"].values[:2]
    shown = max(POWER * gap.error for gap in gaps if gap.error is not None)
    power = f" A gap of {shown:.2g} could be shown." if np.isfinite(shown) else ""
    return whether(
        f"{subject}: the group that leads first is not the one that leads last, in {curve}",
        clear and turned,
        f"do the leads at step {early} and at the end differ, both clear",
        f"{curve.capitalize()} of {first} minus that of {second}: {gaps[0].measured} at step {early}, "
        f"{gaps[1].measured} at the end.{power}",
        seeds=gaps[0].seeds,
        safe=False,
        opposite=clear and not turned,
    )


def scaled(read: Callable[[np.ndarray, int], np.ndarray], places: np.ndarray, side: int) -> np.ndarray:
    """Photographs with pixels from -1 to 1."""
    return np.asarray(read(places, side).astype(np.float32) / 127.5 - 1.0)
