"""One by one: every twin trained as the user's network would be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from tiltmeter.data.grouped import GroupedData
from tiltmeter.forecast.curves import forecast_measures
from tiltmeter.forecast.gathered_looks import KEPT, GatheredLooks
from tiltmeter.measures.answers import Answers
from tiltmeter.measures.default_curves import DEFAULTS
from tiltmeter.passes.streams import put_back, streams
from tiltmeter.passes.untouched import untouched
from tiltmeter.progress import Progress
from tiltmeter.recipe.recipe import Recipe
from tiltmeter.recipe.watch import Watch
from tiltmeter.record import Origin, Trajectory, stack
from tiltmeter.training.loop import train as train_model
from tiltmeter.training.prepared import check_training, prepared
from tiltmeter.training.update import Update

#: Points to look at that are answered together.
CHUNK = 1024


def train_one_by_one(
    twins: Sequence[nn.Module],
    recipes: Sequence[Recipe],
    seeds: Sequence[int],
    train: GroupedData,
    look: GroupedData,
    watch: Watch,
    progress: bool,
    whole: bool,
) -> Trajectory:
    """The curves of all twins, with a dimension `seed` of their numbers where there are several.

    The data are those that the twins take: points, or their places. Twins that are the `whole` network give what
    `train` gives to the bit.
    """
    found: list[Trajectory] = []
    watch = replace(watch, read=None)
    with Progress(len(twins), lambda done: f"Twin {done} of {len(twins)}") as tell:
        for number, (twin, recipe, seed) in enumerate(zip(twins, recipes, seeds, strict=True)):
            if whole or recipe.interventions or watch.points:
                run = train_model(twin, train, look, recipe, watch=watch, seed=seed)
            else:
                run = train_lightly(twin, train, look, recipe, watch, seed)
            origin = replace(run.origin, seeds=(number,))
            found.append(Trajectory(dict(run), run.clock, origin, run.diverged, points=run.points))
            if progress:
                tell(number + 1)
    return stack(found) if len(found) > 1 else found[0]


def train_lightly(
    model: nn.Module, train: GroupedData, look: GroupedData, recipe: Recipe, watch: Watch, seed: int
) -> Trajectory:
    """What `train` gives for a recipe without interventions, but for the last digits, if nobody needs the points.

    Of a small network, a look by a probe takes several times as long as its answers. Here they are kept, and read
    together at the end, if they fit in memory.
    """
    measures, total = forecast_measures(watch), recipe.total_steps(len(train))
    check_training(model, train, look, recipe, watch, None)
    with untouched(model):
        keep = len(measures) > len(DEFAULTS)
        answers = Answers(model, look, recipe.loss, watch.decide, None, CHUNK, keep)
    if len(watch.when.steps(total)) * len(look) * answers.task.outputs > KEPT:
        return train_model(model, train, look, recipe, watch=watch, seed=seed)
    before = streams()
    try:
        made = prepared(model, train, recipe, watch, seed, {})
        torch.manual_seed(seed)
        update = Update(model, train, made.optimiser, replace(made.recipe, loss=answers.given), None)
        batch = made.recipe.batches(train).in_turn(train, made.recipe.batch_size(len(train)), made.seed)
        looks = GatheredLooks(lambda: _look(model, answers))
        for step in range(total):
            if watch.when(step) and not looks(step):
                break
            made.scheduling.before(step)
            update(batch(step), step)
            made.scheduling.after()
        else:
            looks(total)
    finally:
        put_back(before)
    return looks.trajectory(answers, measures, {}, Origin("forecast"))


def _look(model: nn.Module, answers: Answers) -> Tensor:
    """The scores of one run, of shape (1, points, outputs)."""
    with untouched(model):
        found = answers.own_scores(model)
    return found.reshape(1, len(found), -1)
