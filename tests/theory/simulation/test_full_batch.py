"""Flow and Descent at finite d, wrong labels, and batches with replacement."""

import numpy as np
import pytest

from tiltmeter import SGD, Fixed, Flow, load, simulate, teacher_mixture
from tiltmeter.theory import Descent, Direct
from tiltmeter.theory.problem.students import Network

PROBLEM = teacher_mixture(rho=0.7, shift=1.0, variance=(0.5, 1.2), overlap=0.6, shift_overlap=(0.3, -0.3))
DIRECT = {"d": 30, "seeds": 3, "method": Direct()}


def test_small_steps_of_descent_follow_the_flow():
    flow = simulate(PROBLEM, Flow(1.0, train_bias=True, weight_decay=0.1), [2.0], data=Fixed(2.0), **DIRECT)
    steps = simulate(PROBLEM, Descent(1e-3, train_bias=True, weight_decay=0.1), [2000], data=Fixed(2.0), **DIRECT)
    for curve in ("loss", "training_loss", "student_bias", "Q"):
        np.testing.assert_allclose(steps[curve].values, flow[curve].values, atol=3e-3)
    assert (flow.clock, steps.clock) == ("t", "step")


def test_wrong_labels_are_in_the_set_and_not_in_the_test():
    all_wrong = Fixed(3.0, {"+": 1.0, "-": 1.0})
    right = simulate(PROBLEM, Flow(1.0), [50.0], data=Fixed(3.0), **DIRECT)
    wrong = simulate(PROBLEM, Flow(1.0), [50.0], data=all_wrong, **DIRECT)
    np.testing.assert_allclose(wrong["error"].values, 1.0 - right["error"].values, atol=1e-9)
    np.testing.assert_allclose(wrong["training_loss"].values, right["training_loss"].values, atol=1e-9)
    sgd = simulate(PROBLEM, SGD(0.3), [9.0], data=all_wrong, **DIRECT)
    assert (sgd["error"].mean("seed") > 0.5).all()


def test_repeated_and_fixed_are_the_same_data():
    one = simulate(PROBLEM, SGD(0.3), [4.0], data=Fixed(2.0), **DIRECT)
    assert one["loss"].equals(simulate(PROBLEM, SGD(0.3), [4.0], data=Fixed(2.0), **DIRECT)["loss"])


def test_drawing_with_replacement_is_another_run():
    shuffled, drawn = (simulate(PROBLEM, SGD(0.3), [4.0], data=Fixed(2.0, replace=r), **DIRECT) for r in (False, True))
    assert not shuffled["loss"].equals(drawn["loss"])


def test_weights_by_label_and_keeping(tmp_path):
    run = simulate(PROBLEM, Flow(1.0, weights={("+", 1): 3.0}), [1.0], data=Fixed(2.0), to=tmp_path / "run", **DIRECT)
    assert load(tmp_path / "run")["loss"].equals(run["loss"])


def test_descent_beyond_its_limit_is_told():
    with pytest.warns(UserWarning, match="3 of 3 seeds diverged"):
        run = simulate(PROBLEM, Descent(5.0), [1, 400], data=Fixed(2.0), **DIRECT)
    assert run.diverged is not None
    assert np.isnan(run["loss"].isel(time=-1)).all()


@pytest.mark.parametrize(
    ("training", "given", "words"),
    [
        (Flow(1.0), {}, r"Flow needs a training set: pass data=Fixed\(samples=...\)"),
        (
            Flow(1.0),
            {"data": Fixed(2.0), "method": None},
            r"Flow on a training set has no chain. Use method=Direct\(\)",
        ),
        (Flow(1.0), {"data": Fixed(2.0, replace=True)}, "`replace` is about batches of SGD"),
        (Descent(0.1), {"data": Fixed(2.0), "student": Network(2)}, "Descent is for the linear student"),
        (Flow(1.0), {"data": Fixed(("samples", [1.0, 2.0]))}, "this one has a grid over samples"),
    ],
)
def test_bad_input(training, given, words):
    from tiltmeter.theory import Chain

    options = {**DIRECT, **given}
    options["method"] = options["method"] or Chain()
    with pytest.raises(ValueError, match=words):
        simulate(PROBLEM, training, [1.0], **options)
