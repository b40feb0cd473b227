"""Laws of groups: a grid in one call against one by one, and a steered chain against a plain one, in processor time."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import tiltmeter as tm
from tiltmeter.problem.student import Linear
from tiltmeter.simulation.chain import Chain
from tiltmeter.simulation.data import Fresh
from tiltmeter.simulation.setting import setting
from tiltmeter.simulation.step_settings import StepSettings

sys.path.insert(0, str(Path(__file__).parent))
from _measure import report

PROBLEMS, TIMES = 1000, np.concatenate([[0.0], np.geomspace(0.02, 60.0, 100)])
#: How many of the problems are solved one by one; the time of all is that of these times their number over these.
ALONE = 50
SEEDS = 48
LAW = tm.interventions.GroupDRO(5.0, by="draws")


def spent(work: Callable[[], object], rounds: int) -> float:
    """The least processor time of several rounds."""
    found = []
    for _ in range(rounds):
        began = time.process_time()
        work()
        found.append(time.process_time() - began)
    return min(found)


def solve(rho: object, variance: object) -> None:
    problem = tm.teacher_mixture(rho=rho, variance=(0.5, variance), overlap=0.7)  # type: ignore[arg-type]
    tm.predict(problem, tm.SGD(lr=0.2, interventions=(LAW,)), TIMES, curves=("loss", "pull"))


def advancing(sgd: tm.SGD, d: int, steps: int, seeds: int) -> Callable[[], None]:
    """A call that makes `steps` steps of all seeds, on one thread."""
    problem = tm.teacher_mixture(rho=0.75, variance=(0.5, 1.5), overlap=0.7)
    chosen = setting(problem, sgd, Linear(), Fresh(), d)
    run = Chain().begin(chosen, tuple(range(seeds)))
    pace = StepSettings(chosen.sgd, chosen.par.groups, d)
    rates, weights = pace.rates(0, 1), pace.weights(0, 1)
    return lambda: run.advance(0, steps, rates, weights, 1)


def main() -> None:
    rows: dict[str, dict[str, float]] = {}
    rng = np.random.default_rng(0)
    shares, variances = rng.uniform(0.5, 0.9, PROBLEMS), rng.uniform(1.0, 1.5, PROBLEMS)
    solve(0.7, 1.2)
    whole = spent(lambda: solve(("problem", shares), ("problem", variances)), 3)
    alone = spent(lambda: [solve(a, b) for a, b in zip(shares[:ALONE], variances[:ALONE], strict=True)], 2)
    ratio = alone * PROBLEMS / ALONE / whole
    rows["predict under a law, 1,000 problems in one call"] = {
        "ratio": ratio, "bar": 20.0, "met": ratio >= 20.0, "seconds": whole
    }  # fmt: skip
    for d, seeds in ((1000, SEEDS), (1000, 512), (10_000, SEEDS)):
        for name, law in (
            ("group DRO by draws", tm.interventions.GroupDRO(5.0, by="draws", every=d // 100)),
            ("tilted by weights", tm.interventions.Tilted(3.0, every=d // 100)),
        ):
            steps = 960_000 // seeds if d == 1000 else 40_000
            plain = advancing(tm.SGD(lr=0.2), d, steps, seeds)
            steered = advancing(tm.SGD(lr=0.2, interventions=(law,)), d, steps, seeds)
            plain()
            steered()
            taken = [(spent(steered, 1), spent(plain, 1)) for _ in range(5)]
            ratio = min(a for a, _ in taken) / min(b for _, b in taken)
            rows[f"{name}, every = d // 100, over the plain chain, d = {d}, {seeds} seeds (at most)"] = {
                "ratio": ratio, "bar": 2.0, "met": ratio <= 2.0
            }  # fmt: skip
    report("interventions", rows)


if __name__ == "__main__":
    main()
