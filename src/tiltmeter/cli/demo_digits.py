"""The part of the demo with a real network: a forecast before training, then the training with the probe."""

from __future__ import annotations

import warnings
from itertools import pairwise

from tiltmeter import plot
from tiltmeter.analysis.agreement import agreement
from tiltmeter.analysis.phases import Phase, phases
from tiltmeter.data.public.digits import digits
from tiltmeter.forecast.horizon import noted_horizon
from tiltmeter.losses import Square
from tiltmeter.names import NOBODY
from tiltmeter.recipe import Recipe
from tiltmeter.record import Trajectory
from tiltmeter.report.page import Section

HEADING = "Real images, a real network: forecast, then trained"
LR, STEPS, BATCH, WIDTH, SHARE, CONTRAST = 0.006, 2000, 16, 256, 0.9, (0.2, 2.5)
INTRODUCTION = (
    "scikit-learn's digits, small (0 to 4) against large (5 to 9), in two groups: many upright and faint, few turned "
    f"and bright. The forecast uses the data and the network of {WIDTH} hidden units before its first step; it "
    "does no training. The training that follows starts from the same weights."
)
WITHOUT_TORCH = "The forecast and the training of a network need PyTorch: pip install 'tiltmeter[torch]'."


def digits_section() -> tuple[Section, list[str]]:
    """The section of the page, and a summary in a few lines."""
    try:
        import torch
    except ModuleNotFoundError:
        return Section(HEADING, [WITHOUT_TORCH]), [WITHOUT_TORCH]
    from tiltmeter.forecast.forecast import forecast
    from tiltmeter.networks.mlp import mlp
    from tiltmeter.recipe.sampling import Draws
    from tiltmeter.training.loop import train

    data, look = digits(share=SHARE, contrast=CONTRAST, labels="large")
    recipe = Recipe(lr=LR, steps=STEPS, batch=BATCH, sampling=Draws(), loss=Square())
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # small matrices are slower on several threads, and sums would depend on their number
    try:
        torch.manual_seed(0)
        model = mlp(64, (WIDTH,), 1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # the text below says how far to trust it
            ahead = forecast(model, data, look, recipe)
        run = train(model, data, look, recipe)
    finally:
        torch.set_num_threads(threads)
    lines = [f"forecast: {in_words(ahead)}", f"trained:  {in_words(run)}", str(noted_horizon(ahead))]
    chart = plot.curves(run, ahead, labels=("trained", "forecast"), phases=phases(run))
    exact = [f"Forecast: {phases(ahead)}", f"Trained: {phases(run)}", str(agreement(ahead, run, "loss"))]
    return Section(HEADING, [INTRODUCTION, *exact], charts=[chart]), lines


def in_words(run: Trajectory) -> str:
    """Who leads first, and about when another group takes the lead; rounded to the digits that are meaningful.

    >>> from tiltmeter import predict
    >>> from tiltmeter.problem import cases
    >>> in_words(predict(*cases.centred_crossing()))
    '- leads first, then + from step 5.6 on.'

    Where nobody is shown to lead in between, the lead changes at some step of that time.
    """
    every = phases(run)
    found = [phase for phase in every if phase.leader != NOBODY]
    if not found:
        return "nobody is shown to lead."
    later = "".join(
        f", then {one.leader} {_taken(before, one)}" for before, one in pairwise(found) if one.leader != before.leader
    )
    if found[0] is every[0]:
        return f"{found[0].leader} leads first{later}." if later else f"{found[0].leader} leads."
    return f"nobody is shown to lead at first, then {found[0].leader} leads {_from(found[0].start)}{later}."


def _taken(before: Phase, one: Phase) -> str:
    first, last = _rounded(before.stop), _rounded(one.start)
    return _from(one.start) if first == last else f"(the lead changes between steps {first} and {last})"


def _from(step: float) -> str:
    return f"from step {_rounded(step)} on"


def _rounded(step: float) -> str:
    return f"{float(f'{step:.2g}'):g}"
