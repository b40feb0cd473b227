"""The policy: which forecast a budget buys, with a clock that is given."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

import tiltmeter as tm
from tiltmeter.forecast import forecast as door
from tiltmeter.forecast.forecast import noted
from tiltmeter.forecast.policy import choose, twin_for
from tiltmeter.forecast.task import forecast_task

RECIPE = tm.Recipe(lr=0.05, steps=100, batch=16, loss=tm.Logistic())


class Ticks:
    """A clock that goes one tick a reading, so that 20 real steps take `step` seconds each."""

    def __init__(self, each):
        self.each, self.now = each, 0.0

    def __call__(self):
        self.now += self.each
        return self.now


def data(groups=2):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 6)).astype(np.float32)
    return tm.GroupedData(x, (x[:, 0] > 0).astype(int), np.arange(300) % groups).split(0.4)


def network(*more, width=64):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, width), *more, nn.ReLU(), nn.Linear(width, 1))


def task(model=None, recipe=RECIPE, groups=2, tick=1.0):
    return forecast_task(model or network(), *data(groups), recipe, tm.Watch(when=tm.record.at([0])), clock=Ticks(tick))


def test_the_training_is_timed_on_real_steps_and_one_evaluation():
    """A tick between the sixth step and the last of 25, one for the evaluation."""
    price = task(tick=20.0).price
    assert price.step == pytest.approx(1.0)
    assert price.loop == pytest.approx(100.0)
    assert price.evaluation == pytest.approx(20.0)
    assert price.training == pytest.approx(140.0)  # two evaluations


def test_interventions_cost_what_they_need():
    steered = replace(RECIPE, interventions=(tm.interventions.SAM(),))
    assert task(recipe=steered, tick=20.0).price.step == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("budget", "copies", "promised"),
    [(15.0, 1, "second half"), (25.0, 2, "second half"), (35.0, 3, "all evaluations"), (990.0, 5, "all evaluations")],
)
def test_rehearsals_by_budget(budget, copies, promised):
    one = task(tick=200.0 / 140.0)  # a training of ten seconds
    choice = choose(one, budget)
    assert choice.method == tm.methods.Rehearsal(copies)
    ticks = choice.seconds - 10 * copies  # what it took to choose is part of the price: the timing, a look at the clock
    assert one.price.timing <= ticks <= one.price.timing + 3 * 200.0 / 140.0
    assert choice.trainings == pytest.approx(0.14 * choice.seconds)  # of the loop without evaluations
    assert promised in choice.promise
    assert choice.weights == "these initial weights"


def test_the_default_budget_is_a_minute_or_a_part_of_the_training():
    assert choose(task(tick=20.0 / 140.0 * 25.0)).method == tm.methods.Rehearsal(2)  # 25 s each: 60 s pay for two
    assert choose(task(tick=20.0 / 140.0 * 70.0)).method != tm.methods.Rehearsal(1)


def test_one_rehearsal_is_enough_with_the_run_s_own_order():
    choice = choose(task(recipe=replace(RECIPE, order=0), tick=20.0 / 140.0), 99.0)
    assert choice.method == tm.methods.Rehearsal(1)
    assert "all evaluations" in choice.promise


@pytest.mark.parametrize("kind", ["groups", "batch normalisation"])
def test_where_five_copies_are_needed_fewer_promise_the_end(kind):
    given = {"groups": 4} if kind == "groups" else {"model": network(nn.BatchNorm1d(64))}
    few, many = (choose(task(**given, tick=20.0 / 140.0), budget) for budget in (3.5, 9.0))
    assert (few.method, many.method) == (tm.methods.Rehearsal(3), tm.methods.Rehearsal(5))
    assert "for the end" in few.promise
    assert "all evaluations" in many.promise


def test_a_narrow_copy_where_a_rehearsal_is_too_dear():
    """The clock ticks a few times for a twin, which is cut and timed, and many times for a long training."""
    long = replace(RECIPE, steps=10_000)
    one = task(recipe=long)
    assert one.price.training > 1e-6
    choice = choose(one, one.price.training * 0.99)
    assert choice.method == tm.methods.Twin(1 / 8)
    assert "second half" in choice.promise
    ordered = task(recipe=replace(long, order=0))
    assert "from 10 %" in choose(ordered, ordered.price.training * 0.99).promise


@pytest.mark.parametrize(("width", "share"), [(64, 1 / 2), (512, 1 / 4)])
def test_batch_normalisation_keeps_more_units(width, share):
    plain, normed = (task(network(*more, width=width)) for more in ((), (nn.BatchNorm1d(width),)))
    assert twin_for(plain) == tm.methods.Twin(1 / 8)
    assert twin_for(normed) == tm.methods.Twin(share)


def test_no_narrow_copy_is_cut_for_less_than_it_takes():
    """A training of 20 s and a budget of 2.5: to cut and time a copy would cost more than the budget."""
    choice = choose(task(tick=20.0 / 7.0), 2.5)
    assert choice.method == tm.methods.Preview()
    assert choice.why.endswith("s buys a rehearsal.")


def test_a_table_whose_copies_are_too_dear_is_previewed():
    one = task(tick=20.0)
    choice = choose(one, 2.0)
    assert choice.method == tm.methods.Preview()
    assert choice.promise == "the gaps between groups for the end of the training"
    ahead = noted(choice.method.forecast(one), choice)
    assert ahead.clock == "progress"
    assert ahead.origin.settings["method"] == {"name": "Preview"}
    assert ahead == noted(tm.forecast(one.model, one.train, one.held_out, one.recipe, method=choice.method), choice)
    law = replace(RECIPE, interventions=(tm.interventions.GroupDRO(0.1),))
    assert "use `forecast` or `train`" in tm.methods.Preview().refusal(task(recipe=law))


def test_a_pilot_names_what_would_buy_a_promise():
    """Of the run's own batches a preview knows nothing."""
    one = task(tick=20.0, recipe=replace(RECIPE, order=0))
    choice = choose(one, 2.0)
    assert choice.method == tm.methods.Pilot(steps=1)
    assert choice.promise == "nothing about the end"
    assert "buys a narrow copy, which promises the end" in choice.why
    ahead = noted(choice.method.forecast(one), choice)
    assert ahead.origin.settings["promise"] is None
    assert float(ahead["loss"]["time"][-1]) == 1
    assert "loss_gap_low" not in ahead
    line = tm.forecast(nn.Linear(6, 1), *data(), RECIPE, method=tm.methods.Pilot(4), progress=False)
    assert float(line["loss"]["time"][-1]) == 4


def test_a_linear_head_is_exact():
    model = network()
    model[0].requires_grad_(False)
    choice = choose(task(model))
    assert choice.method == tm.methods.Linear()
    assert "exact" in str(choice)
    recipe = replace(RECIPE, order=0)
    ahead = tm.forecast(model, *data(), recipe, progress=False)
    run = tm.train(model, *data(), recipe)
    assert float(abs(ahead["loss"] - run["loss"]).max()) < 1e-6
    assert "exact" in ahead.origin.settings["promise"]["sentence"]


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (network(), "one Linear layer that learns"),
        (nn.Sequential(nn.Linear(6, 8).requires_grad_(False), nn.Dropout(), nn.Linear(8, 1)), "dropout"),
        (nn.Sequential(nn.Linear(6, 1), nn.Tanh()), "something follows it"),
    ],
)
def test_what_is_no_linear_head(model, said):
    with pytest.raises(ValueError, match=said):
        tm.forecast(model, *data(), RECIPE, method=tm.methods.Linear())


def test_said_before_it_is_paid(capsys):
    heard = []
    tm.forecast(network(), *data(), RECIPE, progress=heard.append)
    assert heard[0].method == tm.methods.Rehearsal(5)
    tm.forecast(network(), *data(), RECIPE)
    assert "It promises the gaps between groups over all evaluations" in capsys.readouterr().err


def test_out_of_memory_a_narrow_copy_is_taken_and_said(monkeypatch):
    heard = []

    def full(*_):
        raise MemoryError

    monkeypatch.setattr(tm.methods.Rehearsal, "forecast", full)
    ahead = tm.forecast(network(), *data(), RECIPE, progress=heard.append)
    assert ahead.origin.settings["method"]["name"] == "Twin"
    assert "not enough memory" in heard[1].why
    assert door.__name__ == "tiltmeter.forecast.forecast"


@pytest.mark.parametrize("budget", [0, -1.0, True, "60"])
def test_a_budget_is_a_positive_number(budget):
    with pytest.raises(ValueError, match="`budget` should be a positive number of seconds"):
        tm.forecast(network(), *data(), RECIPE, budget)


def test_chosen_says_it_without_doing_it():
    choice = tm.methods.chosen(network(), *data(), RECIPE, clock=Ticks(20.0 / 140.0))
    assert choice.method == tm.methods.Rehearsal(5)
