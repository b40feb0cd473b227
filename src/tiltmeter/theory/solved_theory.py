"""solved_theory: a problem and its SGD, solved by the method that its laws allow."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tiltmeter.problem.mixture import Mixture
from tiltmeter.problem.sgd import SGD
from tiltmeter.theory.linear_theory import LinearTheory, linear_theory
from tiltmeter.theory.steered_theory import SteeredTheory, steered_theory


def solved_theory(
    problem: Mixture, sgd: SGD, curves: Iterable[str] | None, times: np.ndarray
) -> LinearTheory | SteeredTheory:
    """Solve in closed form or by integration; with a group law, integrate its state too."""
    if sgd.law is not None and not sgd.law.constant and isinstance(problem, Mixture):
        return steered_theory(problem, sgd, sgd.law, curves, times)
    return linear_theory(problem, sgd, curves, times)
