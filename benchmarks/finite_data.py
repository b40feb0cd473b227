"""Exact theory of a fixed training set against direct simulation of the same problem, method and last time.

1,000 random two-group problems x 200 times, all test curves, in one call; the other side is `simulate` with
`method=Direct()` at d = 1000 with 20 seeds, timed on a few seeds of a few problems. Times are CPU time of all threads,
so that a busy machine counts for both sides alike.
"""

from __future__ import annotations

import sys
import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tiltmeter import SGD, Fixed, Flow, predict, simulate
from tiltmeter.theory import Descent, Direct

sys.path.insert(0, str(Path(__file__).parent))
from _measure import report
from predict import random_problems

PROBLEMS, SEEDS, TIMED, D, ALPHA = 1000, 20, 2, 1000, 2.0
TIMES = np.geomspace(0.01, 100.0, 200)
STEPS = np.unique(np.round(np.geomspace(1, 400, 60)))
CURVES = ("loss", "error", "positive_rate", "tpr", "fpr", "ppv", "M", "R", "Q")


def cpu(work: Callable[[], Any], repeats: int = 1) -> float:
    """The least CPU time of several calls."""
    found = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return min(found)


def direct(problem: Any, training: Any, times: np.ndarray, data: Fixed) -> float:
    """CPU time of 20 seeds, from `TIMED` of them."""
    options: dict[str, Any] = {"method": Direct(), "data": data, "curves": CURVES}
    simulate(problem, training, times[:2], d=20, seeds=1, **options)  # compile first
    return cpu(lambda: simulate(problem, training, times, d=D, seeds=TIMED, **options)) * SEEDS / TIMED


def main() -> None:
    problems = random_problems(PROBLEMS)
    data = Fixed(ALPHA)
    few = random_problems(4)
    rows: dict[str, dict[str, float]] = {}

    def point(index: int) -> Any:
        names = ("weight", "variance", "label_bias")
        parts = {
            name: {g: float(getattr(few, name).isel(case=index).sel(group=g)) for g in few.groups} for name in names
        }
        return few.replace(**parts, gram=few.gram.isel(case=index, drop=True).drop_vars(["vector", "other"]))

    def ratio(label: str, theory: float, simulated: float, bar: float | None) -> None:
        found = simulated / theory
        rows[label] = {"ratio": found, "seconds": theory, "simulation_seconds": simulated}
        if bar is not None:
            rows[label] |= {"bar": bar, "met": found >= bar}

    def most(label: str, value: float, bar: float) -> None:
        rows[label] = {"ratio": value, "bar": bar, "met": value <= bar}

    predict(few, Flow(1.0), TIMES, data=data)
    whole = cpu(lambda: predict(problems, Flow(1.0), TIMES, CURVES, data=data)) / PROBLEMS
    slow = direct(point(0), Flow(1.0), TIMES, data)
    ratio("flow, per problem in one call of 1,000", whole, slow, 50.0)
    predict(point(0), Descent(0.1, momentum=0.5), STEPS, CURVES, data=data)
    descent = cpu(lambda: predict(few, Descent(0.1, momentum=0.5), STEPS, CURVES, data=data), 3) / 4
    ratio("descent, per problem", descent, direct(point(0), Descent(0.1, momentum=0.5), STEPS, data), None)
    epochs = np.linspace(0.5, 10 * ALPHA, 60)
    for name, replace in (("with replacement", True), ("shuffled", False)):
        fixed = Fixed(ALPHA, replace=replace)
        predict(point(0), SGD(0.3), epochs, CURVES, data=fixed)
        took = cpu(partial(predict, point(0), SGD(0.3), epochs, CURVES, data=fixed), 3)
        ratio(f"SGD {name}, 10 epochs, one problem", took, direct(point(0), SGD(0.3), epochs, fixed), None)
        if not replace:
            most("shuffled equations for 10 epochs, in seconds (at most)", took, 2.0)
    most(
        "flow of one problem, test curves, in seconds (at most)",
        cpu(lambda: predict(point(0), Flow(1.0), TIMES, CURVES, data=data), 5),
        0.1,
    )
    everything = cpu(lambda: predict(point(0), Flow(1.0), TIMES, data=data), 3)
    rows["flow of one problem with training curves, in seconds"] = {"ratio": everything}
    # How cost and memory grow.
    late = [
        cpu(partial(predict, few, Flow(1.0), np.geomspace(0.01, last, 200), CURVES, data=Fixed(1.0)), 3)
        for last in (100.0, 10_000.0)
    ]
    rows["100 times as late at 1 example per dimension costs"] = {"ratio": late[1] / late[0]}
    twice = [
        cpu(partial(predict, point(0), SGD(0.3), np.linspace(0.5, n * ALPHA, 20), ("Q",), data=data), 3)
        for n in (10, 20)
    ]
    rows["twice the epochs of a shuffle cost"] = {"ratio": twice[1] / twice[0]}
    tracemalloc.start()
    result = predict(problems, Flow(1.0), TIMES, CURVES, data=data)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    size = sum(curve.nbytes for curve in result.values())
    rows["peak memory of 1,000 problems over size of the result"] = {"ratio": peak / size}
    report("finite_data", rows)


if __name__ == "__main__":
    main()
