"""Nothing is ignored in silence: what a function cannot treat it refuses; another recipe cannot resume a run."""

import inspect
from dataclasses import replace
from functools import partial

import pytest
import torch
from torch import nn

import tiltmeter as tm
from tiltmeter.forecast.kernel.tangent import Tangent

RECIPE = tm.Recipe(lr=0.1, steps=20, batch=8)
SGD = partial(torch.optim.SGD, lr=0.1)


def doors(data, recipe, watch=tm.Watch()):
    """Every function that forecasts from the kernel."""
    kernels = tm.tangent(nn.Linear(6, 1), *data)
    return {
        "forecast": lambda: tm.forecast(nn.Linear(6, 1), *data, recipe, watch=watch, method=tm.methods.Kernel()),
        "Tangent.forecast": lambda: kernels.forecast(recipe, watch=watch),
        "why": lambda: kernels.why(recipe, step=5),
        "learned_share": lambda: kernels.learned_share(recipe),
        "best_weights": lambda: tm.fairness.best_weights(kernels, recipe),
    }


KNOWN = "A forecast from the kernel knows SGD, with momentum, weight decay and a schedule."


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"optimiser": torch.optim.AdamW, "lr": None}, f"{KNOWN} Found optimiser = AdamW."),
        ({"optimiser": partial(SGD, momentum=0.5, nesterov=True), "lr": None}, f"{KNOWN} Found nesterov = True."),
        ({"optimiser": partial(SGD, momentum=0.5, dampening=0.1), "lr": None}, f"{KNOWN} Found dampening = 0.1."),
        ({"optimiser": partial(SGD, maximize=True), "lr": None}, f"{KNOWN} Found maximize = True."),
        ({"momentum": 0.5, "nesterov": True}, f"{KNOWN} Found nesterov = True."),
        (
            {"accumulate": 4, "compile": True},
            "A forecast from the kernel runs the network plainly. Found accumulate = 4, compile = True: `train` and "
            "Rehearsal run it so.",
        ),
        ({"clip": 1.0}, f"{KNOWN} Found clip = 1.0: `train` can clip gradients."),
        (
            {"optimiser": lambda ps: torch.optim.SGD([{"params": [p]} for p in ps], lr=0.1), "lr": None},
            "`optimiser` should treat all parameters alike. Found 2 parameter groups.",
        ),
        (
            {"optimiser": lambda ps: torch.optim.SGD(list(ps)[:1], lr=0.1), "lr": None},
            "`optimiser` should take all parameters here. Found that it leaves out 1.",
        ),
    ],
)
def test_a_forecast_refuses_what_its_closed_form_does_not_know(data, change, sentence):
    for name, work in doors(data, replace(RECIPE, **change)).items():
        with pytest.raises(ValueError, match="Found") as error:
            work()
        assert str(error.value) == sentence, name


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (
            lambda ps: torch.optim.SGD([{"params": [p]} for p in ps], lr=0.1),
            "`optimiser` should treat all parameters alike. Found 2 parameter groups.",
        ),
        (
            lambda ps: torch.optim.SGD(list(ps)[:1], lr=0.1),
            "`optimiser` should take all parameters here. Found that it leaves out 1.",
        ),
    ],
)
def test_an_ensemble_refuses_optimisers_that_do_not_stack(data, make, sentence):
    with pytest.raises(ValueError, match="`optimiser`") as error:
        tm.ensemble(lambda: nn.Linear(6, 1), *data, tm.Recipe(make, steps=3), seeds=1)
    assert str(error.value) == sentence
    # In train they are the user's own affair.
    assert tm.train(nn.Linear(6, 1), *data, tm.Recipe(make, steps=3))["loss"].time.values[-1] == 3


@pytest.mark.parametrize("change", [{"accumulate": 2}, {"autocast": "bfloat16"}, {"compile": True}])
def test_only_the_network_itself_runs_in_parts_or_in_less_precision(data, change):
    recipe = replace(RECIPE, **change)
    with pytest.raises(ValueError, match="`ensemble` runs the network plainly"):
        tm.ensemble(lambda: nn.Linear(6, 1), *data, recipe, seeds=1)
    wide = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 1))
    with pytest.raises(ValueError, match="A twin runs the network plainly"):
        tm.forecast(wide, *data, recipe, method=tm.methods.Twin(1 / 2))
    with pytest.raises(ValueError, match="The features of a head are computed plainly"):
        tm.forecast(nn.Linear(6, 1), *data, recipe, method=tm.methods.Linear())


def spread(y_true, y_score):
    return y_score.std()


def test_measures_of_scores_are_forecast_and_those_of_a_snapshot_refused(data):
    watch = tm.Watch(when=tm.record.every(5), measures=(spread,))
    ahead = tm.forecast(nn.Linear(6, 1), *data, RECIPE, watch=watch)
    assert ahead["spread"].time.values.tolist() == [0, 5, 10, 15, 20]
    sentence = "`measures` of a forecast should be functions f(y_true, y_score). Found one of a snapshot."
    watch = tm.Watch(measures=(lambda snapshot: {},))
    found = doors(data, RECIPE, watch)
    for name in ("forecast", "Tangent.forecast"):
        with pytest.raises(TypeError, match="measures") as error:
            found[name]()
        assert str(error.value) == sentence, name


def test_another_read_than_that_of_the_kernels_is_refused(data):
    read = lambda output: output  # noqa: E731
    kernels = tm.tangent(nn.Linear(6, 1), *data, read=read)
    assert kernels.forecast(RECIPE, watch=tm.Watch(read=read)) == kernels.forecast(RECIPE)
    with pytest.raises(ValueError, match="read") as error:
        kernels.forecast(RECIPE, watch=tm.Watch(read=lambda output: 2 * output))
    assert str(error.value) == "`read` of a forecast is that of its kernels: pass it to `tangent`."


def test_a_method_is_a_value(data):
    with pytest.raises(TypeError, match="method") as error:
        tm.forecast(nn.Linear(6, 1), *data, RECIPE, method="kernel")
    assert str(error.value) == "`method` should say how to forecast, as tm.methods.Rehearsal(). Found str."


def test_best_weights_searches_the_weights_itself(data):
    kernels = tm.tangent(nn.Linear(6, 1), *data)
    with pytest.raises(ValueError, match="searches the weights itself: leave them out of the recipe"):
        tm.fairness.best_weights(kernels, replace(RECIPE, weights={"a": 2.0}))


class TestResume:
    @pytest.mark.parametrize(
        ("change", "difference"),
        [
            ({"batch": 16}, "`settings.recipe.batch` was 8 and is now 16."),
            ({"lr": 0.2}, "`settings.recipe.optimiser.lr` was 0.1 and is now 0.2."),
            ({"momentum": 0.5}, "`settings.recipe.optimiser.momentum` was not set and is now 0.5."),
            ({"lr": None, "optimiser": torch.optim.Adam}, "`settings.recipe.optimiser.class` was 'SGD' and is now 'Adam'."),
            ({"clip": 1.0}, "`settings.recipe.clip` was not set and is now 1.0."),
            ({"order": 3}, "`settings.recipe.order` was not set and is now 3."),
            ({"weights": {"a": 2.0, "b": 3.0}}, "`settings.recipe.weights[1][1]` was 1.0 and is now 3.0."),
            ({"steps": 30}, "`settings.recipe.steps` was 20 and is now 30."),
            ({"loss": tm.Square()}, "`settings.loss` was 'logistic loss' and is now 'half squared error'."),
        ],
    )  # fmt: skip
    def test_another_recipe_is_refused_with_the_difference_named(self, data, tmp_path, change, difference):
        before = replace(RECIPE, weights={"a": 2.0, "b": 1.0}) if "weights" in change else RECIPE
        tm.train(nn.Linear(6, 1), *data, before, to=tmp_path / "run")
        with pytest.raises(ValueError, match="another origin") as error:
            tm.train(nn.Linear(6, 1), *data, replace(before, **change), to=tmp_path / "run", resume=True)
        assert str(error.value) == (
            f"{tmp_path / 'run'} has another origin: {difference} Resume it with the origin it began with, or choose a "
            "new name."
        )

    def test_the_same_recipe_in_its_long_form_goes_on(self, data, tmp_path):
        first = tm.train(nn.Linear(6, 1), *data, RECIPE, to=tmp_path / "run")
        again = tm.train(nn.Linear(6, 1), *data, tm.Recipe(SGD, steps=20, batch=8), to=tmp_path / "run", resume=True)
        assert again == first


@pytest.mark.parametrize(
    "function",
    [Tangent.forecast, Tangent.why, Tangent.learned_share, tm.fairness.best_weights, tm.train, tm.ensemble, tm.Probe],
    ids=lambda function: function.__qualname__,
)  # fmt: skip
def test_no_door_has_more_than_ten_parameters(function):
    names = [name for name in inspect.signature(function).parameters if name != "self"]
    # A probe also says what it does when it fails or takes long, a training answers a forecast and is made several times.
    assert len(names) <= (12 if function in (tm.Probe, tm.train) else 10), names
