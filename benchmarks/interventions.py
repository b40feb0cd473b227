"""Interventions of groups, in processor time: a grid in one call, a steered chain, a step of a network, a forecast.

Everything runs on one thread: threads that wait for each other would count as work.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

import tiltmeter as tm
from tiltmeter.theory.problem.students import Linear
from tiltmeter.theory.simulation.chain import Chain
from tiltmeter.theory.simulation.setting import StepSettings, setting

sys.path.insert(0, str(Path(__file__).parent))
from _measure import report, written

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
    chosen = setting(problem, sgd, Linear(), None, d)
    run = Chain().begin(chosen, tuple(range(seeds)))
    pace = StepSettings(chosen.sgd, chosen.par.groups, d)
    rates, weights = pace.rates(0, 1), pace.weights(0, 1)
    return lambda: run.advance(0, steps, rates, weights, 1)


def network_step(*laws: tm.interventions.Intervention) -> Callable[[], None]:
    """A call that makes ten steps of a 784-256-1 network on batches of 64 points of four groups."""
    import torch

    from tiltmeter.training.network_interventions import network_interventions
    from tiltmeter.training.update import Update

    torch.set_num_threads(1)
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    group = rng.choice(list("abcd"), 4000, p=[0.4, 0.3, 0.2, 0.1])
    data = tm.GroupedData(rng.normal(size=(4000, 784)).astype("float32"), rng.integers(0, 2, 4000), group)
    model = torch.nn.Sequential(torch.nn.Linear(784, 256), torch.nn.ReLU(), torch.nn.Linear(256, 1))
    recipe = tm.Recipe(lr=0.01, steps=10, batch=64, loss=tm.Logistic(), interventions=laws)
    kinds = network_interventions(recipe, "train")
    steering = tm.Steering(kinds.steering, data, model=model) if laws else None
    update = Update(model, data, recipe.make_optimiser(model.parameters()), recipe, None, kinds, steering)
    batches = [rng.integers(0, 4000, 64) for _ in range(10)]

    def work() -> None:
        for step, places in enumerate(batches):
            update(places, step)

    return work


def network_rows() -> dict[str, dict[str, float]]:
    """Steps with interventions over plain ones, taken in turns so that a busy machine slows all of them alike."""
    laws = tm.interventions
    works = {
        "plain": (network_step(), 1.0),
        "group DRO, every = 1 (at most)": (network_step(laws.GroupDRO(0.01)), 1.10),
        "group DRO, every = 10 (at most)": (network_step(laws.GroupDRO(0.01, every=10)), 1.03),
        "UPGrad, four groups (at most)": (network_step(laws.UPGrad()), 5.5),
    }
    taken: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(60):
        for name, (work, _) in works.items():
            taken[name].append(spent(work, 1))
    quick = {name: float(np.mean(np.sort(found)[5:20])) for name, found in taken.items()}
    return {
        f"step of a network under {name}": {
            "ratio": quick[name] / quick["plain"], "bar": bar, "met": quick[name] <= bar * quick["plain"]
        }
        for name, (_, bar) in works.items() if name != "plain"
    }  # fmt: skip


def forecast_rows() -> dict[str, dict[str, float]]:
    """The forecast of an intervention, kernels included, over full-batch training of the digits network of width
    1024."""
    import torch

    train, held_out = tm.data.digits(labels="large")

    def network() -> torch.nn.Module:
        torch.manual_seed(0)
        return torch.nn.Sequential(
            torch.nn.Flatten(), torch.nn.Linear(64, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 1)
        )

    rows = {}
    for name, law in (("group DRO", tm.interventions.GroupDRO(0.02)), ("UPGrad", tm.interventions.UPGrad())):
        recipe = tm.Recipe(lr=0.02, steps=600, batch=None, loss=tm.Square(), interventions=(law,))
        times: list[tuple[float, float]] = []
        for _ in range(3):
            ahead = spent(lambda recipe=recipe: tm.forecast(network(), train, held_out, recipe), 1)  # type: ignore[misc]
            times.append((ahead, spent(lambda recipe=recipe: tm.train(network(), train, held_out, recipe), 1)))  # type: ignore[misc]
        ahead, trained = (min(one) for one in zip(*times, strict=True))
        rows[f"forecast of {name} over its training, 600 steps of width 1024 (at most)"] = {
            "ratio": ahead / trained, "bar": 0.1, "met": ahead <= 0.1 * trained, "seconds": trained
        }  # fmt: skip
    return rows


def theory_rows() -> dict[str, dict[str, float]]:
    """A grid of problems under an intervention in one call, over solving them one by one."""
    rng = np.random.default_rng(0)
    shares, variances = rng.uniform(0.5, 0.9, PROBLEMS), rng.uniform(1.0, 1.5, PROBLEMS)
    solve(0.7, 1.2)
    whole = spent(lambda: solve(("problem", shares), ("problem", variances)), 3)
    alone = spent(lambda: [solve(a, b) for a, b in zip(shares[:ALONE], variances[:ALONE], strict=True)], 2)
    ratio = alone * PROBLEMS / ALONE / whole
    row = {"ratio": ratio, "bar": 20.0, "met": ratio >= 20.0, "seconds": whole}
    return {"predict under an intervention, 1,000 problems in one call": row}


def chain_rows() -> dict[str, dict[str, float]]:
    """Steered chains over plain ones, taken in turns."""
    rows: dict[str, dict[str, float]] = {}
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
    return rows


PARTS = {"network": network_rows, "forecast": forecast_rows, "theory": theory_rows, "chain": chain_rows}


def main(chosen: list[str]) -> None:
    """All parts, or those named on the command line; the other rows then stay as they were written."""
    threadpool_limits(1)
    rows = written("interventions") if chosen else {}
    for name in chosen or PARTS:
        rows |= PARTS[name]()
    report("interventions", rows)


if __name__ == "__main__":
    main(sys.argv[1:])
