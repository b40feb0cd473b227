"""Demo runs: something to explore: theories, a network on real images and its nowcast."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from tiltmeter.explorer.experiment import digits_experiment, network
from tiltmeter.plugins import PARTS, plugin
from tiltmeter.record import save
from tiltmeter.theory.dynamics.predict import predict
from tiltmeter.theory.problem import cases

SEEDS = 3
#: Steps of a training that is stopped early, so that its rest can be forecast.
BEGUN = 150
#: A file of `tiltmeter train` and `tiltmeter forecast`, for the forecast page.
FILE = """# tiltmeter forecast training.toml; tiltmeter train training.toml --to first
[data]
source = "digits"
share = 0.9

[model]
hidden = [64]

[training]
lr = 0.05
steps = 500
batch = 16
"""


def demo_runs(folder: Path) -> list[str]:
    """Record the runs of the demo below the folder; what is there stays. Return what was made.

    Without PyTorch no network is trained.
    """
    place = folder / "demo"
    made = []

    def keep(name: str, make: Callable[[Path], Any]) -> None:
        if not (place / name).exists():
            make(place / name)
            made.append(name)

    def solved(case: Callable[[], cases.Case], to: Path) -> None:
        save(predict(*case()), to)

    for case in (cases.centred_crossing, cases.three_phases):
        keep(f"theory-{case.__name__.replace('_', '-')}", partial(solved, case))
    evidence = plugin(PARTS, "evidence")
    if evidence is not None:
        made += evidence.demo(folder)
    keep("training.toml", lambda to: to.write_text(FILE, encoding="utf-8"))
    try:
        import torch
    except ModuleNotFoundError:
        return made
    from tiltmeter.forecast.methods import Twin
    from tiltmeter.forecast.nowcast import nowcast
    from tiltmeter.training.loop import train

    digits = digits_experiment()
    points = digits.data, digits.held_out
    begun = place / "digits-begun"
    recipe = replace(digits.recipe, steps=BEGUN)
    keep("digits-forecast", lambda to: save(digits.kernels.forecast(digits.recipe), to))
    keep(begun.name, lambda to: train(network(SEEDS), *points, recipe, to=to, seed=SEEDS))
    ahead = Twin(count=4)
    keep("digits-nowcast", lambda to: save(nowcast(begun, network(SEEDS), *points, digits.recipe, method=ahead), to))

    def trained(seed: int, to: Path) -> None:
        train(network(seed), *points, digits.recipe, to=to, seed=seed)

    for seed in range(SEEDS):
        keep(f"digits-seed-{seed}", partial(trained, seed))
    torch.manual_seed(0)
    return made
