"""Exact curves: a run of theory, fresh or loaded from disk, evaluated again at any time.

Only the house that made such a run can do so. Without it the run is judged by its recorded values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr

from tiltmeter.plugins import SOURCES, plugin
from tiltmeter.record.trajectory import Trajectory


def maker_of(run: Trajectory) -> Any | None:
    """What the theory knows of runs, if this is a run of theory and the theory is installed; else None."""
    return plugin(SOURCES, "theory") if run.evaluate is not None or run.origin.source == "theory" else None


def revived(run: Trajectory) -> Trajectory:
    """Return a run of theory loaded from disk with its `evaluate` restored; anything else unchanged."""
    if run.evaluate is not None or run.clock != "t":
        return run
    maker = maker_of(run)
    return run if maker is None else maker.revived(run)


def exact_curve(run: Trajectory, name: str) -> Callable[[Any], xr.DataArray] | None:
    """Return one curve of a theory as a function of time; None if it is known only at recorded times."""
    evaluate = revived(run).evaluate
    return None if evaluate is None else lambda times: evaluate(np.atleast_1d(times), (name,))[name]
