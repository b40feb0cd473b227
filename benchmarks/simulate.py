"""The chain against an equally compiled direct loop and a plain PyTorch loop, per step and per seed, on one thread.

The other side of each ratio is the faster of `Direct()` and the smallest compiled loop that does the same: same random
generator, no features. All comparisons are interleaved and repeated, and the best time of each side counts.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numba import njit

from tiltmeter import SGD, teacher_mixture
from tiltmeter.theory.problem.starts import Random
from tiltmeter.theory.problem.students import Erf, Linear, Network
from tiltmeter.theory.simulation.chain import Chain
from tiltmeter.theory.simulation.direct_method import Direct
from tiltmeter.theory.simulation.setting import Setting, StepSettings, setting
from tiltmeter.threads import in_blocks

sys.path.insert(0, str(Path(__file__).parent))
from _measure import report

PROBLEM = teacher_mixture(0.7, 1.5, (0.5, 1.2), 0.6, (0.5, -0.3), (0.2, -0.4))
START = SGD(lr=0.3, start=Random(1.0))
ROUNDS = 7


@njit(nogil=True)
def smallest_direct_loop(rng, w, steps, rate, share, means, teachers, label_bias, deviation):
    d = w.shape[0]
    x = np.empty(d)
    for _ in range(steps):
        group = 0 if rng.random() < share else 1
        sd, field, score = deviation[group], label_bias[group], 0.0
        for i in range(d):
            x[i] = means[group, i] + sd * rng.standard_normal()
            field += teachers[group, i] * x[i]
            score += w[i] * x[i]
        f = rate * (score - (1.0 if field > 0.0 else -1.0))
        for i in range(d):
            w[i] -= f * x[i]


@njit(nogil=True)
def spin(low, high):
    total = 0.0
    for i in range(low, high):
        total += np.sin(0.1 * i)
    return total


def advancing(
    method: Chain | Direct, chosen: Setting, steps: int, seeds: int = 1, threads: int = 1
) -> Callable[[], None]:
    """A call that makes `steps` steps of `seeds` runs."""
    run = method.begin(chosen, tuple(range(seeds)))
    pace = StepSettings(chosen.sgd, chosen.par.groups, chosen.d)
    rates, weights = pace.rates(0, 1), pace.weights(0, 1)
    return lambda: run.advance(0, steps, rates, weights, threads)


def plain_direct(chosen: Setting, steps: int) -> Callable[[], None]:
    rng, d = np.random.Generator(np.random.PCG64(0)), chosen.d
    frame = np.linalg.qr(rng.standard_normal((d, chosen.rank)))[0].T
    means, teachers, w = chosen.means @ frame, chosen.teachers @ frame, np.zeros(d)
    given = (chosen.cumulative[0], means, teachers, chosen.label_bias, chosen.deviation)
    return lambda: smallest_direct_loop(rng, w, steps, 0.3 / d, *given)


def plain_torch(d: int, steps: int) -> Callable[[], None]:
    import torch

    generator = torch.Generator().manual_seed(0)
    draw = torch.randn(4, d, generator=generator, dtype=torch.float64) / d**0.5
    means = torch.stack([draw[0], -draw[0]])
    teachers, deviation = draw[1:3], torch.tensor([0.5, 1.2], dtype=torch.float64).sqrt()
    model = torch.nn.Linear(d, 1, bias=False, dtype=torch.float64)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.3 / d)

    def loop() -> None:
        torch.set_num_threads(1)
        for _ in range(steps):
            group = int(torch.rand((), generator=generator) > 0.7)
            x = means[group] + deviation[group] * torch.randn(d, generator=generator, dtype=torch.float64)
            y = torch.sign(teachers[group] @ x)
            loss = 0.5 * (model(x) - y) ** 2
            optimiser.zero_grad()
            loss.sum().backward()
            optimiser.step()

    return loop


def fastest(works: dict[str, tuple[Callable[[], None], int]], rounds: int = ROUNDS) -> dict[str, float]:
    """Nanoseconds per step of each: the best of several rounds in which all take turns, after a first call each."""
    for work, _ in works.values():
        work()
    found = dict.fromkeys(works, np.inf)
    for _ in range(rounds):
        for name, (work, steps) in works.items():
            began = time.perf_counter()
            work()
            found[name] = min(found[name], (time.perf_counter() - began) / steps * 1e9)
    return found


def processor_seconds(work: Callable[[], None], rounds: int = 5) -> float:
    """The least processor time of all threads together, which a busy machine hardly changes."""
    found = []
    for _ in range(rounds):
        began = time.process_time()
        work()
        found.append(time.process_time() - began)
    return min(found)


def first_call(cache: str) -> float:
    """Seconds from a fresh process to the end of a first short simulation, with this folder as numba's cache."""
    code = (
        "import time; began = time.perf_counter();"
        "from tiltmeter import SGD, simulate, teacher_mixture;"
        "simulate(teacher_mixture(0.7, 1.5), SGD(lr=0.1), [0.1], d=100, curves=('Q',));"
        "print(time.perf_counter() - began)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "NUMBA_CACHE_DIR": cache},
        capture_output=True,
        text=True,
        check=True,
    )
    return float(done.stdout)


def row(slow: float, fast: float, bar: float) -> dict[str, float]:
    return {"ratio": slow / fast, "bar": bar, "met": slow / fast >= bar, "slow_ns": slow, "fast_ns": fast}


def main() -> None:
    rows: dict[str, dict[str, float]] = {}
    for d, bar in ((100, 10.0), (1000, 100.0), (10_000, 1000.0)):
        chosen = setting(PROBLEM, START, Linear(), None, d)
        steps = max(200, 2_000_000 // d)
        found = fastest(
            {
                "chain": (advancing(Chain(), chosen, 300_000), 300_000),
                "direct": (advancing(Direct(), chosen, steps), steps),
                "smallest": (plain_direct(chosen, steps), steps),
            }
        )
        rows[f"chain against the compiled direct loop, d = {d}"] = row(
            min(found["direct"], found["smallest"]), found["chain"], bar
        )

    small, large = (setting(PROBLEM, START, Linear(), None, d) for d in (100, 1_000_000))
    found = fastest(
        {
            "100": (advancing(Chain(), small, 300_000), 300_000),
            "1000000": (advancing(Chain(), large, 300_000), 300_000),
            "torch": (plain_torch(1000, 300), 300),
            "1000": (advancing(Chain(), setting(PROBLEM, START, Linear(), None, 1000), 300_000), 300_000),
        }
    )
    rows["chain against a plain PyTorch loop, d = 1000"] = row(found["torch"], found["1000"], 300.0)
    share = found["1000000"] / found["100"]
    rows["chain at d = 1,000,000 over d = 100 (at most)"] = {"ratio": share, "bar": 1.25, "met": share <= 1.25}

    student = Network(2, Erf())
    chosen = setting(PROBLEM, START, student, None, 1000)
    found = fastest(
        {
            "chain": (advancing(Chain(), chosen, 100_000), 100_000),
            "direct": (advancing(Direct(), chosen, 2000), 2000),
        }
    )
    rows["K = 2 erf chain against the compiled direct K = 2, d = 1000"] = row(found["direct"], found["chain"], 6.0)

    chosen = setting(PROBLEM, START, Linear(), None, 1000)
    found = fastest(
        {
            "one": (advancing(Chain(), chosen, 100_000, seeds=32, threads=1), 1),
            "two": (advancing(Chain(), chosen, 100_000, seeds=32, threads=2), 1),
            "alone": (lambda: in_blocks(spin, 8_000_000, 1), 1),
            "together": (lambda: in_blocks(spin, 8_000_000, 2), 1),
        },
        rounds=5,
    )
    rows["two threads against one"] = row(found["one"], found["two"], 1.5)
    # What the machine gives right now: on one that is busy with other things no program can do better.
    rows["the same for a loop that shares nothing"] = {"ratio": found["alone"] / found["together"]}
    lost = processor_seconds(advancing(Chain(), chosen, 100_000, seeds=32, threads=2)) / processor_seconds(
        advancing(Chain(), chosen, 100_000, seeds=32, threads=1)
    )
    rows["processor time of two threads over one (1: nothing is lost)"] = {"ratio": lost}

    with tempfile.TemporaryDirectory() as cache:
        cold, warm = first_call(cache), first_call(cache)
    print(f"first call in a new process: {cold:.1f} s with compilation, {warm:.1f} s from the cache on disk")
    rows["first call with compilation over first call from cache"] = {
        "ratio": cold / warm, "compiled_seconds": cold, "cached_seconds": warm
    }  # fmt: skip
    report("simulate", rows, "torch")


if __name__ == "__main__":
    main()
