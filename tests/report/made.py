"""Runs made by hand, whose numbers are known."""

from dataclasses import replace

import numpy as np
import xarray as xr

import tiltmeter as tm

#: True negatives, false positives, false negatives, true positives of 8,000 people held out: census income by sex.
WOMEN, MEN = (4063, 38, 117, 33), (3143, 70, 305, 231)


def decided(cells, groups, seeds=1, times=(0, 100, 500), wobble=0.0):
    """A run that says no to all before its last evaluation and then decides as `cells` say, with losses to match."""
    sizes = [sum(counts) for counts in cells]
    member = np.repeat(np.arange(len(cells)), sizes)
    positive = np.concatenate([np.repeat([False, False, True, True], counts) for counts in cells])
    last = np.concatenate([np.repeat([False, True, False, True], counts) for counts in cells])
    rng = np.random.default_rng(0)
    yes = np.zeros((len(times), len(member), seeds), dtype=bool)
    yes[-1] = last[:, None] ^ (rng.random((len(member), seeds)) < wobble)
    probability = np.where(yes[-1], 0.7, 0.05).astype(np.float32)
    loss = np.where(yes == positive[:, None], 0.1, 1.5) + np.linspace(1.0, 0.0, len(times))[:, None, None]
    names = np.empty(len(cells), dtype=object)
    names[:] = list(groups)
    coords = {"time": list(times), "group": ("point", names[member]), "positive": ("point", positive)}
    points = {"loss": loss.astype(np.float32), "decided_positive": yes, "probability": probability[None]}
    shapes = {name: {**coords, "time": [times[-1]] if name == "probability" else list(times)} for name in points}
    kept = {
        name: xr.DataArray(array, dims=("time", "point", "seed"), coords={**shapes[name], "seed": range(seeds)})
        for name, array in points.items()
    }
    curves = {}
    for name, values, where in (
        ("loss", loss, None),
        ("error", yes != positive[:, None], None),
        ("positive_rate", yes, None),
        ("tpr", yes, positive),
        ("fpr", yes, ~positive),
    ):
        counted = np.ones(len(member), dtype=bool) if where is None else where
        with np.errstate(all="ignore"):
            mean = np.stack([values[:, counted & (member == g)].mean(1) for g in range(len(cells))], 1)
        curves[name] = xr.DataArray(
            mean, dims=("time", "group", "seed"), coords={"time": list(times), "group": names, "seed": range(seeds)}
        )
        curves[f"{name}_se"] = 0.01 + 0 * curves[name]
    if seeds == 1:
        curves = {name: curve.isel(seed=0, drop=True) for name, curve in curves.items()}
        kept = {name: array.isel(seed=0, drop=True) for name, array in kept.items()}
    evaluation = {
        "points": len(member),
        "sizes": [[g, n] for g, n in zip(groups, sizes, strict=True)],
        "label_rates": [
            [g, [[0, 1 - (c[2] + c[3]) / sum(c)], [1, (c[2] + c[3]) / sum(c)]]]
            for g, c in zip(groups, cells, strict=True)
        ],
    }
    settings = {
        "model": {"class": "Net", "parameters": 1234},
        "loss": "logistic loss",
        "train": evaluation,
        "steps": 500,
    }
    origin = tm.record.Origin("training", {"held_out": evaluation}, settings, seeds=tuple(range(seeds)))
    return tm.Trajectory(curves, "step", origin, points=kept)


def census(**more):
    return decided([WOMEN, MEN], ["women", "men"], **more)


def read_as(run, labels, positive):
    """The same run on points of a table with these label words."""
    evaluation = {**run.origin.problem["held_out"], "reading": {"rows": 1000, "labels": labels, "positive": positive}}
    origin = replace(run.origin, problem={"held_out": evaluation})
    return tm.Trajectory(dict(run), run.clock, origin, points=run.points)
