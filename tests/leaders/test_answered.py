"""A forecast that is kept with its training is answered by it: held, missed, or none was made."""

import numpy as np
import pytest
import torch
from torch import nn

import tiltmeter as tm
from tiltmeter.forecast.bands import crossing_of_copies

RECIPE = tm.Recipe(lr=0.05, steps=200, batch=32, order=0, loss=tm.Logistic())


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 1))


@pytest.fixture(scope="module")
def answered():
    """The leaders of a training that keeps what is given as its forecast."""
    train, held_out = tm.data.loans(applications=4000)
    ahead = tm.forecast(network(), train, held_out, RECIPE, method=tm.methods.Rehearsal(1), progress=False)

    def of(forecast):
        return tm.leaders(tm.train(network(), train, held_out, RECIPE, forecast=forecast))

    return tm.leaders(ahead), of


def test_an_exact_forecast_holds(answered, tmp_path):
    ahead, of = answered
    judged = of(ahead.gap_forecast)
    gap = round(100 * abs(float(judged.chosen.gap[-1])))
    assert judged.headline.answer == f"The forecast held: {gap} points were forecast, {gap} came."
    assert str(judged).splitlines()[0] == judged.headline.answer
    tm.save(judged.run, tmp_path / "run")
    assert tm.leaders(tm.load(tmp_path / "run")).headline.answer == judged.headline.answer


def test_another_gap_is_missed_and_nobody_named_is_no_forecast(answered):
    ahead, of = answered
    gap = ahead.gap_forecast
    away = {**gap, "gap": gap["gap"] - 0.3, "low": gap["gap"] - 0.35, "high": gap["gap"] - 0.25}
    assert of(away).headline.answer.startswith("The forecast missed: ")
    assert of({}).headline.answer == "No forecast was made."
    assert of(None).headline.answer == ""
    assert of({"curve": "tpr", "pair": 3}).headline.answer == ""  # what stands in a file may be anything


def test_a_training_that_goes_on_answers_the_forecast_that_it_began_with(answered, tmp_path):
    ahead, _ = answered
    train, held_out = tm.data.loans(applications=4000)
    first = tm.train(network(), train, held_out, RECIPE, to=tmp_path / "run", forecast=ahead.gap_forecast)
    away = {**ahead.gap_forecast, "gap": 0.9, "low": 0.8, "high": 1.0}
    again = tm.train(network(), train, held_out, RECIPE, to=tmp_path / "run", resume=True, forecast=away)
    assert tm.leaders(again).headline.answer == tm.leaders(first).headline.answer


def test_the_crossing_of_copies_by_hand():
    """Gaps that are linear in time and cross at 20, 30 and 40: the interval is that of log time."""
    times = np.arange(1.0, 101.0)
    gaps = np.stack([times - at for at in (20.0, 30.0, 40.0)])
    found = crossing_of_copies(gaps, times)
    logs = np.log([20.0, 30.0, 40.0])
    half = 2.9199855803 * logs.std(ddof=1) * (1 + 1 / 3) ** 0.5  # Student's t with two degrees of freedom, 95 %
    assert found["time"] == pytest.approx(np.exp(logs.mean()))
    assert (found["low"], found["high"]) == pytest.approx((np.exp(logs.mean() - half), np.exp(logs.mean() + half)))
    assert crossing_of_copies(gaps[:2], times).keys() == {"crossed", "copies", "time"}
    assert crossing_of_copies(np.ones((3, 100)), times) is None
    some = crossing_of_copies(np.concatenate([gaps, np.ones((2, 100))]), times)
    assert (some["crossed"], some["copies"]) == (3, 5)
