"""A small study for the demo of the explorer: who leads, over shares and variances."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import tiltmeter as tm
from tiltmeter_lab.study.study import Study

GRID = {"rho": [0.6, 0.8, 0.95], "variance": [0.5, 1.0, 1.5]}


def small_student(settings: dict[str, Any]) -> tm.Trajectory:
    """One run at d = 50 for these settings: `rho`, the `variance` of the smaller group, and a `seed`.

    >>> run = small_student({"rho": 0.8, "variance": 1.5, "seed": 0})
    >>> run["loss"].dims
    ('time', 'group')
    """
    problem = tm.teacher_mixture(settings["rho"], 0.0, (0.5, settings["variance"]), 0.5)
    times, quiet = np.geomspace(0.1, 50, 12), tm.theory.Chain(progress=False)
    found = tm.simulate(problem, tm.SGD(lr=0.1), times, d=50, seeds=[settings["seed"]], method=quiet)
    curves = {name: found[name].isel(seed=0, drop=True) for name in ("loss", "error") if name in found}
    return tm.Trajectory(curves, found.clock, found.origin)


def demo_study(to: Path) -> None:
    """Run the study into this folder."""
    Study(small_student, GRID, seeds=5, to=to).run(progress=False, jobs=1)
