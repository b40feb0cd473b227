"""Demo runs: something to explore: theories, an experiment, a study, a network on real images and its nowcast."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tiltmeter.experiments.reproduce import reproduce
from tiltmeter.explorer.demo_cell import small_student
from tiltmeter.explorer.digits_experiment import digits_experiment, network
from tiltmeter.explorer.verdict_answers import PLACE
from tiltmeter.problem import cases
from tiltmeter.record import save
from tiltmeter.study.study import Study
from tiltmeter.theory.predict import predict

SEEDS = 3
#: Steps of a training that is stopped early, so that its rest can be forecast.
BEGUN = 150
#: An experiment that takes seconds and has a claim that does not hold, for the page of verdicts.
EXPERIMENT = "learning-rates"
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
    made = []
    for case in (cases.centred_crossing, cases.three_phases):
        place = folder / "demo" / f"theory-{case.__name__.replace('_', '-')}"
        if not place.exists():
            save(predict(*case()), place)
            made.append(place.name)
    if not (folder / PLACE / EXPERIMENT).exists():
        reproduce(EXPERIMENT, to=folder / PLACE)
        made.append(EXPERIMENT)
    if not (folder / "demo" / "study").exists():
        grid = {"rho": [0.6, 0.8, 0.95], "variance": [0.5, 1.0, 1.5]}
        Study(small_student, grid, seeds=5, to=folder / "demo" / "study").run(progress=False, jobs=1)
        made.append("study")
    if not (folder / "demo" / "training.toml").exists():
        (folder / "demo" / "training.toml").write_text(FILE, encoding="utf-8")
        made.append("training.toml")
    try:
        import torch
    except ModuleNotFoundError:
        return made
    from tiltmeter.forecast.nowcast import nowcast
    from tiltmeter.forecast.route import Twin
    from tiltmeter.training.loop import train

    digits = digits_experiment()
    place = folder / "demo" / "digits-forecast"
    if not place.exists():
        save(digits.kernels.forecast(digits.recipe), place)
        made.append(place.name)
    begun, ahead = (folder / "demo" / f"digits-{name}" for name in ("begun", "nowcast"))
    if not begun.exists():
        train(network(SEEDS), digits.data, digits.look, replace(digits.recipe, steps=BEGUN), to=begun, seed=SEEDS)
        save(nowcast(begun, network(SEEDS), digits.data, digits.look, digits.recipe, route=Twin(count=4)), ahead)
        made += [begun.name, ahead.name]
    for seed in range(SEEDS):
        place = folder / "demo" / f"digits-seed-{seed}"
        if not place.exists():
            train(network(seed), digits.data, digits.look, digits.recipe, to=place, seed=seed)
            made.append(place.name)
    torch.manual_seed(0)
    return made
