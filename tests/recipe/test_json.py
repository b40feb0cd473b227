"""The JSON of a recipe goes both ways as far as its parts do, and never imports a name."""

import json
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR, LambdaLR, OneCycleLR

import tiltmeter as tm
from tiltmeter.recipe.sampling import KEPT, Draws, Epochs, Sampling

ADAMW = partial(torch.optim.AdamW, lr=3e-4, betas=(0.8, 0.9), weight_decay=0.01)

REBUILT = {
    "short": tm.Recipe(lr=0.01, steps=1000, batch=16),
    "short with everything": tm.Recipe(lr=0.01, momentum=0.9, nesterov=True, weight_decay=0.1, epochs=3, batch=None),
    "numbers of numpy": tm.Recipe(lr=np.float32(0.5), steps=np.int64(7), batch=np.int32(4), clip=np.float32(2.0)),
    "SGD of torch": tm.Recipe(partial(torch.optim.SGD, lr=0.1, momentum=0.5), steps=5),
    "SGD of torch, more of it": tm.Recipe(partial(torch.optim.SGD, lr=0.1, momentum=0.5, dampening=0.1), steps=5),
    "SGD of torch, its own rate": tm.Recipe(torch.optim.SGD, steps=5),
    "its own rate, a scheduler": tm.Recipe(torch.optim.SGD, steps=5, schedule=partial(CosineAnnealingLR, T_max=5)),
    "a class": tm.Recipe(torch.optim.RMSprop, steps=5),
    "AdamW": tm.Recipe(ADAMW, steps=5),
    "a partial of a partial": tm.Recipe(partial(ADAMW, lr=0.1), steps=5),
    "a schedule of ours": tm.Recipe(schedule=tm.schedules.Cosine(0.1, 1000), steps=5),
    "steps of ours": tm.Recipe(schedule=tm.schedules.Steps((0, 10), (0.1, 0.2)), momentum=0.5, steps=5),
    "a scheduler": tm.Recipe(lr=0.1, schedule=partial(OneCycleLR, max_lr=0.1, total_steps=5), steps=5),
    "order": tm.Recipe(lr=0.1, steps=2, order=7),
    "order by places": tm.Recipe(lr=0.1, steps=2, order=[[0, 3], [2, 1]]),
    "draws": tm.Recipe(lr=0.1, steps=2, sampling=Draws()),
    "draws in proportions": tm.Recipe(lr=0.1, steps=2, sampling=Draws({("a", 1): 1.0, "b": 3.0})),
    "epochs": tm.Recipe(lr=0.1, steps=2, sampling=Epochs()),
    "weights": tm.Recipe(lr=0.1, steps=2, weights={"a": 2.0, ("b", 1): 3.0}, proportions={1: 0.5, 2: 0.5}),
    **{
        type(one).__name__: tm.Recipe(lr=0.1, steps=2, loss=one)
        for one in (tm.Square(), tm.Logistic(), tm.losses.Hinge())
    },
    "cross-entropy": tm.Recipe(lr=0.1, steps=2, loss=tm.losses.CrossEntropy(), clip=1.0),
    "in parts": tm.Recipe(lr=0.1, steps=2, accumulate=np.int64(4)),
    "autocast": tm.Recipe(lr=0.1, steps=2, autocast="bfloat16"),
    "compiled": tm.Recipe(lr=0.1, steps=2, compile=True),
    "compiled by a backend": tm.Recipe(lr=0.1, steps=2, compile="aot_eager"),
}


@pytest.mark.parametrize("recipe", REBUILT.values(), ids=REBUILT)
def test_both_ways(recipe):
    written = json.loads(json.dumps(recipe.to_json(), allow_nan=False))
    found = tm.Recipe.from_json(written)
    assert found == recipe
    assert hash(found) == hash(recipe)
    assert found.to_json() == written


def test_they_are_all_different():
    recipes = list(REBUILT.values())
    for number, one in enumerate(recipes):
        assert [place for place, other in enumerate(recipes) if one == other] == [number]


def test_what_is_rebuilt_makes_the_same_optimiser():
    recipe = tm.Recipe(partial(ADAMW, lr=0.1), steps=5, schedule=partial(CosineAnnealingLR, T_max=5))
    found = tm.Recipe.from_json(json.loads(json.dumps(recipe.to_json())))
    parameters = [torch.zeros(2, requires_grad=True)]
    one, other = (each.make_optimiser(parameters) for each in (recipe, found))
    assert type(one) is type(other) is torch.optim.AdamW
    assert one.defaults == other.defaults
    assert one.defaults["lr"] == 0.1
    assert one.defaults["betas"] == (0.8, 0.9)
    np.testing.assert_array_equal(found.learning_rates(5), recipe.learning_rates(5))


def test_the_short_form_and_torchs_own_class_are_one_recipe():
    short = tm.Recipe(lr=0.1, momentum=0.9, steps=5)
    assert short == tm.Recipe(partial(torch.optim.SGD, lr=0.1, momentum=0.9, weight_decay=0.0), steps=5)
    assert short.to_json() == tm.Recipe(partial(torch.optim.SGD, lr=0.1, momentum=0.9), steps=5).to_json()
    assert short != tm.Recipe(partial(torch.optim.SGD, lr=0.1, momentum=0.9, weight_decay=0.1), steps=5)
    assert short != tm.Recipe(partial(torch.optim.SGD, lr=0.1, momentum=0.9, dampening=0.1), steps=5)


def test_replace_is_the_what_if():
    recipe = tm.Recipe(ADAMW, steps=5, weights={"a": 2.0}, order=[[0, 1]] * 5)
    assert replace(recipe) == recipe
    other = replace(recipe, weights={"a": 3.0})
    assert other != recipe
    assert (other.weights, recipe.weights) == ({"a": 3.0}, {"a": 2.0})
    assert replace(other, weights={"a": 2.0}) == recipe
    assert recipe != 3
    with pytest.raises(ValueError, match=r"`steps` should be a positive integer. Found steps = -1."):
        replace(recipe, steps=-1)


def test_a_recipe_keeps_what_it_was_given():
    weights, places = {"a": 2.0}, np.array([[0, 1], [2, 3]])
    recipe = tm.Recipe(lr=0.1, steps=2, weights=weights, order=places)
    weights["a"], places[0, 0] = 5.0, 9
    assert recipe.weights == {"a": 2.0}
    assert recipe.order.places.tolist() == [[0, 1], [2, 3]]
    with pytest.raises(ValueError, match="read-only"):
        recipe.order.places[0, 0] = 1


class Own(Sampling):
    def batches(self, data, batch):  # noqa: ARG002
        return 1

    def stretch(self, data, batch, seed, number):  # noqa: ARG002
        return np.arange(batch)


def own_optimiser(parameters):
    return torch.optim.SGD(parameters, lr=0.1)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"optimiser": own_optimiser}, "The optimiser 'own_optimiser' cannot be rebuilt: it is not of torch.optim."),
        (
            {"lr": None, "schedule": lambda step: 0.1},
            "The schedule <lambda> was a function and cannot be rebuilt from a file.",
        ),
        (
            {"schedule": partial(LambdaLR, lr_lambda=lambda step: 1.0)},
            "was a function and cannot be rebuilt from a file.",
        ),
        ({"loss": nn.MSELoss()}, "The loss MSELoss() is the user's own and cannot be rebuilt."),
        ({"sampling": Own()}, "The sampling 'Own' is the user's own and cannot be rebuilt from a file."),
        (
            {"order": np.zeros((KEPT, 2), dtype=int)},
            "The order of this recipe is too long to be kept in a file: pass the array again.",
        ),
    ],
)
def test_what_cannot_be_rebuilt_is_described_and_says_so(given, sentence):
    recipe = tm.Recipe(**{"lr": None if "optimiser" in given else 0.1, "steps": 2, **given})
    written = json.loads(json.dumps(recipe.to_json()))
    with pytest.raises(ValueError, match=r"rebuilt|too long") as error:
        tm.Recipe.from_json(written)
    assert sentence in str(error.value)


@pytest.mark.parametrize(
    ("name", "part", "sentence"),
    [
        ("optimiser", {"class": "os.system"}, "cannot be rebuilt: it is not of torch.optim."),
        ("optimiser", {"class": "Optimizer.__init__"}, "cannot be rebuilt: it is not of torch.optim."),
        ("optimiser", {"class": "lr_scheduler"}, "cannot be rebuilt: it is not of torch.optim."),
        ("schedule", {"scheduler": "os.system"}, "The scheduler 'os.system' cannot be rebuilt: it is not of torch.optim."),
        ("schedule", {"scheduler": "Optimizer"}, "The scheduler 'Optimizer' cannot be rebuilt: it is not of torch.optim."),
        ("interventions", [{"kind": "os.system"}], "The intervention os.system is not part of tiltmeter and cannot be rebuilt from a file."),
    ],
)  # fmt: skip
def test_no_name_is_ever_imported(name, part, sentence):
    written = {**tm.Recipe(lr=0.1, steps=2).to_json(), name: part}
    with pytest.raises(ValueError, match="rebuilt") as error:
        tm.Recipe.from_json(written)
    assert sentence in str(error.value)


def test_long_orders_are_told_apart_by_a_checksum():
    long = np.zeros((KEPT, 2), dtype=int)
    other = long.copy()
    other[5, 1] = 1
    one, two = (tm.Recipe(lr=0.1, steps=2, order=places).to_json()["order"] for places in (long, other))
    assert one["shape"] == two["shape"] == [KEPT, 2]
    assert one["sha256"] != two["sha256"]


def test_a_warm_up_joined_with_a_cosine_is_one_value():
    from tiltmeter.schedules import breaks_of, schedule_from_table

    warm = tm.schedules.Then(tm.schedules.Warmup(0.4, 10), 10, tm.schedules.Cosine(0.4, 100))
    recipe = tm.Recipe(schedule=warm, steps=110)
    assert tm.Recipe.from_json(recipe.to_json()) == recipe
    assert [round(warm(t), 3) for t in (0, 5, 10, 60, 200)] == [0.0, 0.2, 0.4, 0.2, 0.0]
    assert breaks_of(warm) == (10, 110)
    table = {"schedule": "Then", "first": {"schedule": "Warmup", "peak": 0.4, "duration": 10}, "at": 10}
    table["rest"] = {"schedule": "Cosine", "initial": 0.4, "duration": 100}
    assert schedule_from_table(table, "[training] lr") == warm
    with pytest.raises(TypeError, match=r"`rest` should be a schedule, as Warmup\(0\.1, 100\)\. Found float\."):
        tm.schedules.Then(tm.schedules.Warmup(0.4, 10), 10, 0.4)
    with pytest.raises(ValueError, match=r"`at` should be a positive number\. Found at = 0\."):
        tm.schedules.Then(tm.schedules.Warmup(0.4, 10), 0, tm.schedules.Cosine(0.4, 100))
