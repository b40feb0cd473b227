"""Exact theory against integrating the equations of motion one problem at a time.

10,000 random two-group problems x 200 times. The other side is `solve_ivp(DOP853, rtol=1e-8)` with a NumPy right-hand
side that computes no losses, errors or rates; it runs on a sample of the problems, since all would take minutes.
"""

from __future__ import annotations

import sys
import time
import tracemalloc
from functools import partial
from pathlib import Path

import numpy as np
import xarray as xr
from scipy.integrate import solve_ivp

import tiltmeter as tm
from tiltmeter import SGD, predict, teacher_mixture
from tiltmeter.theory import Mixture
from tiltmeter.theory.dynamics.modes import evaluate_modes, modes
from tiltmeter.theory.population.labelled_curves import OverlapCurves
from tiltmeter.theory.problem.sgd_arrays import Parameters, parameters

sys.path.insert(0, str(Path(__file__).parent))
from _measure import best as shortest
from _measure import report

#: CPU time of all threads: what other work on the machine takes does not count, nor does it that two cores share ours.
best = partial(shortest, clock=time.process_time)

PROBLEMS, SAMPLE, LR = 10_000, 150, 0.2
TIMES = np.geomspace(0.01, 200.0, 200)
ORDER_PARAMETERS = ("loss", "M", "R", "Q")


def random_problems(count: int) -> Mixture:
    """Two groups with everything random; the geometry comes from random vectors, so it is always possible."""
    rng = np.random.default_rng(0)
    v, plus, minus = rng.normal(size=(3, count, 5)) * np.array([0.5, 1.0, 1.0])[:, None, None]
    plus /= np.linalg.norm(plus, axis=1, keepdims=True)
    minus /= np.linalg.norm(minus, axis=1, keepdims=True)
    labels = {"case": np.arange(count)}

    def along(values: np.ndarray) -> xr.DataArray:
        return xr.DataArray(values, dims="case", coords=labels)

    return teacher_mixture(
        rho=along(rng.uniform(0.1, 0.9, count)),
        shift=along((v * v).sum(1)),
        variance=(along(rng.uniform(0.2, 2.0, count)), along(rng.uniform(0.2, 2.0, count))),
        overlap=along((plus * minus).sum(1)),
        shift_overlap=(along((v * plus).sum(1)), along((v * minus).sum(1))),
        label_bias=(along(rng.normal(0, 0.3, count)), along(rng.normal(0, 0.3, count))),
    )


def one_by_one(par: Parameters, n: int, **tolerance: float) -> np.ndarray:
    """M, R, Q of one problem by adaptive integration."""
    p, D, m, K, C, T = par.p[n], par.D[n], par.m[n], par.K[n], par.C[n], par.T[n]
    reach = np.sqrt(D) * par.g[n]
    pull, D_bar, noise = p * reach, p @ D, LR**2 * p * D

    def rhs(_: float, y: np.ndarray) -> np.ndarray:
        M, R, Q = y[:2], y[2:4], y[4]
        miss = p * (M - m)
        toward = m * M + reach * R
        dM = -LR * (D_bar * M + K @ miss - C @ pull)
        dR = -LR * (D_bar * R + miss @ C - T @ pull)
        dQ = -2.0 * LR * (p @ (M * M + D * Q - toward)) + noise @ (M * M + D * Q + 1.0 - 2.0 * toward)
        return np.concatenate([dM, dR, [dQ]])

    return solve_ivp(
        rhs, (0.0, TIMES[-1]), np.zeros(5), method="DOP853", t_eval=TIMES, **({"rtol": 1e-8} | tolerance)
    ).y


def main() -> None:
    problem, sgd = random_problems(PROBLEMS), SGD(lr=LR)
    par = parameters(problem, sgd)
    chosen = np.random.default_rng(1).choice(PROBLEMS, SAMPLE, replace=False)
    arrays = OverlapCurves.empty(PROBLEMS, len(TIMES), 2)

    def into_arrays() -> OverlapCurves:
        fresh = parameters(problem, sgd)
        return evaluate_modes(fresh, modes(fresh), TIMES, out=arrays)

    into_arrays()
    predict(problem, sgd, TIMES)  # compile everything first
    before = best(lambda: [one_by_one(par, n) for n in chosen[: SAMPLE // 2]], 1)
    fast = best(into_arrays, 20)
    labelled = best(lambda: predict(problem, sgd, TIMES, ORDER_PARAMETERS))
    rates = ("loss", "M", "R", "Q", "error", "positive_rate", "tpr", "fpr", "ppv")
    everything = best(lambda: dict(predict(problem, sgd, TIMES, rates)))
    every = best(lambda: dict(predict(problem, sgd, TIMES)))
    only_loss = best(lambda: predict(problem, sgd, TIMES, ("loss",))["loss"])
    loss_of_every = best(lambda: predict(problem, sgd, TIMES)["loss"])
    after = best(lambda: [one_by_one(par, n) for n in chosen[SAMPLE // 2 :]], 1)
    slow = (before + after) / SAMPLE * PROBLEMS
    rough = max(float(np.abs(one_by_one(par, n)[4] - arrays.Q[n]).max()) for n in chosen[:20])
    tight = max(float(np.abs(one_by_one(par, n, rtol=1e-12, atol=1e-14)[4] - arrays.Q[n]).max()) for n in chosen[:20])
    print(f"largest difference in Q: {rough:.1e} at rtol 1e-8, {tight:.1e} at rtol 1e-12, which takes still longer")
    print(f"one by one {slow:.0f} s, together {fast:.3f} s")

    tracemalloc.start()
    result = predict(problem, sgd, TIMES, ORDER_PARAMETERS)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    size = sum(curve.nbytes for curve in result.values())

    start = time.process_time()
    grid = teacher_mixture(
        rho=("rho", np.linspace(0.02, 0.98, 200)), variance=(0.5, ("D", np.geomspace(0.1, 5, 200))), overlap=0.5
    )
    curves = predict(grid, SGD(lr=0.1), np.geomspace(0.01, 500, 100), ("loss",))
    last = curves.replace({"loss": curves["loss"].isel(time=slice(-1, None))})
    tm.theory.leader_on_grid(last), tm.theory.crossing_count(curves)
    diagram = time.process_time() - start

    def row(seconds: float, bar: float) -> dict[str, float]:
        ratio = slow / seconds
        return {"ratio": ratio, "bar": bar, "met": ratio >= bar, "seconds": seconds, "one_by_one_seconds": slow}

    report(
        "predict",
        {
            "order parameters and losses into arrays": row(fast, 1000.0),
            "the same through predict, labelled": row(labelled, 300.0),
            "with errors and rates": row(everything, 80.0),
            "all default curves, read": row(every, 150.0),
            "the loss of all curves over the loss alone (at most)": {
                "ratio": loss_of_every / only_loss,
                "bar": 1.3,
                "met": loss_of_every / only_loss <= 1.3,
            },
            "peak memory over size of the result (at most)": {
                "ratio": peak / size,
                "bar": 2.0,
                "met": peak / size <= 2.0,
            },
            "200 x 200 phase diagram, in seconds (at most)": {"ratio": diagram, "bar": 1.5, "met": diagram <= 1.5},
        },
    )


if __name__ == "__main__":
    main()
