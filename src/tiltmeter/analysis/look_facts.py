"""Facts about the points that a run looked at, from its origin: whether it diverged, whether they are weighted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tiltmeter.record.trajectory import Trajectory


def diverged_at(trajectory: Trajectory) -> float | None:
    """Return when the run diverged, or None; with several seeds, only if all of them diverged."""
    if trajectory.diverged is None:
        return None
    times = np.atleast_1d(np.asarray(trajectory.diverged.values, dtype=float))
    return float(times.min()) if np.isfinite(times).all() else None


def looked_at(trajectory: Trajectory) -> Mapping[str, Any]:
    """Return what the origin says about the held-out points; empty if nothing is known."""
    problem: Any = trajectory.origin.problem
    found = problem.get("look") if isinstance(problem, Mapping) and trajectory.origin.source == "training" else None
    return found if isinstance(found, Mapping) else {}
