"""Crossings between groups, of a class between groups, and between classes: told apart, counted, bounded."""

import numpy as np
import pytest

import tiltmeter as tm
from tiltmeter.record import Origin, Trajectory
from tiltmeter.theory.dynamics.classes.predict_classes import centred_class_losses

HIDDEN = tm.theory.class_mixture(3, rho=0.7, variance=(0.5, 1.0), overlap=0.3, class_bias=(0.3, 0.0, -0.4))
TIMES = np.geomspace(0.01, 200.0, 60)


def test_a_class_crosses_though_the_groups_do_not():
    found = tm.fairness.class_leaders(tm.predict(HIDDEN, tm.SGD(lr=0.2), TIMES, curves=("loss", "class_loss")))
    assert not found.groups.changes
    assert found.hidden == (0,)
    assert len(found.same_class[0].changes) == 1
    (crossing,) = found.same_class[0].changes
    assert (crossing.leader_before, crossing.leader_after) == ("-", "+")
    at = tm.predict(HIDDEN, tm.SGD(lr=0.2), [crossing.time], curves=("class_loss",))["class_loss"]
    both = at.isel(time=0).sel({"class": 0}).values
    assert both[0] == pytest.approx(both[1], abs=1e-9)
    assert str(found).startswith(
        "Groups: Group + has the lower loss throughout.\nClass 0 between groups: Group - has the lower class loss until"
    )


def test_equal_groups_have_no_crossings_of_classes():
    equal = tm.theory.class_mixture(3, rho=0.5, overlap=1.0, class_bias=(0.3, 0.0, -0.4))
    found = tm.fairness.class_leaders(tm.predict(equal, tm.SGD(lr=0.2), TIMES, curves=("loss", "class_loss")))
    assert not found.groups.changes
    assert not found.hidden


def test_measured_runs_too():
    runs = tm.simulate(HIDDEN, tm.SGD(lr=0.2), [0.1, 1.0, 5.0, 20.0], d=300, seeds=20)
    found = tm.fairness.class_leaders(runs)
    assert set(found.same_class) == {0, 1, 2}
    assert set(found.classes) == {"+", "-"}
    assert "any two groups" not in str(found)


def test_refusals():
    run = tm.predict(HIDDEN, tm.SGD(lr=0.2), TIMES, curves=("loss", "class_loss"))
    with pytest.raises(ValueError, match="for curves of groups and classes"):
        tm.fairness.class_leaders(run, "loss")
    with pytest.raises(KeyError, match="No curve 'class_accuracy'"):
        tm.fairness.class_leaders(run, "class_accuracy")
    empty = Trajectory({"loss": run["loss"]}, "t", Origin("training"))
    with pytest.raises(KeyError, match="No curve 'class_loss'"):
        tm.fairness.class_leaders(empty)


def counted(gap):
    sign = np.sign(np.where(np.abs(gap) > 1e-10, gap, 0.0))
    sign = sign[sign != 0]
    return int((sign[1:] != sign[:-1]).sum())


def centred_losses(problem, lr, times):
    return centred_class_losses(problem, tm.SGD(lr=lr), times, tm.theory.Sobol(2**10))


def test_the_sums_of_exponentials_are_those_of_predict():
    problem = tm.theory.class_mixture(3, 0.7, (0.5, 1.5), overlap=0.4, class_bias=(0.2, 0.0, -0.3))
    run = tm.predict(problem, tm.SGD(lr=0.3), [0.5, 5.0], ("loss", "class_loss"), quadrature=tm.theory.Sobol(2**10))
    groups, classes = centred_losses(problem, 0.3, np.array([0.5, 5.0]))
    np.testing.assert_allclose(run["loss"], groups, atol=1e-9)
    np.testing.assert_allclose(run["class_loss"], classes, atol=1e-9)


@pytest.mark.parametrize("problems", [40, pytest.param(2000, marks=pytest.mark.slow)])
def test_how_many_crossings_are_possible(problems):
    """Groups: one. A class between groups: two (one rate more). Classes of one group: one (Q cancels)."""
    rng = np.random.default_rng(0)
    groups, same, within, hidden = np.zeros(4), np.zeros(4), np.zeros(4), 0
    for _ in range(problems):
        rho = rng.uniform(0.2, 0.8)
        weight, D = {"+": rho, "-": 1 - rho}, np.exp(rng.uniform(-1.5, 1.2, 2))
        rows = rng.normal(size=(3, 4)), rng.normal(size=(3, 4))
        mixed = rng.uniform(-1, 1)
        teachers = {
            "+": dict(enumerate(rows[0])),
            "-": dict(enumerate(mixed * rows[0] + np.sqrt(1 - mixed**2) * rows[1])),
        }
        bias = {g: dict(enumerate(rng.normal(size=3) * 0.5)) for g in "+-"}
        zero = {g: np.zeros(4) for g in "+-"}
        problem = tm.theory.ClassMixture(weight, dict(zip("+-", D, strict=True)), zero, teachers, bias)
        p = np.array([rho, 1 - rho])
        lr = rng.uniform(0.05, 0.9) * 2 * (p @ D) / (p @ D**2)
        whole, parts = centred_losses(problem, lr, np.geomspace(1e-3, 60.0, 400) / lr)
        count = counted(whole[:, 0] - whole[:, 1])
        groups[count] += 1
        own = [counted(parts[:, 0, c] - parts[:, 1, c]) for c in range(3)]
        hidden += count == 0 and max(own) > 0
        for each in own:
            same[each] += 1
        for g in range(2):
            for a, b in ((0, 1), (0, 2), (1, 2)):
                within[counted(parts[:, g, a] - parts[:, g, b])] += 1
    assert groups[2:].sum() == 0
    assert same[3:].sum() == 0
    assert within[2:].sum() == 0
    assert hidden > problems / 50
    print(groups, same, within, hidden)
