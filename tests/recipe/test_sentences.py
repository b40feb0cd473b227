"""Every bad input of a recipe, a watch or a [training] table gets one sentence, where it is made."""

from functools import partial

import numpy as np
import pytest
import torch
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR, OneCycleLR, ReduceLROnPlateau

import tiltmeter as tm
from tiltmeter.recipe.recipe import checked_recipe
from tiltmeter.recipe.sampling import Draws, Epochs
from tiltmeter.recipe.table import recipe_from_table
from tiltmeter.recipe.watch import checked_watch

SHOWN = "`optimiser` should make a torch optimiser, as partial(torch.optim.AdamW, lr=3e-4)."
ORDER = "`order` should be a seed from 0, or an array of places."
PLACES = "`order` should be a seed, or an array of integers with one row of places for every step."
ADAM = partial(torch.optim.Adam, lr=0.1)


def said(work, kind):
    with pytest.raises(kind) as error:
        work()
    return str(error.value).strip("'\"") if kind is KeyError else str(error.value)


@pytest.mark.parametrize(
    ("given", "kind", "sentence"),
    [
        ({"lr": None}, ValueError, "A recipe needs a learning rate, as Recipe(lr=0.01, ...), or an optimiser, as Recipe(partial(torch.optim.AdamW, lr=3e-4), ...)."),
        ({"lr": 0.0}, ValueError, "`lr` should be a positive number. Found lr = 0.0."),
        ({"lr": np.inf}, ValueError, "`lr` should be a positive number. Found lr = inf."),
        ({"lr": np.nan}, ValueError, "`lr` should be a positive number. Found lr = nan."),
        ({"lr": True}, ValueError, "`lr` should be a positive number. Found lr = True."),
        ({"lr": "0.1"}, ValueError, "`lr` should be a positive number. Found lr = '0.1'."),
        ({"lr": abs}, ValueError, "`lr` should be a positive number: give a function of the step as schedule=. Found lr = <built-in function abs>."),
        ({"momentum": 1.0}, ValueError, "`momentum` should lie between 0 and 1, 1 excluded. Found momentum = 1.0."),
        ({"momentum": -0.1}, ValueError, "`momentum` should lie between 0 and 1, 1 excluded. Found momentum = -0.1."),
        ({"nesterov": True}, ValueError, "`nesterov` needs a momentum and is True or False. Found nesterov = True."),
        ({"nesterov": 1, "momentum": 0.5}, ValueError, "`nesterov` needs a momentum and is True or False. Found nesterov = 1."),
        ({"weight_decay": -1.0}, ValueError, "`weight_decay` should not be negative. Found weight_decay = -1.0."),
        ({"schedule": 3}, TypeError, "`schedule` should be a function of the step, as tm.schedules.Cosine(0.1, 1000), or make a torch scheduler. Found int."),
        ({"schedule": tm.schedules.Cosine}, TypeError, "`schedule` should be a schedule, as tm.schedules.Cosine(0.1, 1000). Found the class Cosine: call it."),
        ({"schedule": tm.schedules.Cosine(0.1, 10)}, ValueError, "`schedule` gives the learning rate of every step: leave out `lr`. Found lr = 0.1."),
        ({"lr": None, "schedule": partial(CosineAnnealingLR, T_max=5)}, ValueError, "A torch scheduler changes a learning rate: give `lr` too."),
        ({"optimiser": ADAM, "lr": 0.1}, ValueError, "`lr` belongs to the short form for SGD: set it in the optimiser, which has lr = 0.1."),
        ({"optimiser": torch.optim.AdamW, "lr": 0.001}, ValueError, "`lr` belongs to the short form for SGD: set it in the optimiser, as partial(torch.optim.AdamW, lr=0.001)."),
        ({"optimiser": ADAM, "lr": None, "momentum": 0.1}, ValueError, "`momentum` belongs to the short form for SGD: set it in the optimiser."),
        ({"steps": None}, ValueError, "Say how long to train with either steps= or epochs=."),
        ({"epochs": 1}, ValueError, "Say how long to train with either steps= or epochs=."),
        ({"steps": 0}, ValueError, "`steps` should be a positive integer. Found steps = 0."),
        ({"steps": True}, ValueError, "`steps` should be a positive integer. Found steps = True."),
        ({"steps": None, "epochs": 1.5}, ValueError, "`epochs` should be a positive integer. Found epochs = 1.5."),
        ({"batch": 0}, ValueError, "`batch` should be a positive integer. Found batch = 0."),
        ({"sampling": "online"}, TypeError, "`sampling` should be Epochs() or Draws(). Found str."),
        ({"sampling": Epochs(), "proportions": {"a": 1}}, ValueError, "`proportions` is short for `sampling=Draws(proportions)`: give one of them."),
        ({"steps": None, "epochs": 1, "sampling": Draws()}, ValueError, "`epochs` needs finite data; with proportions every batch is drawn anew: give steps=."),
        ({"steps": None, "epochs": 1, "proportions": {"a": 1}}, ValueError, "`epochs` needs finite data; with proportions every batch is drawn anew: give steps=."),
        ({"weights": [1.0]}, TypeError, "`weights` should map groups to numbers. Found list."),
        ({"proportions": [1.0]}, TypeError, "`proportions` should map groups to shares. Found list."),
        ({"loss": "mse"}, TypeError, "`loss` should be a loss, as tm.Logistic(). Found 'mse'."),
        ({"loss": nn.MSELoss}, TypeError, "`loss` should be a loss, as tm.Logistic(). Found the class MSELoss: call it."),
        ({"clip": 0.0}, ValueError, "`clip` should be a positive norm of gradients, or None. Found clip = 0.0."),
        ({"clip": "1"}, ValueError, "`clip` should be a positive norm of gradients, or None. Found clip = '1'."),
        ({"accumulate": 0}, ValueError, "`accumulate` should be a positive integer. Found accumulate = 0."),
        ({"accumulate": 2, "interventions": (tm.interventions.GroupDRO(),)}, ValueError, "`accumulate` computes a batch in parts, but interventions see it whole. Found GroupDRO."),
        ({"accumulate": 2, "loss": nn.MSELoss(reduction="sum")}, ValueError, "`accumulate` needs a loss that is a mean. Found reduction = 'sum'."),
        ({"autocast": True}, ValueError, '`autocast` should be "bfloat16" or None. Found autocast = True.'),
        ({"autocast": "float16"}, ValueError, "`autocast` should be \"bfloat16\" or None. Found autocast = 'float16': it needs a scaler of gradients, so train in a loop of your own."),
        ({"compile": 3}, TypeError, "`compile` should be True, False or the name of a backend. Found 3."),
        ({"interventions": "DRO"}, TypeError, "`interventions` should be a tuple of interventions. Found str."),
        ({"order": -1}, ValueError, f"{ORDER} Found order = -1."),
        ({"order": True}, TypeError, f"{ORDER} Found order = True."),
        ({"order": 0.5}, TypeError, f"{ORDER} Found order = 0.5."),
        ({"order": "random"}, TypeError, f"{ORDER} Found order = 'random'."),
        ({"order": [0, 1]}, ValueError, f"{PLACES} Found an array of shape (2,) and type int64."),
        ({"order": [[0, 1], [2]]}, ValueError, f"{PLACES} Found an array of shape (0,) and type float64."),
        ({"order": [[0.0, 1.0]] * 5}, ValueError, f"{PLACES} Found an array of shape (5, 2) and type float64."),
        ({"order": [[0, -2]] * 5}, ValueError, "`order` should hold places from 0. Found -2."),
        ({"order": [[0, 1]] * 4}, ValueError, "`order` should have a row for each of the 5 steps. Found 4."),
        ({"order": [[0, 1]] * 5, "batch": 16}, ValueError, "`batch` should be left out, or be the 2 places in a row of `order`. Found batch = 16."),
        ({"order": [[0, 1]] * 5, "proportions": {"a": 1}}, ValueError, "An array as `order` says which points come: leave out `proportions` and `sampling`."),
        ({"order": [[0, 1]] * 5, "sampling": Draws()}, ValueError, "An array as `order` says which points come: leave out `proportions` and `sampling`."),
        ({"order": [[0, 1]] * 5, "steps": None, "epochs": 1}, ValueError, "An array as `order` has its own length: give steps= instead of epochs=."),
    ],
)  # fmt: skip
def test_a_recipe(given, kind, sentence):
    assert said(lambda: tm.Recipe(**{"lr": 0.1, "steps": 5, **given}), kind) == sentence


@pytest.mark.parametrize(
    ("given", "ending"),
    [
        ("adam", "Found the text 'adam'."),
        (0.1, "Found float."),
        (tm.theory.optimisers.Adam(lr=0.1), "Found Adam of tiltmeter, which `simulate` takes."),
        (tm.SGD(lr=0.1), "Found SGD of tiltmeter, which `simulate` takes."),
        (lambda parameters: 3, "Found that it makes int."),
        (lambda parameters: None, "Found that it makes nothing."),
        (tm.theory.optimisers.Adam, "Found that it "),
        (nn.Linear(1, 1), "Found that it fails: "),
        (partial(torch.optim.Adam, rate=0.1), "Found that it fails: "),
        (partial(torch.optim.Adam, lr=-1.0), "Found that it fails: Invalid learning rate: -1.0"),
    ],
)
def test_every_wrong_kind_of_optimiser_is_shown_a_right_one(data, given, ending):
    text = said(lambda: tm.train(nn.Linear(6, 1), *data, tm.Recipe(given, steps=5)), (TypeError, ValueError))
    assert text.startswith(f"{SHOWN} {ending}")
    assert "\n" not in text


def test_an_optimiser_with_parameters_is_shown_how_to_make_one():
    held = torch.optim.RMSprop(nn.Linear(2, 1).parameters())
    assert said(lambda: tm.Recipe(held, steps=5), TypeError) == (
        "`optimiser` should make one from the parameters, as partial(torch.optim.RMSprop, lr=...). Found a RMSprop that "
        "already holds parameters."
    )


@pytest.mark.parametrize("given", [tm.theory.optimisers.Adam(lr=0.1), ADAM, 0.1, {"lr": 0.1}, None])
def test_anything_else_than_a_recipe_is_shown_one(data, given):
    sentence = (
        "`recipe` should be a Recipe, as tm.Recipe(lr=0.01, steps=1000, batch=16) or "
        f"tm.Recipe(partial(torch.optim.AdamW, lr=3e-4), steps=1000). Found {type(given).__name__}."
    )
    kernels = tm.tangent(nn.Linear(6, 1), *data)
    for work in (
        lambda: checked_recipe(given),
        lambda: tm.train(nn.Linear(6, 1), *data, given),
        lambda: tm.ensemble(lambda: nn.Linear(6, 1), *data, given),
        lambda: tm.forecast(nn.Linear(6, 1), *data, given),
        lambda: kernels.forecast(given),
        lambda: kernels.why(given, step=5),
        lambda: kernels.learned_share(given),
        lambda: tm.fairness.best_weights(kernels, given),
    ):
        assert said(work, TypeError) == sentence


@pytest.mark.parametrize(
    ("schedule", "kind", "sentence"),
    [
        (lambda step: 0.1 - step, ValueError, "The schedule of `lr` should give non-negative numbers. Found -0.9 at step = 1."),
        (lambda step: np.nan if step == 2 else 0.1, ValueError, "The schedule of `lr` should give non-negative numbers. Found nan at step = 2."),
    ],
)  # fmt: skip
def test_rates_of_a_schedule(data, schedule, kind, sentence):
    recipe = tm.Recipe(schedule=schedule, steps=5)
    assert said(lambda: recipe.learning_rates(5), kind) == sentence
    assert said(lambda: tm.train(nn.Linear(6, 1), *data, recipe), kind) == sentence
    assert said(lambda: tm.forecast(nn.Linear(6, 1), *data, recipe), kind) == sentence


@pytest.mark.parametrize(
    ("schedule", "sentence"),
    [
        (ReduceLROnPlateau, "`schedule` should depend on the step alone. Found ReduceLROnPlateau, which needs a metric."),
        (
            lambda step: "fast",
            "`schedule` should be a function of the step, as tm.schedules.Cosine(0.1, 1000), or make a torch scheduler, "
            "as partial(torch.optim.lr_scheduler.CosineAnnealingLR, T_max=1000). Found that it makes 'fast'.",
        ),
    ],
)  # fmt: skip
def test_schedulers(data, schedule, sentence):
    recipe = tm.Recipe(lr=0.1, schedule=schedule, steps=5)
    for work in (tm.train, tm.forecast):
        assert said(lambda work=work: work(nn.Linear(6, 1), *data, recipe), TypeError) == sentence


def test_a_schedule_that_fails_raises_its_own_error():
    with pytest.raises(ZeroDivisionError):
        tm.Recipe(schedule=lambda step: 0.1 / step, steps=5)


def test_a_scheduler_of_momentum_too_is_for_train_alone(data):
    recipe = tm.Recipe(lr=0.1, momentum=0.9, schedule=partial(OneCycleLR, max_lr=0.1, total_steps=6), steps=5)
    sentence = (
        "`schedule` should change the learning rate alone here. Found that it changes the momentum too "
        "(cycle_momentum=False leaves it alone); `train` can follow it."
    )
    kernel = tm.methods.Kernel()
    assert said(lambda: tm.forecast(nn.Linear(6, 1), *data, recipe, method=kernel), ValueError) == sentence
    assert said(lambda: tm.ensemble(lambda: nn.Linear(6, 1), *data, recipe, seeds=1), ValueError) == sentence
    assert tm.train(nn.Linear(6, 1), *data, recipe)["loss"].time.values[-1] == 5


def test_a_first_group_without_a_rate_has_no_ratios(data):
    def make(parameters):
        first, second = parameters
        return torch.optim.SGD([{"params": [first], "lr": 0.0}, {"params": [second]}], lr=0.1)

    recipe = tm.Recipe(make, schedule=tm.schedules.Cosine(0.1, 5), steps=5)
    assert said(lambda: tm.train(nn.Linear(6, 1), *data, recipe), ValueError) == (
        "With a `schedule`, other parameter groups keep their ratio to the first. Found lr = 0 in the first."
    )


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"when": 5}, "`when` should choose steps, as log_spaced(20) or every(100). Found int."),
        ({"measures": "error"}, "`measures` should be a tuple of measures. Found str."),
        ({"measures": abs}, "`measures` should be a tuple of measures. Found builtin_function_or_method."),
        ({"decide": 0.5}, "`decide` should be a function. Found float."),
        ({"read": "logits"}, "`read` should be a function. Found str."),
    ],
)
def test_a_watch(given, sentence):
    assert said(lambda: tm.Watch(**given), TypeError) == sentence


def test_anything_else_than_a_watch_is_shown_one(data):
    shown = "`watch` should be a Watch, as tm.Watch(when=tm.record.every(100))."
    recipe, model = tm.Recipe(lr=0.1, steps=5), nn.Linear(6, 1)
    for work in (
        lambda: checked_watch(tm.record.every(5)),
        lambda: tm.train(model, *data, recipe, watch=tm.record.every(5)),
        lambda: tm.ensemble(lambda: model, *data, recipe, watch=tm.record.every(5)),
        lambda: tm.forecast(model, *data, recipe, watch=tm.record.every(5)),
        lambda: tm.Probe(model, data[1], tm.record.every(5), budget=None),
    ):
        assert said(work, TypeError) == f"{shown} Found Every: pass tm.Watch(when=every(5))."
    assert said(lambda: checked_watch(3), TypeError) == f"{shown} Found int."


@pytest.mark.parametrize(
    ("table", "kind", "sentence"),
    [
        ({"lr": None}, KeyError, "[training] needs `lr`, the learning rate."),
        ({"loss": "l1"}, KeyError, "[training] loss: no 'l1'. There are: square, logistic, hinge, cross-entropy."),
        ({"loss": 3}, KeyError, "[training] loss: no 3. There are: square, logistic, hinge, cross-entropy."),
        ({"optimiser": "lion"}, KeyError, "[training] optimiser: no 'lion'. There are: sgd, adam, adamw."),
        ({"optimiser": {"class": "RMSprop"}}, ValueError, "[training] lr belongs into the table of the optimiser."),
        ({"lr": None, "optimiser": {"class": "Lion", "lr": 0.1}}, ValueError, "The optimiser {'class': 'Lion', 'lr': 0.1} cannot be rebuilt: it is not of torch.optim."),
        ({"optimiser": "adam", "momentum": 0.9}, ValueError, "[training] momentum belongs to sgd. Found optimiser = 'adam'."),
        ({"optimiser": "adamw", "nesterov": True}, ValueError, "[training] nesterov belongs to sgd. Found optimiser = 'adamw'."),
        ({"lr": {"initial": 0.1}}, KeyError, "[training] lr: no schedule None. There are: PowerDecay, Cosine, Warmup, Steps, Then."),
        ({"lr": {"kind": "Cosine"}}, KeyError, "[training] lr: write {schedule = 'Cosine', ...} instead of {kind = 'Cosine', ...}."),
        ({"lr": {"schedule": "Sine"}}, KeyError, "[training] lr: no schedule 'Sine'. There are: PowerDecay, Cosine, Warmup, Steps, Then."),
        ({"lr": {"schedule": "Cosine", "start": 1}}, KeyError, "[training] lr, schedule Cosine: unknown key 'start'. There are: initial, duration, final."),
        ({"lr": {"schedule": "Cosine"}}, TypeError, "[training] lr: the schedule Cosine takes numbers for initial, duration, final."),
        ({"weights": 2.0}, TypeError, "[training] weights should be a table of groups, as {rare = 2.0}. Found 2.0."),
        ({"proportions": [0.5]}, TypeError, "[training] proportions should be a table of groups, as {rare = 2.0}. Found [0.5]."),
        ({"steps": "many"}, ValueError, "`steps` should be a positive integer. Found steps = 'many'."),
    ],
)  # fmt: skip
def test_a_table(table, kind, sentence):
    given = {name: value for name, value in {"lr": 0.1, "steps": 5, **table}.items() if value is not None}
    with pytest.raises(kind) as error:
        recipe_from_table(given)
    assert error.value.args[0] == sentence
