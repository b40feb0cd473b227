"""Several classes: exact theory and chain against a direct simulation with all coordinates of the same problem.

Three classes in two shifted groups, trained bias, d = 1000, 20 seeds side by side, up to t = 50. The direct side draws
all d coordinates of every input, labels it by the teachers and makes the step, in NumPy over all seeds at once; it is
timed over a part of the steps, which all cost the same. Times are CPU time of all threads, so that a busy machine
counts for both sides alike.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

from tiltmeter import SGD, predict, simulate, theory
from tiltmeter.theory import class_mixture, students
from tiltmeter.theory.population.classes.moments import class_moments

sys.path.insert(0, str(Path(__file__).parent))
from _measure import best, report

D, SEEDS, LAST, TIMED = 1000, 20, 50.0, 2000
TIMES = np.geomspace(0.01, LAST, 200)
SETTING: dict[str, Any] = {"overlap": 0.5, "similarity": 0.4, "shift": 0.5}
LOSSES, ALL = ("loss", "class_loss", "M", "R", "Q"), ("loss", "class_loss", "error", "class_accuracy", "M", "R", "Q")
SGD_USED = SGD(lr=0.5, train_bias=True)


def problem(classes: int = 3) -> Any:
    return class_mixture(classes, 0.7, (0.6, 1.4), class_bias=tuple(np.linspace(0.3, -0.3, classes)), **SETTING)


def direct(classes: int, steps: int, cross_entropy: bool) -> None:
    """So many steps of all seeds, all coordinates."""
    data, rng = class_moments(problem(classes)), np.random.default_rng(0)
    rank, rate, every = data.mu.shape[1], 0.5 / D, np.arange(SEEDS)
    W, bias, root = np.zeros((SEEDS, classes, D)), np.zeros((SEEDS, classes)), np.sqrt(data.D)
    for _ in range(steps):
        g = (rng.random(SEEDS) > data.p[0]).astype(int)
        x = rng.standard_normal((SEEDS, D))
        x *= root[g, None]
        x[:, :rank] += data.mu[g]
        y = (np.matmul(data.teachers[g], x[:, :rank, None])[:, :, 0] + data.offsets[g]).argmax(1)
        miss = np.matmul(W, x[:, :, None])[:, :, 0] + bias
        if cross_entropy:
            miss = np.exp(miss - miss.max(1, keepdims=True))
            miss /= miss.sum(1, keepdims=True)
        else:
            miss += 1.0 / classes
        miss[every, y] -= 1.0
        W -= (rate * miss)[:, :, None] * x[:, None, :]
        bias -= rate * miss


def cpu(work: Callable[[], Any], repeats: int = 3) -> float:
    work()  # compile first
    return best(work, repeats, process_time)


def main() -> None:
    rows: dict[str, dict[str, float]] = {}
    slow = {
        (count, kind): best(partial(direct, count, TIMED, kind), 2, process_time) * LAST * D / TIMED
        for count, kind in ((3, False), (3, True), (6, False))
    }

    def ratio(label: str, seconds: float, simulated: float, bar: float | None = None) -> None:
        found = simulated / seconds
        rows[label] = {"ratio": found, "seconds": seconds, "simulation_seconds": simulated}
        if bar is not None:
            rows[label] |= {"bar": bar, "met": found >= bar}

    def exact(count: int, curves: tuple[str, ...], times: np.ndarray = TIMES) -> float:
        return cpu(lambda: [curve.values for curve in predict(problem(count), SGD_USED, times, curves).values()])

    once = {(count, curves): exact(count, curves) for count, curves in ((3, LOSSES), (3, ALL), (6, ALL))}
    ratio("theory, losses at 200 times, over direct runs", once[3, LOSSES], slow[3, False], 50.0)
    ratio("theory, losses, errors, accuracies at 200 times", once[3, ALL], slow[3, False], 50.0)
    ratio("the same with six classes", once[6, ALL], slow[6, False], 10.0)
    soft = partial(
        predict, problem(), SGD(lr=0.5, train_bias=True), TIMES, ("loss", "class_loss"), students.Softmax(),
        theory.Sobol(2**9),
    )  # fmt: skip
    ratio(
        "softmax theory, losses at 200 times", cpu(lambda: [c.values for c in soft().values()], 1), slow[3, True], 5.0
    )
    for name, student, kind in (("chain", students.Linear(), False), ("chain of a softmax", students.Softmax(), True)):
        made = partial(simulate, problem(), SGD_USED, [LAST], D, SEEDS, student=student, curves=("R", "Q"))
        ratio(f"{name}, 20 seeds to t = 50", cpu(made, 2), slow[3, kind], 10.0)
    rows["six classes cost, over three (theory, all curves)"] = {"ratio": once[6, ALL] / once[3, ALL]}
    rows["ten times the evaluations cost"] = {"ratio": once[3, ALL] / exact(3, ALL, TIMES[::10])}
    report("classes", rows)


if __name__ == "__main__":
    main()
