"""Demo runs: something to explore: two exact theories, a forecast of a network on real images, and three trainings."""

from __future__ import annotations

from pathlib import Path

from tiltmeter.explorer.digits_experiment import digits_experiment, network
from tiltmeter.problem import cases
from tiltmeter.record import save
from tiltmeter.theory.predict import predict

SEEDS = 3


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

    digits = digits_experiment()
    place = folder / "demo" / "digits-forecast"
    if not place.exists():
        save(digits.kernels.forecast(digits.recipe), place)
        made.append(place.name)
    for seed in range(SEEDS):
        place = folder / "demo" / f"digits-seed-{seed}"
        if not place.exists():
            train(network(seed), digits.data, digits.look, digits.recipe, to=place, seed=seed)
            made.append(place.name)
    torch.manual_seed(0)
    return made
