"""Four problems of the theory on which group interventions are compared, and how they are run."""

from __future__ import annotations

import numpy as np

import tiltmeter as tm

#: Name: problem, learning rate, last time. A: variance against share. B: a shift. C: all of it. D: hard and rare.
PROBLEMS: dict[str, tuple[tm.theory.Mixture, float, float]] = {
    "A": (tm.teacher_mixture(rho=0.75, variance=(0.5, 1.5), overlap=0.7), 0.2, 60.0),
    "B": (
        tm.teacher_mixture(
            rho=0.7, shift=4.0, variance=(0.1, 1.0), overlap=0.9, shift_overlap=(0.471 * 0.1**0.5, 0.188)
        ),
        0.5,
        40.0,
    ),
    "C": (
        tm.teacher_mixture(
            rho=0.7,
            shift=1.5,
            variance=(0.5, 1.2),
            overlap=0.6,
            shift_overlap=(0.5, -0.3),
            label_bias=(0.2, -0.4),
        ),
        0.3,
        40.0,
    ),
    "D": (tm.teacher_mixture(rho=0.8, variance=(0.5, 1.0), overlap=0.3), 0.2, 60.0),
}


def evaluations(until: float, count: int = 300) -> np.ndarray:
    """Zero, then evenly spaced in log time."""
    return np.concatenate([[0.0], np.geomspace(until / 3000.0, until, count)])


def steered(
    name: str, law: tm.interventions.GroupIntervention | None, curves: tuple[str, ...] = ("loss", "pull")
) -> tm.Trajectory:
    """Predict one of the problems with an intervention, or without."""
    problem, lr, until = PROBLEMS[name]
    sgd = tm.SGD(lr=lr, interventions=() if law is None else (law,))
    chosen = tuple(curve for curve in curves if curve != "pull" or law is not None)
    return tm.predict(problem, sgd, evaluations(until), chosen)
