"""stopping: three rules, what they cost, and never an untrained model."""

import numpy as np
import pytest
import xarray as xr

import tiltmeter as tm
from tiltmeter import SGD, Trajectory, predict, teacher_mixture
from tiltmeter.fairness import stopping
from tiltmeter.problem import cases
from tiltmeter.record import Origin


def run(a, b):
    values = np.stack([a, b], axis=1)
    coords = {"time": np.arange(float(len(a))), "group": ["a", "b"]}
    return Trajectory({"loss": xr.DataArray(values, dims=("time", "group"), coords=coords)}, "step", Origin("training"))


def test_each_rule_finds_its_own_best_among_the_near_looks():
    #            untrained   far   fair    mean    worst
    a = np.array([1.0, 0.70, 0.430, 0.29, 0.38])
    b = np.array([1.0, 0.70, 0.431, 0.51, 0.43])
    advice = stopping(run(a, b), within=0.1)
    assert (advice.fairest.time, advice.best_mean.time, advice.best_worst.time) == (2.0, 3.0, 4.0)
    assert advice.fairest.gap == pytest.approx(0.001)
    assert advice.best_mean.mean == pytest.approx(0.4)
    assert advice.best_worst.worst == pytest.approx(0.43)
    assert stopping(run(a, b), within=0.0).fairest.time == 3.0


def test_an_untrained_model_is_never_advised():
    advice = stopping(run(np.array([0.50, 0.49, 0.495]), np.array([0.50, 0.47, 0.48])), within=1.0)
    assert advice.fairest.time > 0  # the first evaluation has no gap at all, and is not advised
    with pytest.raises(ValueError, match="never improves on the first evaluation"):
        stopping(run(np.array([0.5, 0.6]), np.array([0.5, 0.6])))


def test_at_a_crossing_the_gap_is_smallest():
    theory = predict(*cases.three_phases())
    advice = stopping(theory, within=0.2)
    assert advice.fairest.time == pytest.approx(11.88, rel=0.05)
    text = str(advice)
    assert "smallest gap" in text
    assert "within 20 %" in text


GRID = predict(teacher_mixture(("rho", [0.3, 0.6])), SGD(lr=0.1), [0.1, 1.0])


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: stopping(predict(*cases.no_bias()), within=-1), "`within` should not be negative. Found within = -1."),
        (
            lambda: stopping(predict(*cases.no_bias()), curve="tpr"),
            "`stopping` needs a curve for which lower is better",
        ),
        (lambda: stopping(GRID), "`stopping` is for one run; select one point of rho first."),
    ],
)
def test_bad_input_gets_one_clear_sentence(call, sentence):
    with pytest.raises(ValueError, match="`") as raised:
        call()
    assert sentence in str(raised.value)


def test_a_run_without_looks_is_refused_in_a_sentence():
    coords = {"time": np.zeros(0), "group": ["a", "b"]}
    loss = xr.DataArray(np.zeros((0, 2)), dims=("time", "group"), coords=coords)
    empty = tm.Trajectory({"loss": loss}, "step", tm.record.Origin("training"))
    for ask in (tm.fairness.stopping, tm.leaders):
        with pytest.raises(ValueError, match="Curve 'loss' has no evaluations: nothing is recorded yet"):
            ask(empty)
