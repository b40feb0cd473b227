"""advise: rank interventions for a network and its data by their forecasts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from torch import nn

from tiltmeter.advice.advice import PLAIN, Advice
from tiltmeter.advice.menu import menu
from tiltmeter.analysis.scorecard.scorecard import scorecard
from tiltmeter.data.grouped import GroupedData
from tiltmeter.forecast.choice import choose
from tiltmeter.forecast.forecasts import forecasts
from tiltmeter.forecast.route import Coordinates, Kernel, Twin
from tiltmeter.interventions.checked import checked_interventions
from tiltmeter.interventions.intervention import Intervention
from tiltmeter.progress import Progress
from tiltmeter.recipe.recipe import Recipe, checked_recipe
from tiltmeter.recipe.watch import Watch


def advise(
    model: nn.Module,
    train: GroupedData,
    look: GroupedData,
    recipe: Recipe,
    laws: Mapping[str, Intervention | Iterable[Intervention]] | None = None,
    *,
    curve: str = "loss",
    watch: Watch = Watch(),
    route: Kernel | Coordinates | Twin | None = None,
    progress: bool = True,
) -> Advice:
    """Forecast a training plainly and with each intervention, and rank them by the worst group's loss over training.

    >>> import numpy as np, torch
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(400, 5)).astype("float32")
    >>> data = GroupedData(x, np.sign(x[:, 0] + x[:, 1] * (np.arange(400) < 80)), ["rare"] * 80 + ["common"] * 320)
    >>> network = torch.nn.Sequential(torch.nn.Linear(5, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
    >>> from tiltmeter.interventions import Balanced, GroupDRO
    >>> laws = {"balanced": Balanced(), "group DRO": GroupDRO(0.1)}
    >>> advice = advise(network, data, data, Recipe(lr=0.05, steps=60, batch=32), laws, progress=False)
    >>> sorted(row.name for row in advice.ranked)
    ['balanced', 'group DRO', 'plain']

    `laws` are interventions by name (default: `advice.menu.menu`, one setting of each kind that needs no held-out
    groups). All forecasts share twins and batches, so that their differences are paired; twins of laws that only weigh
    losses train in one stack. Without `route` there are two twins of the share that suits the network. A network that
    cannot be cut is followed by `Kernel` under SGD, else by `Coordinates`; so is a linear head on a frozen backbone,
    exactly, with all of its weights. What a route cannot forecast is listed with the reason, not ranked: the kernel has
    no features that change, and no forecast has held-out groups.

    A forecast ranks what these settings do to this network. It does not tune them, and its errors are those over twins:
    whether the twins behave like the network is what `judged_by` finds out.
    """
    checked_recipe(recipe)
    steps = recipe.total_steps(len(train))
    if laws is not None and not isinstance(laws, Mapping):
        raise TypeError(
            f'`laws` should give interventions by name, as {{"balanced": Balanced()}}. Found {type(laws).__name__}.'
        )
    given = menu(steps) if laws is None else dict(laws)
    if PLAIN in given:
        raise ValueError(f"{PLAIN!r} is the training without interventions: give the law another name.")
    if not given:
        raise ValueError("`laws` should hold at least one intervention. Found none.")
    asked = {
        name: checked_interventions((law,) if isinstance(law, Intervention) else tuple(law))
        for name, law in given.items()
    }
    route = route or _route(model, train, look, recipe, watch)
    recipes, unranked = {PLAIN: recipe}, dict[str, str]()
    for name, law in asked.items():
        try:
            recipes[name] = replace(recipe, interventions=(*recipe.interventions, *law))
        except (ValueError, TypeError) as refused:  # a second law of groups, for example
            unranked[name] = str(refused)
    total = len(recipes)
    with Progress(total, lambda done: f"{done} of {total} forecasts") as tell:
        said = tell if progress else lambda done: None  # noqa: ARG005
        found = forecasts(model, train, look, recipes, watch=watch, route=route, tell=said)
    if PLAIN in found.refused:
        raise found.refused[PLAIN]
    runs = found.runs
    unranked |= {name: str(error) for name, error in found.refused.items()}
    if len(runs) < 2:
        reasons = " ".join(unranked.values())
        raise ValueError(f"None of the interventions can be forecast by {type(route).__name__}. {reasons}")
    tried = {name: law for name, law in asked.items() if name in runs}
    return Advice(scorecard(runs, curve), runs, tried, unranked, _described(route))


def _route(
    model: nn.Module, train: GroupedData, look: GroupedData, recipe: Recipe, watch: Watch
) -> Kernel | Coordinates | Twin:
    """The route of a forecast with known batches, which many laws can change: two twins if it is twins."""
    known = recipe if recipe.order is not None else replace(recipe, order=0)
    found = choose(model, train, look, known, read=watch.read).route
    if isinstance(found, Twin):
        return replace(found, count=2)
    return replace(found, replicas=2) if isinstance(found, Coordinates) and recipe.order is None else found


def _described(route: Kernel | Coordinates | Twin) -> str:
    if isinstance(route, Kernel):
        return "linearised network"
    if isinstance(route, Coordinates):
        return f"linearised network, up to {route.count} of its weights"
    return f"{route.count} twin{'s' if route.count > 1 else ''} with {route.share:.3g} of the width"
