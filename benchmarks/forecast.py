"""Tangent kernels of a 784-256-1 network: against Jacobians written out by jacrev, and the memory they take.

Times are those of the process on one thread, so that what else the machine does does not count; memory is the largest
that a process of its own ever held, beyond what it held before. Each function below gives rows of the table.
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
from torch import nn
from torch.func import functional_call, jacrev, vmap

import tiltmeter as tm
from tiltmeter.networks.mlp import mlp
from tiltmeter.tangent.kernel import kernel_memory, tangent_kernel

sys.path.insert(0, str(Path(__file__).parent))
from _measure import report

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


def row(part: float, run: float, bar: float | None) -> dict[str, float]:
    found = {"ratio": part / run, "seconds": part, "reference_seconds": run}
    return found if bar is None else {**found, "bar": bar, "met": part / run <= bar}


def main() -> None:
    torch.set_num_threads(1)
    report("forecast", {**speed(), **memory(POINTS), **memory(MANY), **whole()}, "torch")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--peak"]:
        print(json.dumps(peak(int(sys.argv[2]))))
    else:
        main()
