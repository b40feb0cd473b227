"""What the theory of fixed sets, classes and random features does not solve is refused, naming what can do it."""

import numpy as np
import pytest

import tiltmeter as tm
from tiltmeter.theory import Direct
from tiltmeter.theory.dynamics.stability import stability_limit

CENTRED = tm.teacher_mixture(rho=0.8, variance=(0.5, 1.5), overlap=0.5)
CLASSES = tm.theory.class_mixture(3)
SET, DRAWN = tm.Fixed(2.0), tm.Fixed(2.0, replace=True)
COSINE, TURN = tm.schedules.Cosine(0.1, 10.0), tm.schedules.in_turn({"+": 1.0, "-": 1.0})
LABELS = {("+", 1): 2.0}


def ask(training, data=SET, problem=CENTRED, **more):
    return lambda: tm.predict(problem, training, [1.0], data=data, **more)


#: What is asked, and what the answer says.
NOT_SOLVED = {
    "weights of labels, flow": (ask(tm.Flow(0.1, weights=LABELS)), "per .group, label.*use `simulate`"),
    "weights of labels, descent": (ask(tm.theory.Descent(0.1, weights=LABELS)), "per .group, label.*use `simulate`"),
    "weights of labels, shuffled": (ask(tm.SGD(0.1, weights=LABELS)), "per .group, label.*use `simulate`"),
    "weights of labels, drawn": (ask(tm.SGD(0.1, weights=LABELS), DRAWN), "per .group, label.*use `simulate`"),
    "another loss": (
        ask(tm.SGD(0.1), student=tm.theory.students.Softmax()),
        r"several classes.*`equilibrium\(loss=Logistic",
    ),
    "another loss of classes": (
        ask(tm.SGD(0.1), problem=CLASSES, student=tm.theory.students.Softmax()),
        "SGD on fresh examples only. Train on `samples` with `train`",
    ),
    "trained bias, shuffled": (ask(tm.SGD(0.1, train_bias=True)), r"a trained bias on a fixed set. Use `simulate`"),
    "trained bias, drawn": (ask(tm.SGD(0.1, train_bias=True), DRAWN), r"a trained bias on a fixed set. Use `simulate`"),
    "batches, shuffled": (ask(tm.SGD(0.1, batch=2)), r"shuffled epochs with batch = 2.*replace=True.*`simulate`"),
    "training error of SGD": (
        lambda: tm.predict(CENTRED, tm.SGD(0.1), [1.0], ("training_error",), data=SET),
        "no exact `training_error` for SGD.*Use Flow, or `simulate`",
    ),
    "classes, flow": (ask(tm.Flow(0.1), problem=CLASSES), "fresh examples only. Train on `samples` with `train`"),
    "classes, SGD": (ask(tm.SGD(0.1), problem=CLASSES), "fresh examples only. Train on `samples` with `train`"),
    "random features in time": (
        ask(tm.Flow(0.1), student=tm.theory.students.Network(5)),
        "no exact solution for networks on a fixed set. Use `simulate`",
    ),
    "nesterov": (ask(tm.SGD(0.1, momentum=0.5, nesterov=True)), "nesterov on a fixed set. Use `simulate`"),
    "schedule of the rate": (ask(tm.SGD(COSINE)), "a schedule on a fixed set. Use `simulate`"),
    "schedule of weights": (ask(tm.SGD(0.1, weights={"+": COSINE})), "a schedule on a fixed set. Use `simulate`"),
    "schedule of proportions": (ask(tm.SGD(0.1, proportions=TURN)), "keeps the proportions.*leave out `data`"),
    "schedule of an intervention": (
        ask(tm.SGD(0.1, interventions=(tm.interventions.GroupDRO(rate=5.0, by="draws"),))),
        "no theory of GroupDRO on a fixed set. Use `simulate`",
    ),
}


@pytest.mark.parametrize("name", NOT_SOLVED)
def test_it_is_refused_by_name(name):
    question, said = NOT_SOLVED[name]
    with pytest.raises(ValueError, match=said):
        question()


@pytest.mark.parametrize("training", [tm.Flow, tm.theory.Descent])
def test_full_batches_have_no_schedules(training):
    for given in ({"lr": COSINE}, {"lr": 0.1, "weights": {"+": COSINE}}, {"lr": 0.1, "proportions": TURN}):
        with pytest.raises(TypeError, match=r"has no schedules.*Use SGD in `simulate` with method=Direct\(\)"):
            training(**given)


@pytest.mark.parametrize(
    "sgd",
    [
        tm.SGD(0.1, weights=LABELS),
        tm.SGD(0.1, train_bias=True),
        tm.SGD(0.1, batch=2),
        tm.SGD(0.1, momentum=0.5, nesterov=True),
        tm.SGD(COSINE),
        tm.SGD(0.1, weights={"+": COSINE}),
    ],
    ids=["weights of labels", "trained bias", "batches", "nesterov", "rate", "weights"],
)
def test_what_the_refusals_name_can_do_it(sgd):
    for data in (SET, DRAWN):
        run = tm.simulate(CENTRED, sgd, [1.0, 5.0], 30, 2, method=Direct(), data=data)
        assert np.isfinite(run["training_error"].values).all()


def test_a_batch_that_does_not_divide_the_set_goes_on_into_the_next_epoch():
    """60 steps of 7 of the 60 examples are seven epochs: at a tiny rate every example has counted as often as any."""
    options = {"d": 30, "seeds": 2, "method": Direct(), "data": SET, "curves": ("R",)}
    seven, whole = (tm.simulate(CENTRED, tm.SGD(1e-7, batch=b), [2.0], **options)["R"].values for b in (7, 60))
    np.testing.assert_allclose(seven, whole, rtol=1e-5)
    part = tm.simulate(CENTRED, tm.SGD(1e-7, batch=7), [1.9], **options)["R"].values
    assert np.abs(part / whole - 1.0).max() > 1e-2


class TestAsManyExamplesAsDimensions:
    """alpha = 1 without ridge: every method has its values, none has an end, and `equilibrium` says why."""

    def test_sgd_has_its_limits(self):
        at, near = (stability_limit(CENTRED, tm.SGD(0.1), tm.Fixed(a, replace=True)).item() for a in (1.0, 1.2))
        assert at == pytest.approx(1.5775, abs=1e-4)
        assert near == pytest.approx(1.6191, abs=1e-4)
        for replace in (False, True):
            run = tm.predict(CENTRED, tm.SGD(0.5), [3.0], data=tm.Fixed(1.0, replace=replace))
            assert np.isfinite(run["loss"].values).all()

    def test_there_is_no_end(self):
        with pytest.raises(ValueError, match=r"too late for this number of samples.*`equilibrium`"):
            tm.predict(CENTRED, tm.Flow(1.0), [1e12], data=tm.Fixed(1.0))
        with pytest.raises(ValueError, match=r"With ridge = 0 and 1 examples per dimension many students"):
            tm.equilibrium(CENTRED, tm.Square(), 1.0, 0.0)
        with_ridge = tm.predict(CENTRED, tm.Flow(1.0, weight_decay=0.1), [1e12], data=tm.Fixed(1.0))
        assert np.isfinite(with_ridge["loss"].values).all()
