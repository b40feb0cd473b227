"""Demo runs: something to explore: two exact theories, a forecast of a network on real images, and three trainings."""

from __future__ import annotations

from pathlib import Path

from tiltmeter.explorer import digits_forecast
from tiltmeter.problem import cases
from tiltmeter.record import save
from tiltmeter.theory.predict import predict

SEEDS = 3
STEPS, LR = 600, 0.006


def demo_runs(folder: Path) -> list[str]:
    """Record the runs of the demo below the folder; what is there stays. Return what was made.

    Without PyTorch only the theories are made.
    """
    made = []
    for case in (cases.centred_crossing, cases.three_phases):
        place = folder / "demo" / f"theory-{case.__name__.replace('_', '-')}"
        if not place.exists():
            save(predict(*case()), place)
            made.append(place.name)
    try:
        import torch
    except ModuleNotFoundError:
        return made
    from tiltmeter.training.loop import train

    examples, look = digits_forecast.data()
    recipe = digits_forecast.recipe_of(LR, STEPS, [1.0, 1.0], [0.0, 0.0])
    place = folder / "demo" / "digits-forecast"
    if not place.exists():
        save(digits_forecast.kernels().forecast(recipe), place)
        made.append(place.name)
    for seed in range(SEEDS):
        place = folder / "demo" / f"digits-seed-{seed}"
        if not place.exists():
            train(digits_forecast.model_of(seed), examples, look, recipe, to=place, seed=seed)
            made.append(place.name)
    torch.manual_seed(0)
    return made
