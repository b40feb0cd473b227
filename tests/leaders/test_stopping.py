"""stopping: three rules, what they cost, and never an untrained model."""

import numpy as np
import pytest
import xarray as xr

import tiltmeter as tm
from tiltmeter import SGD, Trajectory, predict, teacher_mixture
from tiltmeter.fairness import stopping
from tiltmeter.record import Origin, Recorder
from tiltmeter.theory import cases


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


def rates(tpr, error):
    """A run with these rates of two groups at steps 0, 1, 2, ..."""
    recorder = Recorder(None, clock="step", origin=Origin("training"))
    for step, values in enumerate(tpr):
        given = {"tpr": values} if error is None else {"tpr": values, "error": error[step]}
        recorder.append(
            step, {k: xr.DataArray(v, dims="group", coords={"group": ["a", "b"]}) for k, v in given.items()}
        )
    return recorder.trajectory()


def test_a_rate_of_decisions_is_weighed_against_the_error():
    """At step 1 the model says yes to everybody: no gap in the true positive rate, and it is no use."""
    run = rates(
        tpr=[[0.5, 0.5], [1.0, 1.0], [0.6, 0.9], [0.7, 0.8]], error=[[0.6, 0.6], [0.5, 0.5], [0.2, 0.1], [0.2, 0.11]]
    )
    advice = stopping(run, curve="tpr")
    assert (advice.quality, advice.fairest.time, advice.best_mean.time) == ("error", 3, 2)
    assert advice.fairest.gap == pytest.approx(0.1)
    assert advice.fairest.worst == pytest.approx(0.7)  # higher is better: the worst off is the lowest
    assert "gap 0.1000 in tpr" in str(advice)
    assert {one.group: one.time for one in advice.by_group} == {"a": 1, "b": 1}


GRID = predict(teacher_mixture(("rho", [0.3, 0.6])), SGD(lr=0.1), [0.1, 1.0])


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: stopping(predict(*cases.no_bias()), within=-1), "`within` should not be negative. Found within = -1."),
        (
            lambda: stopping(rates([[0.5, 0.9]] * 3, None), curve="tpr"),
            "`stopping` needs errors or losses beside 'tpr', to tell a trained model.",
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
