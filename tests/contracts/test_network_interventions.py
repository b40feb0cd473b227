"""Every intervention in every function that takes a recipe: it is applied, or refused by name; never ignored."""

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
from tiltmeter.interventions import INTERVENTIONS
from tiltmeter.interventions.stored import intervention_named

lab = pytest.importorskip("tiltmeter_lab")

I = tm.interventions
#: Interventions that have no defaults; all others are tried as they come.
GIVEN = {
    "PullSchedule": I.PullSchedule({"+": tm.schedules.Steps((0.0, 3.0), (0.2, 0.5)), "-": 0.7}),
    "DualAscent": I.DualAscent({"+": float("inf"), "-": 0.3}, 0.5),
    "GroupDRO": I.GroupDRO(0.5, every=5),
    "NormalisedGradient": I.NormalisedGradient(0.3, every=5),
    "AttributionPrior": lab.interventions.AttributionPrior((1,)),
    "ProductOfExperts": lab.interventions.ProductOfExperts(steps=5),
    "Fish": lab.interventions.Fish(0.2),
}
EXAMPLES = {
    name: GIVEN[name] if name in GIVEN else intervention_named(name)()
    for name in (*INTERVENTIONS, *lab.interventions.INTERVENTIONS)
}
MORE = {"ProductOfExperts with a mask": lab.interventions.ProductOfExperts(mask=(1,))}
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


TRAIN, HELD_OUT = points().split(0.4)
HELD_OUT = points(160)


def make():
    return nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 1))


def model():
    torch.manual_seed(3)
    return make()


def held(recipe):
    needed = any(law.needs == "validation groups" for law in recipe.interventions)
    return {"validation": HELD_OUT} if needed else {}


def trained(recipe, **more):
    return tm.train(model(), TRAIN, HELD_OUT, recipe, **held(recipe), **more)


@cache
def kernels():
    return tm.tangent(model(), TRAIN, HELD_OUT)


def losses(found):
    return found["loss"].values


WHOLE = tm.methods.Twin(share=1.0, count=1)


def advised(recipe):
    """The forecast that others are compared with."""
    return tm.advise(model(), TRAIN, HELD_OUT, recipe, {"CVaR": I.CVaR(0.9)}, method=WHOLE, progress=False).runs[
        "plain"
    ]


def plain_sgd():
    return torch.optim.SGD(model().parameters(), lr=0.2)


def applied_by_twins(law):
    other_network = isinstance(law, I.TermIntervention) and law.sees & {"inputs", "features"}
    return not isinstance(law, I.ModelIntervention) and not other_network


#: How each public function is called with a recipe, by the name of its route, and a number of it that an intervention
#: changes.
CALLS = {
    "train": ("train", lambda recipe: losses(trained(recipe))),
    "ensemble": ("ensemble", lambda recipe: losses(tm.ensemble(make, TRAIN, HELD_OUT, recipe, seeds=2))),
    # The training itself, as a twin of full width: whatever twins apply, a forecast does.
    "forecast": ("twin", lambda recipe: losses(tm.forecast(model(), TRAIN, HELD_OUT, recipe, method=WHOLE))),
    "advise": ("twin", lambda recipe: losses(advised(recipe))),
    "nowcast": ("none", lambda recipe: losses(tm.nowcast(5, model(), TRAIN, HELD_OUT, recipe, optimiser=plain_sgd()))),
    "preview": ("none", lambda recipe: losses(tm.preview(TRAIN, HELD_OUT, recipe=recipe).run)),
    "forecast by the kernel": (
        "forecast",
        lambda recipe: losses(tm.forecast(model(), TRAIN, HELD_OUT, recipe, method=tm.methods.Kernel())),
    ),
    "Tangent.forecast": ("forecast", lambda recipe: losses(kernels().forecast(recipe))),
    "Tangent.question": ("forecast", lambda recipe: kernels().question(recipe)),
    "Tangent.why": ("forecast", lambda recipe: kernels().why(recipe, step=5)),
    "Tangent.learned_share": ("forecast", lambda recipe: kernels().learned_share(recipe)["learned_share"].values),
    "best_weights": ("forecast", lambda recipe: str(tm.fairness.best_weights(kernels(), recipe))),
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
def test_a_rehearsal_applies_it_or_says_what_it_needs(law):
    recipe = replace(RECIPE, interventions=(law,), order=0)
    if law.needs == "validation groups":
        with pytest.raises(ValueError, match=f"{type(law).__name__} needs validation groups"):
            tm.forecast(model(), TRAIN, HELD_OUT, recipe, method=tm.methods.Rehearsal(1))
        return
    ahead = tm.forecast(model(), TRAIN, HELD_OUT, recipe, method=tm.methods.Rehearsal(1))
    np.testing.assert_array_equal(losses(ahead), losses(tm.train(model(), TRAIN, HELD_OUT, recipe)))


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("law", {**EXAMPLES, **DRAWN}.values(), ids={**EXAMPLES, **DRAWN})
def test_a_law_is_applied_or_refused_by_name(name, law):
    route, call = CALLS[name]
    recipe = replace(RECIPE, interventions=(law,))
    if route == "forecast" and isinstance(law, I.GroupIntervention) and law.sees_gram:
        with pytest.raises(ValueError, match=rf"applies {type(law).__name__} to full batches|leave out"):
            call(recipe)
        recipe = replace(recipe, batch=None)
    constant = isinstance(law, I.GroupIntervention) and law.constant
    refused = {
        "best_weights": True,
        "Tangent.why": not constant,
        "Tangent.learned_share": not constant,
    }
    fixed = isinstance(law, I.DataIntervention) and name.startswith("Tangent")  # a Tangent has its data
    applied = applied_by_twins(law) if route == "twin" else route in law.routes
    if applied and not refused.get(name, False) and not fixed:
        assert not np.array_equal(call(recipe), plain(name))
        return
    with pytest.raises(ValueError, match=type(law).__name__) as error:
        call(recipe)
    assert any(f"`{other}`" in str(error.value) for other in law.routes)


@pytest.mark.parametrize("law", EXAMPLES.values(), ids=EXAMPLES)
class TestEveryLaw:
    def test_says_what_it_needs_costs_and_cannot(self, law):
        assert law.needs in ("training groups", "validation groups", "no groups")
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

        page = Path(__file__).parents[2] / "docs" / "interventions.md"
        assert type(law).__name__ in page.read_text(encoding="utf-8")


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

    checkpoint = tm.record.at([7])
    whole, found = fragile(None), fragile(None)
    one = tm.train(whole, TRAIN, HELD_OUT, recipe, **held(recipe))
    passes = Kill.calls
    with pytest.raises(Stop):
        tm.train(
            fragile(passes - 1), TRAIN, HELD_OUT, recipe, to=tmp_path / "run", checkpoint=checkpoint, **held(recipe)
        )
    Kill.last = None
    two = tm.train(
        found, TRAIN, HELD_OUT, recipe, to=tmp_path / "run", checkpoint=checkpoint, resume=True, **held(recipe)
    )
    for a, b in zip(whole.parameters(), found.parameters(), strict=True):
        assert torch.equal(a, b)
    np.testing.assert_array_equal(one["loss"].values, two["loss"].values)
    assert "pull" in one or not isinstance(law, I.GroupIntervention)
