"""The part of the demo about cures: a shortcut in the data, four cures forecast, and the best one trained."""

from __future__ import annotations

from dataclasses import replace

from tiltmeter import plot
from tiltmeter.experiments.shared.cure_tasks import CureTask
from tiltmeter.interventions import JTT, Balanced, GroupDRO, VREx
from tiltmeter.recipe import Watch
from tiltmeter.record import log_spaced
from tiltmeter.report.page import Section

HEADING = "What would change it: a shortcut, cures forecast, the best one trained"
TASK, POINTS, LOOK, STEPS = CureTask("digits", seed=0), 1000, 700, 300
LAWS = {
    "balanced weights": Balanced(),
    "group DRO": GroupDRO(0.01),
    "V-REx": VREx(),
    "JTT": JTT(times=20, scout=STEPS // 10),
}
INTRODUCTION = (
    "The same digits with four extra pixels that agree with the label in 95 % of the training points and say nothing "
    "in the points looked at. Two groups: points that agree with this shortcut and points that contradict it. A narrow "
    "twin of the network forecasts four cures; the best one is then trained at full width beside the plain network."
)
WITHOUT_TORCH = "Cures of a network need PyTorch: pip install 'tiltmeter[torch]'."


def cure_section() -> tuple[Section, list[str]]:
    """The section of the page, and a summary in two lines."""
    try:
        import torch
    except ModuleNotFoundError:
        return Section(HEADING, [WITHOUT_TORCH]), []
    from tiltmeter.advice.advise import advise
    from tiltmeter.forecast.route import Twin
    from tiltmeter.training.loop import train

    data, look = TASK.data(POINTS, LOOK)
    recipe, watch, inputs = TASK.recipe(STEPS), Watch(when=log_spaced(8)), data.x.shape[1]
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # small matrices are slower on several threads, and sums would depend on their number
    try:
        model = TASK.model(inputs, seed=0)
        advice = advise(model, data, look, recipe, LAWS, watch=watch, route=Twin(count=1), progress=False)
        best = next(row.name for row in advice.ranked if row.name in LAWS)
        recipes = {"plain": recipe, best: replace(recipe, interventions=(LAWS[best],))}
        runs = {name: train(TASK.model(inputs, seed=0), data, look, one, watch=watch) for name, one in recipes.items()}
    finally:
        torch.set_num_threads(threads)
    judged = advice.judged_by(runs)
    ahead, real = (card[best].worst_area_change.value for card in (advice.card, judged.card))
    plain = judged.card["plain"].worst_area.value
    lines = [
        f"cure:     {best} is forecast to change the worst group's loss over training by {ahead:+.2f}; "
        f"trained, {real:+.2f} (plain {plain:.2f})."
    ]
    text = [INTRODUCTION, *str(advice).split("\n"), *str(judged.card).split("\n")]
    return Section(HEADING, text, charts=[plot.loss_plane(runs), plot.who_paid(judged.card)]), lines
