"""agreement: evaluated, interpolated, in standard errors, and what cannot be compared."""

import numpy as np
import pytest
import xarray as xr

from tiltmeter import SGD, Trajectory, agreement, predict, teacher_mixture
from tiltmeter.record import Origin
from tiltmeter.theory import cases


def run(function, times, seeds=None, noise=0.0, clock="t", source="simulation", name="loss", definition=None):
    rng = np.random.default_rng(0)
    times = np.asarray(times, dtype=float)
    shape = (len(times), seeds) if seeds else (len(times),)
    values = function(times).reshape(-1, *([1] if seeds else [])) + noise * rng.normal(size=shape)
    attrs = {"definition": definition} if definition else {}
    curve = xr.DataArray(values, dims=("time", "seed")[: len(shape)], coords={"time": times}, attrs=attrs)
    return Trajectory({name: curve}, clock, Origin(source))


def test_theory_is_evaluated_at_the_other_times():
    problem, sgd, times = cases.centred_crossing()
    other = predict(problem, sgd, np.linspace(1.0, 7.0, 9))
    found = agreement(predict(problem, sgd, times), other)
    assert {row.how for row in found.rows} == {"evaluated"}
    assert max(row.largest for row in found.rows) == 0.0
    assert "exact values at the times of the second" in str(found)


def test_anything_else_is_interpolated_in_log_time_inside_the_common_range():
    a, b = run(np.log, np.geomspace(1, 100, 7)), run(np.log, np.geomspace(0.1, 1000, 31))
    found = agreement(a, b)
    assert str(found).endswith("Compared: 1 curve with the first interpolated to the times of the second.")
    row = found["loss"]
    assert row.how == "interpolated"
    assert row.largest < 1e-12  # a straight line in log time
    assert row.count == sum((np.geomspace(0.1, 1000, 31) >= 1) & (np.geomspace(0.1, 1000, 31) <= 100))
    linear = agreement(run(lambda t: t, [1.0, 100.0]), run(lambda t: t, [1.0, 10.0, 100.0]))["loss"]
    assert linear.largest == pytest.approx(40.5)  # half way in log time, not in time


def test_standard_errors_come_from_seeds():
    noisy = run(np.sin, np.linspace(1, 9, 50), seeds=400, noise=0.1)
    row = agreement(run(np.sin, np.linspace(1, 9, 50)), noisy)["loss"]
    assert row.how == "same times"
    assert 0.7 < row.rms_in_se < 1.3
    assert row.rms == pytest.approx(0.1 / 20, rel=0.3)


def test_a_real_distance_shows_in_standard_errors():
    noisy = run(lambda t: np.sin(t) + 0.05, np.linspace(1, 9, 50), seeds=400, noise=0.1)
    assert agreement(run(np.sin, np.linspace(1, 9, 50)), noisy)["loss"].rms_in_se > 8


def test_named_curves_only():
    problem, sgd, times = cases.centred_crossing()
    theory = predict(problem, sgd, times)
    assert [row.curve for row in agreement(theory, theory, "loss", "Q").rows] == ["loss", "Q"]


A = run(np.sin, [1.0, 2.0])
BAD = [
    (lambda: agreement(A, run(np.sin, [1.0], clock="step")), ValueError, 'The clocks differ: "t" and "step". Convert one with `on_clock`'),
    (lambda: agreement(A, run(np.sin, [1.0], name="Q")), ValueError, "The trajectories share no curve: loss against Q."),
    (lambda: agreement(A, run(np.sin, [5.0, 6.0])), ValueError, "no time within the range of the other run"),
    (lambda: agreement(A, A)["Q"], KeyError, "No curve 'Q' was compared. There are: loss."),
    (
        lambda: agreement(run(np.sin, [1.0], definition="half squared error"), run(np.sin, [1.0], definition="MSELoss")),
        ValueError,
        "has two definitions, half squared error and MSELoss",
    ),
    (
        lambda: agreement(
            predict(teacher_mixture(), SGD(lr=0.1), [1.0]), predict(teacher_mixture(("rho", [0.3, 0.4])), SGD(lr=0.1), [1.0]).replace(
                {"loss": xr.DataArray(np.zeros((1, 2)), dims=("time", "group"), coords={"time": [1.0], "group": ["a", "b"]})}
            )
        ),
        ValueError,
        "has different labels in the two",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("call", "kind", "sentence"), BAD, ids=[sentence[:60] for _, _, sentence in BAD])
def test_bad_input_gets_one_clear_sentence(call, kind, sentence):
    with pytest.raises(kind) as raised:
        call()
    assert sentence in str(raised.value)
