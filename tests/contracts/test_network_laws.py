"""Every law in every function that takes a recipe: it is applied, or refused by name; never ignored."""

import inspect
import json
import typing
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
from torch import nn

import tiltmeter as tm
from tiltmeter.forecast.kernel.tangent import Tangent
from tiltmeter.interventions import LAWS
from tiltmeter.interventions.stored import law_named

I = tm.interventions
#: Laws that have no defaults; all others are tried as they come.
GIVEN = {
    "PullSchedule": I.PullSchedule({"+": tm.schedules.Steps((0.0, 3.0), (0.2, 0.5)), "-": 0.7}),
    "DualAscent": I.DualAscent({"+": float("inf"), "-": 0.3}, 0.5),
    "GroupDRO": I.GroupDRO(0.5, every=5),
    "NormalisedGradient": I.NormalisedGradient(0.3, every=5),
    "AttributionPrior": I.AttributionPrior((1,)),
    "ProductOfExperts": I.ProductOfExperts(steps=5),
    "Fish": I.Fish(0.2),
}
EXAMPLES = {name: GIVEN[name] if name in GIVEN else law_named(name)() for name in LAWS}
MORE = {"ProductOfExperts with a mask": I.ProductOfExperts(mask=(1,))}
DRAWN = {**MORE, "GroupDRO by draws": I.GroupDRO(0.5, by="draws", every=5), "Balanced by draws": I.Balanced(by="draws")}
STEPS = 12


def points(count=240, groups=("+", "-")):
    rng = np.random.default_rng(0)
    rare = rng.random(count) < 0.3
    y = np.where(rng.random(count) < 0.5, 1, 0)
    x = rng.normal(size=(count, 5)).astype("float32")
    x[:, 0] += 2 * y - 1
    x[:, 1] += np.where(rare, -1, 1) * (2 * y - 1)
    return tm.GroupedData(x, y, np.where(rare, groups[1], groups[0]))


TRAIN, LOOK = points().split(0.4)
HELD_OUT = points(160)


def make():
    return nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 1))


def model():
    torch.manual_seed(3)
    return make()


def held(recipe):
    needed = any(law.needs == "held-out groups" for law in recipe.interventions)
    return {"held_out": HELD_OUT} if needed else {}


def trained(recipe, **more):
    return tm.train(model(), TRAIN, LOOK, recipe, **held(recipe), **more)


@cache
def kernels():
    return tm.tangent(model(), TRAIN, LOOK)


def losses(found):
    return found["loss"].values


WHOLE = tm.routes.Twin(share=1.0, count=1)


def advised(recipe):
    """The forecast that others are compared with."""
    return tm.advise(model(), TRAIN, LOOK, recipe, {"CVaR": I.CVaR(0.9)}, route=WHOLE, progress=False).runs["plain"]


def plain_sgd():
    return torch.optim.SGD(model().parameters(), lr=0.2)


def applied_by_twins(law):
    other_network = isinstance(law, I.TermLaw) and law.sees & {"inputs", "features"}
    return not isinstance(law, I.ModelLaw) and not other_network


def applied_by_coordinates(law):
    by_weights = isinstance(law, I.GroupLaw) and not law.sees_gram and (law.by == "weights" or law.constant)
    return by_weights or (isinstance(law, I.PointLaw) and not isinstance(law, I.TermLaw))


#: How each public function is called with a recipe, by the name of its route, and a number of it that a law changes.
CALLS = {
    "train": ("train", lambda recipe: losses(trained(recipe))),
    "ensemble": ("ensemble", lambda recipe: losses(tm.ensemble(make, TRAIN, LOOK, recipe, seeds=2))),
    # The training itself, as a twin of full width: whatever twins apply, a forecast does.
    "forecast": ("twin", lambda recipe: losses(tm.forecast(model(), TRAIN, LOOK, recipe, route=WHOLE))),
    "advise": ("twin", lambda recipe: losses(advised(recipe))),
    "nowcast": ("none", lambda recipe: losses(tm.nowcast(5, model(), TRAIN, LOOK, recipe, optimiser=plain_sgd()))),
    "forecast by the kernel": (
        "forecast",
        lambda recipe: losses(tm.forecast(model(), TRAIN, LOOK, recipe, route=tm.routes.Kernel(horizon=False))),
    ),
    "forecast by coordinates": (
        "coordinates",
        lambda recipe: losses(tm.forecast(model(), TRAIN, LOOK, recipe, route=tm.routes.Coordinates(replicas=1))),
    ),
    "Tangent.forecast": ("forecast", lambda recipe: losses(kernels().forecast(recipe))),
    "Tangent.question": ("forecast", lambda recipe: kernels().question(recipe)),
    "Tangent.why": ("forecast", lambda recipe: kernels().why(recipe, step=5)),
    "Tangent.learned_share": ("forecast", lambda recipe: kernels().learned_share(recipe)["learned_share"].values),
    "best_weights": ("forecast", lambda recipe: str(tm.best_weights(kernels(), recipe))),
    "best_schedule": ("forecast", lambda recipe: str(tm.best_schedule(kernels(), recipe, pieces=1))),
}
RECIPE = tm.Recipe(lr=0.2, steps=STEPS, batch=16, loss=tm.Logistic())


@cache
def plain(name):
    return CALLS[name][1](RECIPE)


def takes_a_recipe(value):
    try:
        hints = typing.get_type_hints(value)
    except (NameError, TypeError):
        hints = {}
    return any(
        "recipe" in name.lower() or tm.Recipe in (hints.get(name), *typing.get_args(hints.get(name)))
        for name in inspect.signature(value).parameters
    )


def public_functions():
    rooms = [value for name in tm.__all__ if inspect.ismodule(value := getattr(tm, name))]
    for room in (tm, *rooms):
        for name in getattr(room, "__all__", dir(room)):
            value = getattr(room, name)
            if inspect.isfunction(value) and not name.startswith("_"):
                yield name, value
    for name, value in vars(Tangent).items():
        if inspect.isfunction(value) and not name.startswith("_"):
            yield f"Tangent.{name}", value


def test_every_public_function_with_a_recipe_is_called_here():
    assert {name for name, value in public_functions() if takes_a_recipe(value)} <= {*CALLS, "chosen"}


@pytest.mark.parametrize("law", EXAMPLES.values(), ids=EXAMPLES)
def test_the_route_that_is_chosen_applies_the_law(law):
    try:
        route = tm.routes.chosen(model(), TRAIN, LOOK, replace(RECIPE, interventions=(law,))).route
    except ValueError as error:
        assert type(law).__name__ in str(error)  # noqa: PT017
        return
    by_kernel = "forecast" in law.routes
    applies = {"Twin": applied_by_twins(law), "Coordinates": applied_by_coordinates(law), "Kernel": by_kernel}
    assert applies[type(route).__name__]


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("law", {**EXAMPLES, **DRAWN}.values(), ids={**EXAMPLES, **DRAWN})
def test_a_law_is_applied_or_refused_by_name(name, law):
    route, call = CALLS[name]
    recipe = replace(RECIPE, interventions=(law,))
    if route == "forecast" and isinstance(law, I.GroupLaw) and law.sees_gram:
        with pytest.raises(ValueError, match=rf"applies {type(law).__name__} to full batches|leave out"):
            call(recipe)
        recipe = replace(recipe, batch=None)
    constant = isinstance(law, I.GroupLaw) and law.constant
    refused = {
        "best_weights": True,
        "best_schedule": True,
        "Tangent.why": not constant,
        "Tangent.learned_share": not constant,
    }
    fixed = isinstance(law, I.DataLaw) and name.startswith("Tangent")  # a Tangent has its data
    replicas = {"twin": applied_by_twins, "coordinates": applied_by_coordinates}
    applied = replicas[route](law) if route in replicas else route in law.routes
    if applied and not refused.get(name, False) and not fixed:
        assert not np.array_equal(call(recipe), plain(name))
        return
    with pytest.raises(ValueError, match=type(law).__name__) as error:
        call(recipe)
    assert any(f"`{other}`" in str(error.value) for other in law.routes)


@pytest.mark.parametrize("law", EXAMPLES.values(), ids=EXAMPLES)
class TestEveryLaw:
    def test_says_what_it_needs_costs_and_cannot(self, law):
        assert law.needs in ("training groups", "held-out groups", "no groups")
        assert law.cannot
        assert law.cost(groups=4) >= 1.0
        assert "train" in law.routes

    def test_recipes_with_it_go_through_json_and_toml(self, law):
        from tiltmeter.recipe.table import recipe_from_table

        recipe = replace(RECIPE, interventions=(law,))
        written = json.loads(json.dumps(recipe.to_json()))
        assert tm.Recipe.from_json(written) == recipe != RECIPE
        table = {"lr": 0.2, "steps": STEPS, "interventions": [law.to_json()]}
        assert recipe_from_table(table, ("+", "-")).interventions == (law,)

    def test_missing_needs_raise_before_training(self, law):
        before = model()
        alone = points(groups=("+", "+"))
        recipe = replace(RECIPE, interventions=(law,))
        if law.needs == "no groups":
            return
        with pytest.raises(ValueError, match=rf"{type(law).__name__} needs {law.needs}"):
            tm.train(before, alone, alone, recipe)
        assert all(torch.equal(one, two) for one, two in zip(before.parameters(), model().parameters(), strict=True))

    def test_stands_in_the_tables(self, law):
        from pathlib import Path

        docs = Path(__file__).parents[2] / "docs"
        for page in ("interventions.md", "api.md"):
            assert type(law).__name__ in (docs / page).read_text(encoding="utf-8")


@pytest.mark.parametrize("law", {**EXAMPLES, **DRAWN}.values(), ids={**EXAMPLES, **DRAWN})
def test_a_run_that_is_taken_up_ends_where_the_whole_one_does(law, tmp_path):
    recipe = replace(RECIPE, interventions=(law,), momentum=0.5)

    class Stop(Exception):
        pass

    class Kill(nn.Tanh):
        calls = 0

        def forward(self, x):
            if self.training:
                Kill.calls += 1
            if Kill.calls == Kill.last:
                raise Stop
            return super().forward(x)

    def fragile(last):
        Kill.calls, Kill.last = 0, last
        found = model()
        found[1] = Kill()
        return found

    checkpoint = tm.at([7])
    whole, found = fragile(None), fragile(None)
    one = tm.train(whole, TRAIN, LOOK, recipe, **held(recipe))
    passes = Kill.calls
    with pytest.raises(Stop):
        tm.train(fragile(passes - 1), TRAIN, LOOK, recipe, to=tmp_path / "run", checkpoint=checkpoint, **held(recipe))
    Kill.last = None
    two = tm.train(found, TRAIN, LOOK, recipe, to=tmp_path / "run", checkpoint=checkpoint, resume=True, **held(recipe))
    for a, b in zip(whole.parameters(), found.parameters(), strict=True):
        assert torch.equal(a, b)
    np.testing.assert_array_equal(one["loss"].values, two["loss"].values)
    assert "pull" in one or not isinstance(law, I.GroupLaw)
