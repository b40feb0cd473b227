"""The end of training as a run: trained students have no times, a Trajectory has one for them."""

from __future__ import annotations

from typing import Any

import xarray as xr

from tiltmeter.record import Origin, Trajectory

#: The one time of such a run: a label, since the end of training has no time.
END = 0.0


def as_run(found: xr.Dataset) -> Trajectory:
    """A Dataset of trained students, as from `equilibrium`, as a trajectory of one time.

    >>> run = as_run(xr.Dataset({"error": ("group", [0.1, 0.2])}, coords={"group": ["+", "-"]}))
    >>> run["error"].dims
    ('time', 'group')
    >>> as_dataset(run)["error"].values.tolist()
    [0.1, 0.2]
    """
    origin: Any = found.attrs.get("origin")
    curves = {str(name): curve.expand_dims(time=[END]) for name, curve in found.data_vars.items()}
    return Trajectory(curves, "t", Origin("equilibrium") if origin is None else Origin.from_json(origin))


def as_dataset(run: Trajectory) -> xr.Dataset:
    """The Dataset that `as_run` was given."""
    found = run.to_dataset().isel(time=0, drop=True)
    return found.assign_attrs(origin=run.origin.to_json())
