"""Speed against another checkout: `python benchmarks/old_new.py OLD`, OLD being its root.

The same fixed work in both, by turns, in processes of its own: CPU seconds of the process, after one run that is not
counted. For each kind of work it prints the median ratio new / old of `ROUNDS` rounds and its range. Only names that
both checkouts have are used; work that the other does not know is left out.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROUNDS = 5
#: Short work is repeated for so many seconds.
LONG_ENOUGH = 0.3


def work() -> dict[str, Callable[[], Any]]:
    """What is timed, by name."""
    import numpy as np
    import torch

    import tiltmeter as tm

    torch.set_num_threads(1)
    times = np.geomspace(0.05, 40.0, 200)
    problem, sgd = tm.teacher_mixture(rho=0.75, variance=(0.5, 1.5), overlap=0.7), tm.SGD(lr=0.2)
    grid = tm.teacher_mixture(rho=("rho", np.linspace(0.1, 0.9, 40)), overlap=0.5)
    train, held_out = tm.data.digits(share=0.85, contrast=(0.5, 1.5), labels="large")
    recipe = tm.Recipe(lr=0.05, steps=400, batch=16, order=0, loss=tm.Logistic())

    def network() -> torch.nn.Module:
        torch.manual_seed(0)
        return torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))

    run = tm.train(network(), train, held_out, recipe)

    def saved() -> None:
        with tempfile.TemporaryDirectory() as folder:
            tm.save(run, Path(folder) / "run")
            tm.load(Path(folder) / "run")

    def reported() -> None:
        with tempfile.TemporaryDirectory() as folder:
            tm.report([run], Path(folder) / "run.html")

    steered = {"balanced": tm.interventions.Balanced(), "DRO": tm.interventions.GroupDRO(0.1)}
    return {
        "predict": lambda: tm.predict(problem, sgd, times),
        "predict, grid of 40": lambda: tm.predict(grid, sgd, times),
        "predict, fixed set": lambda: tm.predict(problem, tm.Flow(lr=1.0), times, data=tm.Fixed(samples=2.0)),
        "equilibrium": lambda: tm.equilibrium(problem, tm.Logistic(), 2.0, 0.3),
        "simulate": lambda: tm.simulate(problem, sgd, times[::8], d=1000, seeds=16),
        "train": lambda: tm.train(network(), train, held_out, recipe),
        "ensemble of 16": lambda: tm.ensemble(network, train, held_out, recipe, seeds=16),
        "save and load": saved,
        "report": reported,
        "advise, 2 interventions": lambda: tm.advise(network(), train, held_out, recipe, steered),
    }


def timed() -> dict[str, float]:
    """CPU seconds of every kind of work that this checkout knows."""
    seconds = {}
    for name, call in work().items():
        try:
            call()
        except (TypeError, AttributeError):
            continue
        begin, count = time.process_time(), 0
        while not count or time.process_time() - begin < LONG_ENOUGH:
            call()
            count += 1
        seconds[name] = (time.process_time() - begin) / count
    return seconds


def child(root: Path) -> dict[str, float]:
    """The same in a process of its own, with the library of this checkout."""
    environment = {**os.environ, "PYTHONPATH": str(root / "src"), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(Path(__file__).resolve()), "--child"]
    output = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    return dict(json.loads(output.splitlines()[-1]))


def main(old: Path) -> None:
    new = Path(__file__).resolve().parents[1]
    ratios: dict[str, list[float]] = {}
    for turn in range(ROUNDS):
        first, second = (child(root) for root in ((old, new) if turn % 2 else (new, old)))
        before, after = (first, second) if turn % 2 else (second, first)
        for name in before.keys() & after.keys():
            ratios.setdefault(name, []).append(after[name] / before[name])
        print(f"Round {turn + 1} of {ROUNDS}", file=sys.stderr, flush=True)
    for name, each in sorted(ratios.items(), key=lambda item: sorted(item[1])[ROUNDS // 2]):
        print(f"{name:<26} {sorted(each)[len(each) // 2]:5.2f}  ({min(each):.2f} to {max(each):.2f})")


if __name__ == "__main__":
    if sys.argv[1:] == ["--child"]:
        print(json.dumps(timed()))
    else:
        main(Path(sys.argv[1]).resolve())
