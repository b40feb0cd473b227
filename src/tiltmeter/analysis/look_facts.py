"""Facts about the points that a run looked at, from its origin: whether it diverged, whether they are weighted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tiltmeter.record.trajectory import Trajectory


def diverged_at(trajectory: Trajectory) -> float | None:
    """When the run diverged, None if it did not; of several seeds, only if all did: others are judged without them."""
    if trajectory.diverged is None:
        return None
    times = np.atleast_1d(np.asarray(trajectory.diverged.values, dtype=float))
    return float(times.min()) if np.isfinite(times).all() else None


def looked_at(trajectory: Trajectory) -> Mapping[str, Any]:
    """What the origin of a training says of the points looked at; empty where nothing is known."""
    problem: Any = trajectory.origin.problem
    found = problem.get("look") if isinstance(problem, Mapping) and trajectory.origin.source == "training" else None
    return found if isinstance(found, Mapping) else {}
