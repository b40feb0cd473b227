"""How forecasts are judged: final leader, course, crossings; on curves whose answer is known."""

import numpy as np
import pytest
import xarray as xr

from tiltmeter.record import Origin, Trajectory
from tiltmeter_lab.named.forecast_accuracy import claims, tables
from tiltmeter_lab.shared.forecast_scores import score
from tiltmeter_lab.shared.forecast_tasks import draw, of_people

TIMES = np.unique(np.round(np.geomspace(1, 1000, 61)).astype(int))


def trajectory(gap, source, error=0.001):
    """Two groups whose losses differ by gap(step)."""
    loss = np.stack([0.5 + gap(TIMES) / 2, 0.5 - gap(TIMES) / 2], axis=1)
    coords = {"time": TIMES, "group": ["a", "b"]}
    curves = {
        "loss": xr.DataArray(loss, dims=("time", "group"), coords=coords, attrs={"better": "lower"}),
        "loss_se": xr.DataArray(np.full(loss.shape, error), dims=("time", "group"), coords=coords),
    }
    return Trajectory(curves, "step", Origin(source))


def crossing_at(step):
    return lambda t: 0.05 * np.log(t / step)


def test_a_perfect_forecast_scores_full_marks():
    found = score(trajectory(crossing_at(100), "forecast"), trajectory(crossing_at(100), "training"))
    assert found.right
    assert found.correlation == pytest.approx(1.0)
    assert found.foretold == (True,)


@pytest.mark.parametrize(("at", "expected"), [(70.0, True), (145.0, True), (55.0, False), (180.0, False)])
def test_crossings_count_within_a_factor_of_one_and_a_half(at, expected):
    # The real crossing is decided within a few evaluations of step 100; 55 and 180 lie outside 1.5 times that interval.
    found = score(trajectory(crossing_at(at), "forecast"), trajectory(crossing_at(100), "training"))
    assert found.foretold == (expected,)


def test_a_crossing_the_other_way_round_does_not_count():
    found = score(trajectory(lambda t: -crossing_at(100)(t), "forecast"), trajectory(crossing_at(100), "training"))
    assert found.foretold == (False,)
    assert found.right is False
    assert found.correlation == pytest.approx(-1.0)


def test_crossings_before_step_10_are_not_asked_for():
    early = trajectory(crossing_at(4), "training")
    assert score(early, early).foretold == ()


def test_a_final_gap_that_is_not_shown_is_not_judged():
    run = trajectory(lambda t: 0.001 * np.ones(len(t)), "training", error=0.001)
    found = score(run, run)
    assert not found.decided
    assert found.right is None


def test_claims_and_table_count_every_run():
    right, wrong = crossing_at(100), lambda t: -crossing_at(100)(t)
    runs = {}
    for number, told in enumerate((right, right, wrong)):
        name = f"{draw(number).name}, seed 0"
        runs[f"{name}, forecast"] = trajectory(told, "forecast")
        runs[f"{name}, trained"] = trajectory(right, "training")
    leader, course, passed = claims(runs)
    assert leader.statistic == pytest.approx(2 / 3)
    assert course.statistic == pytest.approx(1.0)
    assert passed.statistic == pytest.approx(2 / 3)
    assert not leader.holds
    (table,) = tables(runs).values()
    assert [row[4] for row in table.rows] == ["right", "right", "wrong"]
    assert {row[0].split(", ")[0] for row in table.rows} == {"00 mnist", "01 fashion-mnist", "02 cifar10"}


def test_tasks_are_drawn_before_looking():
    drawn = [draw(number) for number in range(24)]
    assert drawn == [draw(number) for number in range(24)]
    assert len({(task.rho, task.lr, task.data) for task in drawn}) > 20
    assert all(0.5 <= task.rho <= 0.95 for task in drawn)
    assert {task.network for task in drawn} == {"256", "256-256", "cnn"}
    assert str(of_people(900, "compas")) == "compas, 256, lr 0.001"
