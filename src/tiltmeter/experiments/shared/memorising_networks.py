"""Networks that memorise: few real images in two groups, seen many times, with right or wrong labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
import xarray as xr

from tiltmeter.data.grouped import GroupedData
from tiltmeter.data.public.digits import digits
from tiltmeter.data.public.fashion_mnist import fashion_mnist
from tiltmeter.data.public.grouping import rotated
from tiltmeter.data.public.images import standardised
from tiltmeter.experiments.shared.network_students import student, told
from tiltmeter.experiments.shared.picture_groups import FRESH
from tiltmeter.losses import Square
from tiltmeter.recipe.recipe import Recipe
from tiltmeter.recipe.watch import Watch
from tiltmeter.record import Trajectory, log_spaced

#: The majority is faint, the minority bright, so that it has the larger variance.
GROUPS = ("upright", "turned")
SHARE, CONTRAST = 0.8, (0.4, 1.6)


def digit_images() -> tuple[GroupedData, GroupedData]:
    """Return the 1,125 training images of `digits` and the held-out half, labelled by whether the digit is >= 5."""
    train, look = digits(SHARE, CONTRAST, seed=FRESH, labels="large")
    return _in_order(train), _in_order(look)


def clothes(examples: int, look: int) -> tuple[GroupedData, GroupedData]:
    """Return images of Fashion-MNIST and held-out ones in both groups; the label is whether the class is 5 or more."""
    train, test = fashion_mnist("train"), fashion_mnist("test")
    rng = np.random.default_rng(FRESH)
    drawn, seen = rng.permutation(len(train))[:examples], rng.permutation(len(test))[:look]
    pixels = standardised(np.concatenate([train.x[drawn], test.x[seen]]))
    pixels = pixels - pixels.mean()
    y = np.where(np.concatenate([train.y[drawn], test.y[seen]]) >= 5, 1.0, -1.0)
    new = np.arange(len(drawn), len(y))
    common = round(SHARE * examples)

    def both(up: np.ndarray, down: np.ndarray) -> GroupedData:
        x = [pixels[up] * CONTRAST[0], rotated(pixels[down], 90) * CONTRAST[1]]
        flat = np.concatenate([part.reshape(len(part), -1) for part in x]).astype(np.float32)
        members = np.repeat(GROUPS, [len(up), len(down)])
        return GroupedData(flat, np.concatenate([y[up], y[down]]), members, groups=list(GROUPS))

    return both(np.arange(common), np.arange(common, len(drawn))), both(new, new)


def flipped(data: GroupedData, noise: Mapping[str, float]) -> GroupedData:
    """Return the same examples with a share of each group's labels flipped."""
    rng = np.random.default_rng(FRESH + 3)
    members = np.array([data.groups[code] for code in data.codes])
    share = np.array([noise.get(str(member), 0.0) for member in members])
    y = np.where(rng.random(len(data)) < share, -np.asarray(data.y), data.y)
    return GroupedData(data.x, y, members, groups=list(data.groups))


def memorise(
    train: GroupedData, look: GroupedData, noise: Mapping[str, float], width: int, lr: float, batch: int, steps: int,
    seeds: int,
) -> Trajectory:  # fmt: skip
    """Train an ensemble of networks with one hidden layer and look at held-out images."""
    from tiltmeter.training.ensemble import ensemble

    recipe = Recipe(lr=lr, steps=steps, batch=batch, loss=Square())
    make, watch = partial(student, train.x.shape[1], (width,)), Watch(when=log_spaced(12))
    run = ensemble(make, flipped(train, noise), look, recipe, watch=watch, seeds=range(FRESH, FRESH + seeds))
    return told(run.replace({name: run[name] for name in ("loss", "error")}), "network")


def best_step(run: Trajectory, curve: str = "loss") -> xr.DataArray:
    """Return the look at which the mean of each group is best."""
    return run[curve].mean("seed").idxmin("time")


def rise(run: Trajectory, curve: str = "loss") -> xr.DataArray:
    """Return the last value of the mean over its best value, by group."""
    mean = run[curve].mean("seed")
    return mean.isel(time=-1, drop=True) / mean.min("time")


def first_crossing(run: Trajectory) -> float:
    """Return the first step from which the mean losses keep the other order; NaN if there is none."""
    mean = run["loss"].mean("seed")
    gap = (mean.sel(group=GROUPS[0]) - mean.sel(group=GROUPS[1])).values
    times = mean.coords["time"].values
    # The first looks are those of untrained networks.
    changes = np.flatnonzero((gap[:-1] > 0) & (gap[1:] < 0) & (times[:-1] >= 10))
    if not changes.size:
        return float("nan")
    i = int(changes[0])
    return float(times[i] + (times[i + 1] - times[i]) * gap[i] / (gap[i] - gap[i + 1]))


def jackknife(statistic: Callable[..., float], *runs: Trajectory) -> float:
    """Return the jackknife standard error of a function of means over seeds."""
    seeds = runs[0]["loss"].coords["seed"].values
    values = []
    for left in seeds:
        kept = [seed for seed in seeds if seed != left]
        parts = [run.replace({name: curve.sel(seed=kept) for name, curve in run.items()}) for run in runs]
        values.append(statistic(*parts))
    count = len(values)
    return float(np.sqrt((count - 1) * np.var(values)))


def _in_order(data: GroupedData) -> GroupedData:
    members = [data.groups[code] for code in data.codes]
    return GroupedData(data.x, data.y, members, groups=list(GROUPS))
