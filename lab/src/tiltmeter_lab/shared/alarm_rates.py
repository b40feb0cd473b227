"""Rates of false alarms with their errors, joined over blocks of deals, and the power at equal rates."""

from __future__ import annotations

import numpy as np
import xarray as xr

import tiltmeter as tm
from tiltmeter_lab.catalogue import Runs
from tiltmeter_lab.shared.over_seeds import share as share_of_runs

#: The kinds of runs of `false-alarms`; a run's name begins with its kind.
NULL, COVERAGE, RECIPE = "deals", "coverage", "recipe"


def as_run(found: xr.Dataset) -> tm.Trajectory:
    curves = {str(name): array.astype(float).expand_dims(time=[0.0]) for name, array in found.items()}
    return tm.Trajectory(curves, "step", tm.record.Origin("false-alarms"))


def joined(runs: Runs, kind: str, curve: str, task: str = "") -> xr.DataArray:
    """Join all blocks of a kind: the deals of all data sets, one after another."""
    found = [one[curve].isel(time=0) for name, one in runs.items() if name.startswith(f"{kind} {task}".rstrip())]
    return xr.concat(
        found, dim="deal" if kind == NULL else "draw", coords="minimal", compat="override", join="override"
    )


def power_difference(runs: Runs) -> tuple[float, float, str]:
    """Return the paired difference in power, pooled over loss, error, tpr and sizes, its error, and its parts."""
    small = joined(runs, NULL, "small").values
    differences, told = [], []
    for curve in ("loss", "error", "tpr"):
        ours = joined(runs, NULL, "named").sel(rule="bands", curve=curve).values > 0
        theirs = joined(runs, NULL, "largest").sel(curve=curve).values
        changed = joined(runs, NULL, "named_flipped").sel(rule="bands", curve=curve).values > 0
        largest = joined(runs, NULL, "largest_flipped").sel(curve=curve).values
        for size in np.unique(small):
            cell = small == size
            # The limit just below the largest of them gives as many false alarms as our rule.
            limit = np.sort(theirs[cell])[::-1][int(ours[cell].sum())] if ours[cell].sum() < cell.sum() else 0.0
            other = largest[cell] > limit
            differences.append(changed[cell].astype(float) - other)
            told.append(f"{curve} {int(size)}: {changed[cell].mean():.0%}, {other.mean():.0%}")
    # Three curves are tested on the same deals, so their mean is one number per deal.
    pooled = np.concatenate(
        [np.mean(differences[i :: len(np.unique(small))], axis=0) for i in range(len(np.unique(small)))]
    )
    error = float(pooled.std(ddof=1) / len(pooled) ** 0.5)
    return (
        float(pooled.mean()),
        error,
        (
            f"Difference {pooled.mean():+.3f} ± {error:.3f}; found by bands and evaluation by evaluation, by "
            "smaller group: " + "; ".join(told) + "."
        ),
    )


def percent(rate: tuple[float, float]) -> str:
    return f"{100 * rate[0]:.1f} ± {100 * rate[1]:.1f} %"


def share(marks: xr.DataArray) -> tuple[float, float]:
    """Return the share of deals or draws that are marked, and its standard error."""
    return share_of_runs(np.asarray(marks.values).ravel() > 0)
