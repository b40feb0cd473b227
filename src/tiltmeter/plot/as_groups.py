"""as_groups: draw a curve over other labels than groups (cues, features, tokens) as if they were groups."""

from __future__ import annotations

from tiltmeter.record.trajectory import Trajectory


def as_groups(trajectory: Trajectory, curve: str, dim: str) -> Trajectory:
    """The trajectory with only this curve and with its dimension renamed to `group`, so that `curves` gives each label
    a colour.

    >>> import xarray as xr
    >>> from tiltmeter.record import Origin
    >>> share = xr.DataArray([[0.2, 0.8]], dims=("time", "cue"), coords={"time": [1], "cue": ["shape", "colour"]})
    >>> as_groups(Trajectory({"share": share}, "step", Origin("example")), "share", "cue")["share"].dims
    ('time', 'group')
    """
    values = trajectory[curve]
    if dim not in values.dims:
        raise ValueError(f"Curve {curve!r} has no dimension {dim!r}. There are: {', '.join(map(str, values.dims))}.")
    kept = {curve: values.rename({dim: "group"})}
    if f"{curve}_se" in trajectory:
        kept[f"{curve}_se"] = trajectory[f"{curve}_se"].rename({dim: "group"})
    return trajectory.replace(kept)
