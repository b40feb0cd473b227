"""A curve of the trained student against the number of samples, against the same fixed point with adaptive quadrature.

50 sample ratios, logistic loss, two groups. The other side solves the same equations with the same search, warm starts
and tolerance, and takes every average from `scipy.integrate.quad` at 1e-9; it runs on every tenth ratio, each started
from the exact solution of the ratio before it, as a whole curve would take minutes. Both agree to 1e-6.
"""

from __future__ import annotations

import sys
import time
from math import exp, sqrt
from pathlib import Path

import numpy as np
from scipy.integrate import quad
from scipy.special import ndtr

import tiltmeter.theory.dynamics.fixed_point as fixed_point
from tiltmeter import Logistic, equilibrium, teacher_mixture
from tiltmeter.losses import Loss
from tiltmeter.theory.dynamics.averages import Averages
from tiltmeter.theory.problem.objective import Objective, Point, flatten

sys.path.insert(0, str(Path(__file__).parent))
from _measure import best, report

RATIOS = np.geomspace(0.2, 20.0, 50)
RIDGE = 0.3
#: The residual at which both sides stop: order parameters are then right to far below 1e-6.
SAME = 9e-9
ROOT_TAU = sqrt(2.0 * np.pi)
PROBLEM = teacher_mixture(0.75, 1.0, (0.5, 1.2), 0.6, (0.4, 0.2), (0.2, -0.1))


def force(omega: float, y: float, s: float, V: float) -> tuple[float, float]:
    """Force of one example and its slope, by scalar Newton steps kept inside their bracket."""
    low, high = (omega, omega + V * s) if y > 0 else (omega - V * s, omega)
    u = 0.5 * (low + high)
    for _ in range(100):
        wrong = 1.0 / (1.0 + exp(min(y * u, 700.0)))
        miss = u - omega - V * s * y * wrong
        low, high = (u, high) if miss < 0 else (low, u)
        new = u - miss / (1.0 + V * s * wrong * (1.0 - wrong))
        if not low <= new <= high:
            new = 0.5 * (low + high)
        if abs(new - u) < 1e-13 * (1.0 + abs(u)):
            break
        u = new
    bend = wrong * (1.0 - wrong)
    return s * y * wrong, -s * bend / (1.0 + V * s * bend)


def one_average(name: str, y: float, mean: float, scale: float, r: float, a: float, s: float, V: float) -> float:
    """One average of one group and label, by adaptive quadrature."""
    rest = sqrt(1.0 - r * r)

    def f(xi: float) -> float:
        return force(mean + scale * xi, y, s, V)[0]

    def gauss(xi: float) -> float:
        return exp(-0.5 * xi * xi) / ROOT_TAU

    def share(xi: float) -> float:
        return float(ndtr(y * (a + r * xi) / rest))

    integrands = {
        "f": lambda xi: gauss(xi) * share(xi) * f(xi),
        "square": lambda xi: gauss(xi) * share(xi) * f(xi) ** 2,
        "slope": lambda xi: gauss(xi) * share(xi) * force(mean + scale * xi, y, s, V)[1],
        "turn": lambda xi: gauss(xi) * y * exp(-0.5 * ((a + r * xi) / rest) ** 2) / (ROOT_TAU * rest) * f(xi),
    }
    return float(quad(integrands[name], -9.0, 9.0, epsabs=1e-9, epsrel=1e-9)[0])


def averages_by_quad(
    _: Loss,
    point: Point,
    M: np.ndarray,
    R: np.ndarray,
    Q: np.ndarray,
    bias: np.ndarray,
    V: np.ndarray,
    fineness: int = 1,
) -> Averages:
    """The averages of `averages` (the training loss, which the fixed point does not need, is left out)."""
    assert fineness == 1
    found = {name: np.zeros(len(M)) for name in ("f", "square", "slope", "turn")}
    for g in range(len(M)):
        law = M[g] + bias[g], sqrt(point.D[g] * Q[g]), R[g] / sqrt(Q[g]), point.a[g]
        for i, y in enumerate((1.0, -1.0)):
            for name, total in found.items():
                total[g] += one_average(name, y, *map(float, law), float(point.s[g, i]), float(V[g]))
    return Averages(**found, training_loss=np.full(len(M), np.nan))


def main() -> None:
    loss = Logistic()
    flat = flatten(PROBLEM, Objective(loss, ("samples", RATIOS), RIDGE))

    def solutions() -> list[fixed_point.Solution]:
        found: list[fixed_point.Solution] = []
        for point in flat.points:
            found.append(fixed_point.solve(loss, point, found[-1].state if found else None))
        return found

    exact = solutions()
    finest = best(lambda: equilibrium(PROBLEM, loss, ("samples", RATIOS), RIDGE), 5)
    ours, tolerance = fixed_point.averages, fixed_point.TOLERANCE
    fixed_point.TOLERANCE = SAME  # for both sides
    chosen = range(5, len(RATIOS), 10)
    seconds = 0.0
    try:
        curve = best(lambda: equilibrium(PROBLEM, loss, ("samples", RATIOS), RIDGE), 5)
        alone = best(solutions, 5)
        fixed_point.averages = averages_by_quad
        slow = []
        for n in chosen:
            start = time.perf_counter()
            slow.append(fixed_point._search(loss, flat.points[n], exact[n - 1].state, 1))
            seconds += (time.perf_counter() - start) * len(RATIOS) / len(chosen)
        fixed_point.averages = ours
        curve = min(curve, best(lambda: equilibrium(PROBLEM, loss, ("samples", RATIOS), RIDGE), 5))
        alone = min(alone, best(solutions, 5))
    finally:
        fixed_point.averages, fixed_point.TOLERANCE = ours, tolerance
    worst = 0.0
    for n, (state, residual, _) in zip(chosen, slow, strict=True):
        assert residual < SAME, residual
        found = fixed_point._overlaps(flat.points[n], state)
        names = zip(("M", "R", "Q", "bias"), found, strict=False)
        worst = max(worst, *(float(np.abs(values - getattr(exact[n], name)).max()) for name, values in names))
    print(f"largest difference of an order parameter: {worst:.1e}; with quad {seconds:.0f} s, here {curve:.2f} s")

    def row(ours: float) -> dict[str, float]:
        return {"ratio": seconds / ours, "bar": 30.0, "met": seconds / ours >= 30.0, "seconds": ours, "quad": seconds}

    rows = {
        "50 sample ratios, all observables": row(curve),
        "the fixed points alone": row(alone),
        "all observables, to the default 1e-10": {"ratio": seconds / finest, "seconds": finest, "quad": seconds},
    }
    agree = {"ratio": worst, "bar": 1e-6, "met": worst < 1e-6}
    report("equilibrium", {**rows, "largest difference of an order parameter": agree})
    assert worst < 1e-6, worst


if __name__ == "__main__":
    main()
