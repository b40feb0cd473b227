"""Forecasts: tangent kernels of a 784-256-1 network against Jacobians written out by jacrev, and the memory they take;
what each route costs over the training that it foretells.

Times are those of the process on one thread, of torch and of NumPy, so that what else the machine does does not count;
memory is the largest that a process of its own ever held, beyond what it held before. Each function below gives rows of
the table. Names of some of them on the command line measure these alone and keep the other rows as they were written.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from threadpoolctl import threadpool_limits
from torch import nn
from torch.func import functional_call, jacrev, vmap

import tiltmeter as tm
from tiltmeter.experiments.shared.route_runs import ORDER, Prepared, Sizes
from tiltmeter.experiments.shared.route_scores import pair_score, truths
from tiltmeter.experiments.shared.route_tasks import JUDGED, draw_route_task
from tiltmeter.forecast.forecasts import forecasts
from tiltmeter.networks.mlp import mlp
from tiltmeter.networks.small_cnn import small_cnn
from tiltmeter.tangent.kernel import kernel_memory, tangent_kernel

sys.path.insert(0, str(Path(__file__).parent))
from _measure import report, written

POINTS, MANY, CHUNK = 4000, 10_000, 256

Rows = dict[str, dict[str, float]]


def network() -> nn.Module:
    torch.manual_seed(0)
    return mlp(784, (256,), 1)


def points(n: int) -> torch.Tensor:
    return torch.randn(n, 784, generator=torch.Generator().manual_seed(1))


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    found = work()
    return time.process_time() - start, found


def written_out(model: nn.Module, x: torch.Tensor) -> np.ndarray:
    """The textbook way: all Jacobians by jacrev, vectorised over chunks of points, then one product."""
    parameters = {name: p.detach() for name, p in model.named_parameters()}

    def score(parameters: dict[str, torch.Tensor], point: torch.Tensor) -> torch.Tensor:
        return functional_call(model, parameters, (point[None],))[0, 0]

    rows = torch.empty(len(x), sum(p.numel() for p in parameters.values()))
    for start in range(0, len(x), CHUNK):
        found = vmap(jacrev(score), (None, 0))(parameters, x[start : start + CHUNK])
        torch.cat([found[name].flatten(1) for name in parameters], 1, out=rows[start : start + CHUNK])
    return (rows @ rows.T).numpy()


def speed() -> Rows:
    """The same kernel both ways."""
    model, x = network(), points(POINTS)
    # What either loads at its first call is not what is compared.
    tangent_kernel(model, x[:8]), written_out(model, x[:8])
    fast, kernel = min((seconds(lambda: tangent_kernel(model, x)) for _ in range(3)), key=lambda pair: pair[0])
    slow, expected = seconds(lambda: written_out(model, x))
    apart = float(np.abs(kernel - expected).max() / np.abs(expected).max())
    assert apart < 1e-5, apart
    ratio = slow / fast
    row = {"ratio": ratio, "bar": 10.0, "met": ratio >= 10.0, "seconds": fast, "jacrev_seconds": slow, "apart": apart}
    return {f"kernel of {POINTS} points, jacrev over layer by layer": row}


def largest_so_far() -> float:
    """Bytes that this program ever held. Not ru_maxrss, in which a child starts with what its parent holds."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return 1024.0 * float(status.split("VmHWM:")[1].split()[0])


def peak(n: int) -> dict[str, float]:
    """Bytes and seconds of one kernel, to be called in a process of its own."""
    torch.set_num_threads(1)
    model, x = network(), points(n)
    tangent_kernel(model, x[:8])
    before = largest_so_far()
    taken, kernel = seconds(lambda: tangent_kernel(model, x))
    assert kernel.shape == (n, n)
    return {"bytes": largest_so_far() - before, "seconds": taken}


def memory(n: int) -> Rows:
    """The peak against two kernels in double precision and a chunk, measured in a process of its own."""
    done = subprocess.run([sys.executable, __file__, "--peak", str(n)], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    ratio = found["bytes"] / kernel_memory(n, n)
    kernels = found["bytes"] / (8.0 * n**2)
    row = {"ratio": ratio, "bar": 1.0, "met": ratio <= 1.0, "kernels": kernels, "seconds": found["seconds"]}
    return {f"memory of {n} points over two kernels and a chunk": row}


def whole() -> Rows:
    """A forecast from 2,500 points for 2 x 1,000 points, its repetition with other weights, and one from 10,000 points.

    All over the time of one run of `tm.train`: 6,000 steps of batch 16 with its default looks.
    """
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(14_000, 40)) * np.arange(1, 41) ** -0.5
    x = hidden @ rng.normal(size=(40, 784)) / 6 + 0.3 * rng.normal(size=(14_000, 784))
    group = np.where(np.arange(14_000) % 2 == 0, "a", "b")
    y = np.sign(np.where(group == "a", hidden[:, 0] + hidden[:, 3], hidden[:, 1] + hidden[:, 5]))
    data = tm.GroupedData(x.astype(np.float32), y, group)
    train, look = data.take(np.arange(12_000)), data.take(np.arange(12_000, 14_000))
    recipe = tm.Recipe(lr=1e-3, steps=6000, batch=16, loss=tm.Square())
    tm.forecast(network(), train, look, recipe, route=tm.routes.Kernel(sample=100))  # what is loaded on first use
    first, kernels = seconds(lambda: tm.tangent(network(), train, look))
    then, _ = seconds(lambda: kernels.forecast(recipe))
    again, _ = seconds(lambda: kernels.forecast(replace(recipe, weights={"b": 2.0})))
    sgd = partial(torch.optim.SGD, lr=1e-3)
    run, _ = seconds(lambda: tm.train(network(), train, look, tm.Recipe(sgd, steps=6000, batch=16, loss=tm.Square())))
    large, _ = seconds(lambda: tm.forecast(network(), train, look, recipe, route=tm.routes.Kernel(sample=MANY)))
    return {
        "forecast, sample 2,500, over a run of 6,000 steps": row(first + then, run, 0.3),
        "the same with other weights, over that run": row(again, run, 0.1),
        "forecast, sample 10,000, over that run": row(large, run, None),
    }


def steps_and_once(
    works: dict[str, Callable[[int], Any]], short: int = 40, long: int = 240, rounds: int = 4
) -> dict[str, tuple[float, float]]:
    """For each work, seconds of one step, a long training less a short one, and of what is done once.

    The shortest of several rounds each; works take turns, so that a busy machine slows all of them alike.
    """
    taken: dict[tuple[str, int], list[float]] = {}
    for work in works.values():
        work(2)  # what is loaded on first use
    for _ in range(rounds):
        for name, work in works.items():
            for steps in (short, long):
                taken.setdefault((name, steps), []).append(seconds(partial(work, steps))[0])
    found = {}
    for name in works:
        brief, whole = (min(taken[name, steps]) for steps in (short, long))
        step = (whole - brief) / (long - short)
        found[name] = step, max(0.0, brief - short * step)
    return found


#: Hidden layers, and the bars of coordinates and of one twin.
WIDTHS: dict[str, tuple[tuple[int, ...], float | None, float | None]] = {
    "256": ((256,), 0.4, None),
    "1024": ((1024,), None, 0.25),
    "1024-1024": ((1024, 1024), 0.1, 0.12),
}


def route_costs() -> Rows:
    """A step of a forecast over a step of the training with AdamW that it foretells, batches of 64.

    Two twins share their calls alone: they cost 1.6 times one if calls take two thirds of the time of the rest.
    """
    found: Rows = {}
    train, look = pictures_like(784)
    routes = {"sampled": tm.routes.Coordinates(), "one": tm.routes.Twin(count=1), "two": tm.routes.Twin(count=2)}
    for name, (hidden, sampled_bar, twin_bar) in WIDTHS.items():
        works: dict[str, Callable[[int], Any]] = {"real": partial(trained, hidden, train, look)}
        works |= {kind: partial(told, hidden, train, look, route) for kind, route in routes.items()}
        taken = steps_and_once(works, rounds=8)
        real, (sampled, set_up), (one, cut), (two, _) = taken["real"][0], *(taken[kind] for kind in routes)
        found[f"coordinates, a step, over training {name}"] = row(sampled, real, sampled_bar)
        found[f"one twin, a step, over training {name}"] = row(one, real, twin_bar)
        found[f"two twins joined over one, {name}"] = row(two, one, 1.6)
        found[f"coordinates, set-up, in steps of training {name}"] = row(set_up, real, None)
        found[f"one twin, set-up, in steps of training {name}"] = row(cut, real, None)
    return found


def stacked_recipes() -> Rows:
    """Eight recipes forecast together by two twins each, over the same eight one after another.

    AdamW and batches of 64; constant weights, and laws that react. Whole forecasts are of 300 steps with 40 looks.
    """
    found: Rows = {}
    train, look = pictures_like(784)
    kinds: dict[str, list[dict[str, Any]]] = {
        "weightings": [{"weights": {"b": 2.0**power}} for power in range(-3, 5)],
        "laws": [{"interventions": (tm.interventions.GroupDRO(0.01 * rate),)} for rate in range(1, 9)],
    }
    for width in (256, 1024):
        for kind, changes in kinds.items():
            given = wide((width,)), train, look
            brief = {how: partial(work, given, changes, ONCE) for how, work in HOW.items()}
            steps = {how: step for how, (step, _) in steps_and_once(brief, 20, 120).items()}
            watch = tm.Watch(points=False)
            taken: dict[str, list[float]] = {how: [] for how in HOW}
            for _ in range(3):
                for how, work in HOW.items():
                    taken[how].append(seconds(partial(work, given, changes, watch, 300))[0])
            bar = 0.5 if kind == "weightings" else None
            label = f"eight {kind} stacked over one by one, {width}"
            found[label] = row(min(taken["stacked"]), min(taken["alone"]), bar)
            found[f"{label}, a step"] = row(steps["stacked"], steps["alone"], None)
    return found


def stacked_initialisations() -> Rows:
    """Whole forecasts of eight initial weights together, by two twins each, over the same one after another."""
    found: Rows = {}
    train, look = pictures_like(784)
    watch, recipe, twins = tm.Watch(points=False), adam(300), tm.routes.Twin()
    for width in (256, 1024):
        make = partial(mlp, 784, (width,))
        ways: dict[str, Callable[[], Any]] = {
            "stacked": lambda make=make: tm.forecast(  # type: ignore[misc]
                make, train, look, recipe, watch=watch, route=twins, seeds=8, progress=False
            ),
            "alone": lambda make=make: [  # type: ignore[misc]
                tm.forecast(make, train, look, recipe, watch=watch, route=twins, seeds=[seed], progress=False)
                for seed in range(8)
            ],
        }
        taken: dict[str, list[float]] = {how: [] for how in ways}
        for _ in range(3):
            for how, work in ways.items():
                taken[how].append(seconds(work)[0])
        found[f"eight initial weights stacked over one by one, {width}"] = row(
            min(taken["stacked"]), min(taken["alone"]), None
        )
    return found


Given = tuple[nn.Module, tm.GroupedData, tm.GroupedData]


def stacked(given: Given, changes: list[dict[str, Any]], watch: tm.Watch, steps: int) -> Any:
    recipes = {number: replace(adam(steps), **change) for number, change in enumerate(changes)}
    return forecasts(*given, recipes, watch=watch, route=tm.routes.Twin())


def one_after_another(given: Given, changes: list[dict[str, Any]], watch: tm.Watch, steps: int) -> Any:
    recipes = [replace(adam(steps), **change) for change in changes]
    return [tm.forecast(*given, one, watch=watch, route=tm.routes.Twin(), progress=False) for one in recipes]


HOW = {"stacked": stacked, "alone": one_after_another}

ONCE = tm.Watch(when=tm.at([0]), points=False)


def wide(hidden: tuple[int, ...]) -> nn.Module:
    torch.manual_seed(0)
    return mlp(784, hidden)


def adam(steps: int) -> tm.Recipe:
    return tm.Recipe(partial(torch.optim.AdamW, lr=1e-3), steps=steps, batch=64, order=0)


def trained(hidden: tuple[int, ...], train: tm.GroupedData, look: tm.GroupedData, steps: int) -> Any:
    return tm.train(wide(hidden), train, look, adam(steps), watch=ONCE)


def told(hidden: tuple[int, ...], train: tm.GroupedData, look: tm.GroupedData, route: Any, steps: int) -> Any:
    return tm.forecast(wide(hidden), train, look, adam(steps), route=route, watch=ONCE, progress=False)


def convolution_cost() -> Rows:
    """One twin of a quarter of a convolutional network with batch normalisation."""
    train, look = pictures_like(784, 400)

    def make() -> nn.Module:
        torch.manual_seed(0)
        return nn.Sequential(nn.Unflatten(1, (1, 28, 28)), small_cnn(1, 1, 32, normalise=True))

    def ahead(steps: int) -> Any:
        route = tm.routes.Twin(share=1 / 4, count=1)
        return tm.forecast(make(), train, look, adam(steps), route=route, watch=ONCE, progress=False)

    def real(steps: int) -> Any:
        return tm.train(make(), train, look, adam(steps), watch=ONCE)

    taken = steps_and_once({"real": real, "twin": ahead}, 5, 25)
    return {"one twin of 1/4, a step, over training a CNN": row(taken["twin"][0], taken["real"][0], 0.25)}


def kernel_cost() -> Rows:
    """The kernel of 900 points for a tabular network of three hidden layers, over its training of 2,500 steps."""
    train, look = pictures_like(60, 3000)

    def make() -> nn.Module:
        torch.manual_seed(0)
        return mlp(60, (96, 96, 96))

    recipe = tm.Recipe(lr=0.01, steps=2500, batch=64, loss=tm.Logistic())
    route = tm.routes.Kernel(sample=900)
    tm.forecast(make(), train, look, replace(recipe, steps=10), route=tm.routes.Kernel(sample=60), progress=False)
    ahead, real = [], []
    for _ in range(3):
        ahead.append(seconds(lambda: tm.forecast(make(), train, look, recipe, route=route, progress=False))[0])
        real.append(seconds(lambda: tm.train(make(), train, look, recipe))[0])
    return {"kernel of 900 points, 96-96-96, over 2,500 steps": row(min(ahead), min(real), 0.3)}


def pictures_like(inputs: int, points: int = 4000) -> tuple[tm.GroupedData, tm.GroupedData]:
    """Two groups with tasks of their own, in so many inputs."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(points, inputs)).astype(np.float32)
    group = np.where(np.arange(points) % 4 == 0, "b", "a")
    y = np.where(np.where(group == "a", x[:, 0], x[:, 1] + x[:, 2]) > 0, 1.0, -1.0)
    return tm.GroupedData(x, y, group).split(0.25)


def row(part: float, run: float, bar: float | None) -> dict[str, float]:
    found = {"ratio": part / run, "seconds": part, "reference_seconds": run}
    return found if bar is None else {**found, "bar": bar, "met": part / run <= bar}


#: The accuracy tasks are trained for so few steps that all of them, with their seeds and routes, fit in an hour; long
#: trainings are as that of the kernel's row, shorter for networks of more hidden layers, whose steps take longer.
LENGTHS = {"short": Sizes(400, 150, look=300, per_decade=12), "long": Sizes(2500, 1000, look=300, per_decade=12)}


def task_costs(length: str) -> Rows:
    """Forecasts by the route that is chosen by default, over the trainings of the tasks of `forecast-routes`.

    Needs the public data in TILTMETER_DATA; every task with its first seed.
    """
    told, real, ahead_of_time = list[float](), list[float](), list[float]()
    for number in JUDGED:
        made = Prepared(draw_route_task(number), LENGTHS[length])
        inputs = made.points[0].x.shape[1]
        if not real:  # once before it counts
            made.forecast(made.task.model(inputs), ORDER, None)
        torch.manual_seed(0)
        spent, run = seconds(partial(made.train, made.task.model(inputs), ORDER))
        real.append(spent)
        torch.manual_seed(0)
        spent, ahead = seconds(partial(made.forecast, made.task.model(inputs), ORDER, None))
        told.append(spent)
        ahead_of_time.append(ahead.origin.settings["route"]["of_training"])
        gaps = ", ".join(f"{pair_score(ahead, run, truth).correlation:.3f}" for truth in truths(run))
        said = f"{made.task.name}: {told[-1]:.2f} s over {real[-1]:.2f} s, correlation of gaps {gaps}"
        print(said, file=sys.stderr, flush=True)
    shares = np.divide(told, real)
    middle = int(np.argsort(shares)[len(shares) // 2])
    off = np.exp(np.abs(np.log(np.divide(ahead_of_time, shares))))
    most = float(off.max())
    return {
        f"default route over {len(real)} accuracy tasks, {length}, sum": row(sum(told), sum(real), 0.3),
        f"default route over {len(real)} accuracy tasks, {length}, median": row(told[middle], real[middle], 0.5),
        f"cost told in advance, factor off, {length}, median": {"ratio": float(np.median(off))},
        f"cost told in advance, factor off, {length}, largest": {"ratio": most, "bar": 2.0, "met": most <= 2.0},
    }


PARTS: dict[str, Callable[[], Rows]] = {
    "speed": speed,
    "memory": lambda: {**memory(POINTS), **memory(MANY)},
    "whole": whole,
    "routes": route_costs,
    "stacked": stacked_recipes,
    "initialisations": stacked_initialisations,
    "convolution": convolution_cost,
    "kernel": kernel_cost,
}
#: Only where their names are given: they need data.
WITH_DATA: dict[str, Callable[[], Rows]] = {
    "tasks": partial(task_costs, "short"),
    "long-tasks": partial(task_costs, "long"),
}


def main(chosen: list[str]) -> None:
    torch.set_num_threads(1)
    threadpool_limits(1)
    rows = written("forecast") if chosen else {}
    for name in chosen or PARTS:
        rows |= (PARTS | WITH_DATA)[name]()
    report("forecast", rows, "torch")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--peak"]:
        print(json.dumps(peak(int(sys.argv[2]))))
    else:
        main(sys.argv[1:])
