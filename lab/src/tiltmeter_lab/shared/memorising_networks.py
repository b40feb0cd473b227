"""Networks that memorise: few real images in two groups, seen many times, with right or wrong labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
import xarray as xr

import tiltmeter as tm
import tiltmeter_lab as lab
from tiltmeter_lab.shared.network_students import student, told
from tiltmeter_lab.shared.picture_groups import FRESH
from tiltmeter_lab.shared.picture_tasks import rotated

#: The majority is faint, the minority bright, so that it has the larger variance.
GROUPS = ("upright", "turned")
SHARE, CONTRAST = 0.8, (0.4, 1.6)


def digit_images() -> tuple[tm.GroupedData, tm.GroupedData]:
    """Return the 1,125 training images of `digits` and the held-out half, labelled by whether the digit is >= 5."""
    train, held_out = tm.data.digits(SHARE, CONTRAST, seed=FRESH, labels="large")
    return _in_order(train), _in_order(held_out)


def clothes(examples: int, held_out: int) -> tuple[tm.GroupedData, tm.GroupedData]:
    """Return images of Fashion-MNIST and held-out ones in both groups; the label is whether the class is 5 or more."""
    train, test = lab.data.fashion_mnist("train"), lab.data.fashion_mnist("test")
    rng = np.random.default_rng(FRESH)
    drawn, seen = rng.permutation(len(train))[:examples], rng.permutation(len(test))[:held_out]
    pixels = lab.data.standardised(np.concatenate([train.x[drawn], test.x[seen]]))
    pixels = pixels - pixels.mean()
    y = np.where(np.concatenate([train.y[drawn], test.y[seen]]) >= 5, 1.0, -1.0)
    new = np.arange(len(drawn), len(y))
    common = round(SHARE * examples)

    def both(up: np.ndarray, down: np.ndarray) -> tm.GroupedData:
        x = [pixels[up] * CONTRAST[0], rotated(pixels[down], 90) * CONTRAST[1]]
        flat = np.concatenate([part.reshape(len(part), -1) for part in x]).astype(np.float32)
        members = np.repeat(GROUPS, [len(up), len(down)])
        return tm.GroupedData(flat, np.concatenate([y[up], y[down]]), members, groups=list(GROUPS))

    return both(np.arange(common), np.arange(common, len(drawn))), both(new, new)


def flipped(data: tm.GroupedData, noise: Mapping[str, float]) -> tm.GroupedData:
    """Return the same examples with a share of each group's labels flipped."""
    rng = np.random.default_rng(FRESH + 3)
    members = np.array([data.groups[code] for code in data.codes])
    share = np.array([noise.get(str(member), 0.0) for member in members])
    y = np.where(rng.random(len(data)) < share, -np.asarray(data.y), data.y)
    return tm.GroupedData(data.x, y, members, groups=list(data.groups))


def memorise(
    train: tm.GroupedData, held_out: tm.GroupedData, noise: Mapping[str, float], width: int, lr: float, batch: int,
    steps: int, seeds: int,
) -> tm.Trajectory:  # fmt: skip
    """Train an ensemble of networks with one hidden layer and look at held-out images."""

    recipe = tm.Recipe(lr=lr, steps=steps, batch=batch, loss=tm.Square())
    make, watch = partial(student, train.x.shape[1], (width,)), tm.Watch(when=tm.record.log_spaced(12))
    run = tm.ensemble(make, flipped(train, noise), held_out, recipe, watch=watch, seeds=range(FRESH, FRESH + seeds))
    return told(run.replace({name: run[name] for name in ("loss", "error")}), "network")


def best_step(run: tm.Trajectory, curve: str = "loss") -> xr.DataArray:
    """Return the evaluation at which the mean of each group is best."""
    return run[curve].mean("seed").idxmin("time")


def rise(run: tm.Trajectory, curve: str = "loss") -> xr.DataArray:
    """Return the last value of the mean over its best value, by group."""
    mean = run[curve].mean("seed")
    return mean.isel(time=-1, drop=True) / mean.min("time")


def first_crossing(run: tm.Trajectory) -> float:
    """Return the first step from which the mean losses keep the other order; NaN if there is none."""
    mean = run["loss"].mean("seed")
    gap = (mean.sel(group=GROUPS[0]) - mean.sel(group=GROUPS[1])).values
    times = mean.coords["time"].values
    # The first evaluations are those of untrained networks.
    changes = np.flatnonzero((gap[:-1] > 0) & (gap[1:] < 0) & (times[:-1] >= 10))
    if not changes.size:
        return float("nan")
    i = int(changes[0])
    return float(times[i] + (times[i + 1] - times[i]) * gap[i] / (gap[i] - gap[i + 1]))


def jackknife(statistic: Callable[..., float], *runs: tm.Trajectory) -> float:
    """Return the jackknife standard error of a function of means over seeds."""
    seeds = runs[0]["loss"].coords["seed"].values
    values = []
    for left in seeds:
        kept = [seed for seed in seeds if seed != left]
        parts = [run.replace({name: curve.sel(seed=kept) for name, curve in run.items()}) for run in runs]
        values.append(statistic(*parts))
    count = len(values)
    return float(np.sqrt((count - 1) * np.var(values)))


def _in_order(data: tm.GroupedData) -> tm.GroupedData:
    members = [data.groups[code] for code in data.codes]
    return tm.GroupedData(data.x, data.y, members, groups=list(GROUPS))
