"""A curve of the trained student against the number of samples, against the same fixed point with adaptive quadrature.

50 sample ratios, logistic loss, two groups. The other side solves the same equations with the same search, warm starts
and tolerance, and takes every average from `scipy.integrate.quad` at 1e-8; it runs on every tenth ratio, each started
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

import tiltmeter.theory.fixed_point as fixed_point
from tiltmeter import Logistic, equilibrium, teacher_mixture
from tiltmeter.flattened import Point, flatten
from tiltmeter.losses import Loss
from tiltmeter.objective import Objective
from tiltmeter.theory.averages import Averages

sys.path.insert(0, str(Path(__file__).parent))
from _measure import best, report

RATIOS = np.geomspace(0.2, 20.0, 50)
RIDGE = 0.3
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


def averages_by_quad(
    loss: Loss, point: Point, M: np.ndarray, R: np.ndarray, Q: np.ndarray, bias: np.ndarray, V: np.ndarray, _: int = 1
) -> Averages:
    """The averages of `averages`, each by adaptive quadrature over the real line (the training loss is left out)."""
    number = len(M)
    found = {name: np.zeros(number) for name in ("f", "square", "slope", "turn")}
    for g in range(number):
        length = float(Q[g])
        r, scale = float(R[g]) / sqrt(length), sqrt(float(point.D[g]) * length)
        rest, a, middle = sqrt(1.0 - r * r), float(point.a[g]), float(M[g] + bias[g])
        for i, y in enumerate((1.0, -1.0)):
            s, v = float(point.s[g, i]), float(V[g])

            def gauss(xi: float) -> float:
                return exp(-0.5 * xi * xi) / 2.5066282746310002

            def share(xi: float) -> float:
                return float(ndtr(y * (a + r * xi) / rest))

            def turn(xi: float) -> float:
                t = (a + r * xi) / rest
                return y * exp(-0.5 * t * t) / (2.5066282746310002 * rest)

            def at(xi: float) -> tuple[float, float]:
                return force(middle + scale * xi, y, s, v)

            integrands = {
                "f": lambda xi: gauss(xi) * share(xi) * at(xi)[0],
                "square": lambda xi: gauss(xi) * share(xi) * at(xi)[0] ** 2,
                "slope": lambda xi: gauss(xi) * share(xi) * at(xi)[1],
                "turn": lambda xi: gauss(xi) * turn(xi) * at(xi)[0],
            }
            for name, integrand in integrands.items():
                found[name][g] += quad(integrand, -9.0, 9.0, epsabs=1e-8, epsrel=1e-8)[0]
    return Averages(**found, training_loss=np.full(number, np.nan))


def main() -> None:
    loss = Logistic()
    flat = flatten(PROBLEM, Objective(loss, ("samples", RATIOS), RIDGE))
    curve = best(lambda: equilibrium(PROBLEM, loss, ("samples", RATIOS), RIDGE), repeats=3)

    def solutions() -> list[fixed_point.Solution]:
        found: list[fixed_point.Solution] = []
        for point in flat.points:
            found.append(fixed_point.solve(loss, point, found[-1].state if found else None))
        return found

    alone = best(solutions, repeats=3)
    exact = solutions()
    # The same search with the other averages; quadrature to 1e-8 cannot be asked for more than that.
    ours, fixed_point.averages = fixed_point.averages, averages_by_quad
    tolerance, fixed_point.TOLERANCE = fixed_point.TOLERANCE, 1e-7
    chosen = range(5, len(RATIOS), 10)
    try:
        start = time.perf_counter()
        slow = [fixed_point._search(loss, flat.points[n], exact[n - 1].state, 1) for n in chosen]
        seconds = (time.perf_counter() - start) * len(RATIOS) / len(slow)
    finally:
        fixed_point.averages, fixed_point.TOLERANCE = ours, tolerance
    worst = 0.0
    for n, (state, residual, _) in zip(chosen, slow, strict=True):
        assert residual < 1e-7, residual
        found = fixed_point._overlaps(flat.points[n], state)
        names = zip(("M", "R", "Q", "bias"), found, strict=False)
        worst = max(worst, *(float(np.abs(values - getattr(exact[n], name)).max()) for name, values in names))
    print(f"largest difference of an order parameter: {worst:.1e}; with quad {seconds:.0f} s, here {curve:.2f} s")

    def row(ours: float) -> dict[str, float]:
        return {"ratio": seconds / ours, "bar": 30.0, "met": seconds / ours >= 30.0, "seconds": ours, "quad": seconds}

    rows = {"50 sample ratios, all observables": row(curve), "the fixed points alone": row(alone)}
    agree = {"ratio": worst, "bar": 1e-6, "met": worst < 1e-6}
    report("equilibrium", {**rows, "largest difference of an order parameter": agree})
    assert worst < 1e-6, worst


if __name__ == "__main__":
    main()
