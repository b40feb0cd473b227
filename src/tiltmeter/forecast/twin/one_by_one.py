"""One by one: every twin trained as the user's network would be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from torch import nn

from tiltmeter.data.grouped import GroupedData
from tiltmeter.forecast.twin.light_training import train_lightly
from tiltmeter.forecast.twin.places import Shifted
from tiltmeter.forecast.twin.stacked_rates import Rates
from tiltmeter.progress import Progress
from tiltmeter.recipe.recipe import Recipe
from tiltmeter.recipe.watch import Watch
from tiltmeter.record import Trajectory, stack
from tiltmeter.training.loop import train as train_model


def train_one_by_one(
    twins: Sequence[nn.Module],
    recipes: Sequence[Recipe],
    seeds: Sequence[int],
    train: GroupedData,
    look: GroupedData,
    watch: Watch,
    progress: bool,
    rates: Sequence[Rates | None] | None,
) -> Trajectory:
    """The curves of all twins, with a dimension `seed` of their numbers where there are several.

    The data are those that the twins take: points, or their places. `rates` are those of every twin, where they are
    known ahead; None for twins that are the whole network, which give what `train` gives to the bit.
    """
    found: list[Trajectory] = []
    watch = replace(watch, read=None)
    with Progress(len(twins), lambda done: f"Twin {done} of {len(twins)}") as tell:
        for number, (twin, recipe, seed) in enumerate(zip(twins, recipes, seeds, strict=True)):
            if rates is None or recipe.interventions or watch.points or not isinstance(twin, Shifted):
                run = train_model(twin, train, look, recipe, watch=watch, seed=seed)
            else:
                run = train_lightly(twin, train, look, recipe, watch, seed, rates[number], twin.together)
            origin = replace(run.origin, seeds=(number,))
            found.append(Trajectory(dict(run), run.clock, origin, run.diverged, points=run.points))
            if progress:
                tell(number + 1)
    return stack(found) if len(found) > 1 else found[0]
