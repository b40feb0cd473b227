"""Runs that kept their points, made without a training: who is late, who is worse off, and who is neither is known."""

import numpy as np
import xarray as xr

import tiltmeter as tm

STEPS = np.array([0, 1, 3, 10, 30, 100, 300, 1000])
#: How far the training is at each step.
PROGRESS = np.array([0.0, 0.15, 0.3, 0.5, 0.7, 0.85, 0.95, 1.0])


def people(points=2000, seed=0):
    """A table that people could read: two columns of words and two of numbers."""
    rng = np.random.default_rng([seed, 1])
    return {
        "age": rng.integers(18, 80, points),
        "hours": np.round(rng.normal(40, 10, points), 1),
        "job": rng.choice(["clerk", "cook", "driver", "nurse"], points),
        "town": rng.choice(["north", "south"], points),
    }


def margins(points, late=None, hard=None, seed=0):
    """Scores in favour of the label at every step; late points first go the wrong way, hard ones stay low."""
    rng = np.random.default_rng([seed, 2])
    noise = rng.normal(size=points)
    course = 3.0 * PROGRESS[:, None] * np.ones(points) + noise * PROGRESS[:, None]
    if late is not None:
        turned = 6.0 * np.maximum(PROGRESS - 0.5, 0.0) - 2.0 * np.sin(np.pi * PROGRESS)
        course = np.where(late, turned[:, None] + noise * PROGRESS[:, None], course)
    if hard is not None:
        course = np.where(hard, 0.2 * course, course)
    return course


def made_run(course, positive=None, seeds=None, source="training", loss="logistic loss", settings=None, weighted=False):
    """A run whose points have these margins: (steps, points), or (seeds, steps, points)."""
    with np.errstate(invalid="ignore"):  # NaN: a run that diverged
        losses = np.logaddexp(0.0, -np.asarray(course)).astype(np.float32)
    points = losses.shape[-1]
    positive = np.arange(points) % 2 == 0 if positive is None else positive
    coords = {"time": STEPS, "group": ("point", ["all"] * points), "positive": ("point", positive)}
    dims = ("time", "point")
    if seeds is not None:
        coords["seed"], dims, losses = list(seeds), ("time", "point", "seed"), np.moveaxis(losses, 0, -1)
    array = xr.DataArray(losses, dims=dims, coords=coords)
    right = xr.DataArray(np.asarray(losses) < np.log(2.0), dims=dims, coords=coords)
    decided = right == xr.DataArray(positive, dims="point")
    mean = array.mean("point").expand_dims(group=["all"], axis=1)
    facts = {"points": points, "shape": [4], "sizes": [["all", points]], "label_rates": [], "weighted": weighted}
    origin = tm.record.Origin(source, problem={"held_out": facts}, settings={"loss": loss, **(settings or {})})
    kept = {"loss": array, "decided_positive": decided.transpose(*dims).assign_coords(coords)}
    return tm.Trajectory({"loss": mean.transpose("time", "group", ...)}, "step", origin, points=kept)
