"""best_schedule: the pulls of groups over a training that a forecast recommends, from the kernels alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from tiltmeter.forecast.kernel.kernel_control import KernelControl
from tiltmeter.forecast.kernel.tangent import Tangent
from tiltmeter.interventions.group.pull_schedule import PullSchedule
from tiltmeter.population.criteria import Criterion, WorstGroupArea
from tiltmeter.recipe.lowered import group_law
from tiltmeter.recipe.recipe import Recipe, checked_recipe
from tiltmeter.record import log_spaced
from tiltmeter.schedule import Steps
from tiltmeter.theory.optimal_schedule import OptimalSchedule
from tiltmeter.theory.pull_search import PullSearch

#: Rounds of the search for every width of the rounded criterion.
ROUNDS = 25


def best_schedule(
    tangent: Tangent, recipe: Recipe, criterion: Any = WorstGroupArea(), *, pieces: int = 4, guard: bool = True
) -> OptimalSchedule:
    """The pulls under which the forecast makes a criterion smallest, constant within `pieces` even in log steps.

    >>> from torch import nn
    >>> from tiltmeter.data.grouped import GroupedData
    >>> from tiltmeter.forecast.kernel.network_kernels import tangent
    >>> from tiltmeter.losses import Square
    >>> rng = np.random.default_rng(0)
    >>> x, rare = rng.normal(size=(600, 4)), np.arange(600) % 10 == 0
    >>> data = GroupedData(x, np.sign(np.where(rare, x[:, 1], x[:, 0])), np.where(rare, "rare", "common"))
    >>> kernels = tangent(nn.Linear(4, 1), *data.split(0.5))
    >>> found = best_schedule(kernels, Recipe(lr=0.05, steps=300, loss=Square()), pieces=2)
    >>> found.after < found.before
    True

    `found.law` goes into the recipe: `replace(recipe, interventions=(found.law,))`. One piece gives the best fixed
    pulls (`best_weights` takes any criterion). Gradients are exact: the forecast is followed backwards. With `guard`, a
    criterion that could reward levelling down may not make the worst group worse off than plain training.

    The criterion is that of the held-out points and of a forecast in the leading features of the sample: it is only as
    good as the forecast, and with few held-out points the best value is partly luck.
    """
    if not isinstance(tangent, Tangent):
        raise TypeError(f"`tangent` should be the result of `tm.tangent`. Found {type(tangent).__name__}.")
    if not isinstance(criterion, Criterion):
        kind = f"the class {criterion.__name__}: call it" if isinstance(criterion, type) else type(criterion).__name__
        raise TypeError(f"`criterion` should be one, as WorstGroupArea(). Found {kind}.")
    if isinstance(pieces, bool) or pieces != int(pieces) or pieces < 1:
        raise ValueError(f"`pieces` should be a whole number, at least 1. Found pieces = {pieces!r}.")
    law = group_law(checked_recipe(recipe))
    if law is not None:
        raise ValueError(
            f"`best_schedule` searches what groups count: leave out {type(law).__name__}, or use `forecast`."
        )
    for name in ("weights", "proportions", "weight_decay"):
        if getattr(recipe, name):
            raise ValueError(f"`best_schedule` has no solution with {name}: leave it out.")
    if tangent.look.groups != tangent.sample.groups or len(tangent.sample.groups) < 2:
        raise ValueError("`best_schedule` needs at least two groups, the same in training and held-out data.")
    question = tangent.question(recipe)
    steps = question.sgd.steps
    looks = np.asarray(sorted({0, *log_spaced(20).steps(steps), steps}))
    inner = np.geomspace(1.0, steps, pieces + 1)[1:-1].round().astype(int)
    starts = np.unique(np.concatenate([[0], inner]))
    control = KernelControl.of(tangent, question, looks, starts)
    search = PullSearch(control, criterion, looks.astype(float), guard and criterion.levels, ROUNDS)
    P = search.best(control.pieces)
    groups = tangent.sample.groups
    schedules = {g: Steps(tuple(starts.astype(float)), tuple(P[:, i])) for i, g in enumerate(groups)}
    plain, better = search.plain, control.losses(P)[0]
    return OptimalSchedule(
        PullSchedule(schedules),
        criterion,
        search.exact(criterion, plain),
        search.exact(criterion, better),
        {g: (float(plain[-1, i]), float(better[-1, i])) for i, g in enumerate(groups)},
        (search.exact(WorstGroupArea(), plain), search.exact(WorstGroupArea(), better)),
    )
