"""Questions about fixed training sets: what memorisation moves, who should stop when, and what makes the gap."""

import numpy as np
import pytest

import tiltmeter as tm
from tiltmeter import SGD, Fixed, Flow, drivers, load, predict, save, teacher_mixture
from tiltmeter.fairness import stopping
from tiltmeter.theory import Descent, memorisation

CENTRED = teacher_mixture(rho=0.8, variance=(0.5, 1.5), overlap=0.5)
TIMES = np.geomspace(0.01, 100.0, 60)


def shifted(overlap):
    return teacher_mixture(rho=0.7, shift=4.0, variance=(0.1, 1.0), overlap=0.9, shift_overlap=(0.149, overlap))


def test_a_crossing_moves():
    found = memorisation(CENTRED, Flow(1.0), TIMES, Fixed(2.0))
    (change,) = found.changes
    assert change.what == "moved"
    assert (change.online, change.fixed) == pytest.approx((0.8066, 0.3473), abs=1e-4)
    assert str(found).endswith("So the change to + moves from t = 0.8066 to 0.3473.")


def test_crossings_appear_and_disappear():
    made = memorisation(shifted(0.188), Flow(1.0), TIMES, Fixed(4.0))
    assert sorted(change.what for change in made.changes) == ["created", "moved"]
    gone = memorisation(shifted(-0.188), Flow(1.0), TIMES, Fixed(4.0))
    assert [change.what for change in gone.changes] == ["removed", "removed"]
    assert "disappears" in str(gone)
    assert "appears" in str(made)


def test_equal_groups_have_nothing_to_move():
    found = memorisation(teacher_mixture(variance=(1.0, 1.0), overlap=0.5), Flow(1.0), TIMES, Fixed(2.0))
    assert found.changes == ()
    assert "no crossing on either" in str(found)


def test_it_takes_flows_and_sets_only():
    with pytest.raises(TypeError, match="`memorisation` compares gradient flows"):
        memorisation(CENTRED, SGD(0.1), TIMES, Fixed(2.0))
    with pytest.raises(TypeError, match=r"`data` should be a Fixed\(samples="):
        memorisation(CENTRED, Flow(0.1), TIMES, 2.0)


def test_every_group_stops_at_its_own_time():
    advice = stopping(predict(CENTRED, Flow(1.0), np.geomspace(0.05, 100.0, 400), data=Fixed(2.0)))
    best = {one.group: one for one in advice.by_group}
    assert best["+"].time / best["-"].time > 4.0
    assert best["+"].others_pay > 0.1 > best["-"].others_pay > 0.0
    assert "Each group would stop at its own time" in str(advice)
    same = teacher_mixture(variance=(1.0, 1.0), overlap=0.5)
    assert "of its own" not in str(stopping(predict(same, Flow(1.0), TIMES, data=Fixed(2.0))))


@pytest.mark.parametrize("training", [Flow(1.0), pytest.param(SGD(0.3), marks=pytest.mark.slow), Descent(0.3)])
def test_drivers_add_up_on_a_fixed_set(training):
    evaluations = [1.0, 4.0]
    split = drivers(shifted(0.188), training, evaluations, data=Fixed(2.0))
    whole = predict(shifted(0.188), training, evaluations, ("loss_gap",), data=Fixed(2.0))["loss_gap"].values[:, 0]
    parts = sum(split[name].values for name in ("shift", "variance", "representation", "rest"))
    np.testing.assert_allclose(parts, whole, atol=1e-9)
    assert split.clock == ("step" if isinstance(training, Descent) else "t")


@pytest.mark.parametrize("data", [pytest.param(Fixed(2.0), marks=pytest.mark.slow), Fixed(2.0, {"-": 0.1})])
def test_a_loaded_trajectory_is_followed_as_exactly_as_a_fresh_one(tmp_path, data):
    fresh = predict(CENTRED, Flow(1.0), TIMES, ("loss",), data=data)
    save(fresh, tmp_path / "run")
    loaded = load(tmp_path / "run")
    assert tm.leaders(loaded, "loss").changes[0].time == pytest.approx(
        tm.leaders(fresh, "loss").changes[0].time, rel=1e-9
    )
    assert [phase.driver for phase in tm.leaders(loaded, "loss").phases] == [
        phase.driver for phase in tm.leaders(fresh, "loss").phases
    ]
    assert tm.leaders(loaded, "loss").phases[0].driver == "variance"


def test_descent_is_known_after_whole_steps_only():
    run = predict(CENTRED, Descent(0.1), np.arange(1, 60), ("loss",), data=Fixed(2.0))
    assert run.evaluate is None
    (found,) = tm.leaders(run, "loss").changes
    assert found.low < found.time < found.high
