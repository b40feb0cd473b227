"""The cell of the study in the explorer's demo: a small student of the two-group problem, run once."""

from __future__ import annotations

from typing import Any

import numpy as np

from tiltmeter.problem.sgd import SGD
from tiltmeter.problem.teacher_mixture import teacher_mixture
from tiltmeter.record.trajectory import Trajectory


def small_student(settings: dict[str, Any]) -> Trajectory:
    """One run at d = 50 for these settings: `rho`, the `variance` of the smaller group, and a `seed`.

    >>> run = small_student({"rho": 0.8, "variance": 1.5, "seed": 0})
    >>> run["loss"].dims
    ('time', 'group')
    """
    from tiltmeter.simulation.chain import Chain
    from tiltmeter.simulation.simulate import simulate

    problem = teacher_mixture(settings["rho"], 0.0, (0.5, settings["variance"]), 0.5)
    times, quiet = np.geomspace(0.1, 50, 12), Chain(progress=False)
    found = simulate(problem, SGD(lr=0.1), times, d=50, seeds=[settings["seed"]], method=quiet)
    curves = {name: found[name].isel(seed=0, drop=True) for name in ("loss", "error") if name in found}
    return Trajectory(curves, found.clock, found.origin)
