"""Schedules of proportions: groups in turn and curricula, in theory and simulation."""

import numpy as np
import pytest

import tiltmeter as tm
from tiltmeter.theory import Direct, moments

PROBLEM = tm.teacher_mixture(0.7, 1.5, (0.5, 1.2), 0.6, (0.5, -0.3), (0.2, -0.4))
TURN = tm.schedules.in_turn({"+": 3.0, "-": 2.0})


def test_phases_are_two_runs_joined():
    """The second phase starts at the overlaps at which the first ended."""
    whole = tm.predict(PROBLEM, tm.SGD(lr=0.3, proportions=TURN), [1.0, 3.0, 4.5])
    only = {g: tm.SGD(lr=0.3, proportions={"+": float(g == "+"), "-": float(g == "-")}) for g in "+-"}
    first = tm.predict(PROBLEM, only["+"], [1.0, 3.0])
    np.testing.assert_allclose(whole["loss"].sel(time=[1.0, 3.0]), first["loss"], atol=1e-10)
    end = first.to_dataset("M", "R", "Q").isel(time=-1)
    groups = ("+", "-")
    start = tm.theory.starts.Overlaps(
        M={g: float(end.M.sel(group=g)) for g in groups},
        R={g: float(end.R.sel(group=g)) for g in groups},
        Q=float(end.Q),
    )
    second = tm.predict(PROBLEM, tm.SGD(lr=0.3, proportions=only["-"].proportions, start=start), [1.5])
    np.testing.assert_allclose(whole["loss"].sel(time=4.5), second["loss"].isel(time=0), atol=1e-10)


def test_a_constant_schedule_is_a_constant():
    shares = {"+": lambda _: 0.4, "-": lambda _: 0.6}
    times = [0.5, 2.0, 8.0]
    changing = tm.predict(PROBLEM, tm.SGD(lr=0.3, proportions=shares), times)
    constant = tm.predict(PROBLEM, tm.SGD(lr=0.3, proportions={"+": 0.4, "-": 0.6}), times)
    np.testing.assert_allclose(changing["loss"], constant["loss"], atol=1e-10)
    other = tm.predict(PROBLEM, tm.SGD(lr=0.3), times)
    assert float(abs(changing["loss"] - other["loss"]).max()) > 0.01


@pytest.mark.parametrize("method", [tm.theory.Chain(), Direct()])
def test_simulation_follows(method):
    d, seeds = (400, 60) if isinstance(method, tm.theory.Chain) else (200, 40)
    smooth = {"+": tm.schedules.Cosine(1.0, 5.0), "-": lambda t: 1.0 - tm.schedules.Cosine(1.0, 5.0)(t)}
    for proportions in (TURN, smooth):
        sgd = tm.SGD(lr=0.3, proportions=proportions)
        runs = tm.simulate(PROBLEM, sgd, [2.0, 5.0], d, seeds, method=method, curves=("loss", "R"))
        theory = tm.predict(PROBLEM, sgd, [2.0, 5.0], curves=("loss", "R"))
        for name in ("loss", "R"):
            error = runs[name].std("seed", ddof=1) / np.sqrt(seeds)
            z = (runs[name].mean("seed") - theory[name]) / error
            assert float(abs(z).max()) < 4.0, name


def test_networks_have_curricula_too():
    from tiltmeter.theory.problem.students import Identity

    student = tm.theory.students.Network(1, Identity(), second_layer=(1.0,))
    sgd = tm.SGD(lr=0.3, proportions=TURN)
    one = tm.predict(PROBLEM, sgd, [1.0, 4.0], curves=("loss",), student=student)["loss"]
    np.testing.assert_allclose(one, tm.predict(PROBLEM, sgd, [1.0, 4.0], curves=("loss",))["loss"], atol=1e-8)


def test_it_is_kept_in_files():
    sgd = tm.SGD(lr=0.3, proportions=TURN)
    assert tm.SGD.from_json(sgd.to_json()) == sgd
    assert sgd.scheduled
    assert sgd.curriculum


def test_refusals():
    with pytest.raises(ValueError, match=r"sum to one. They sum to 0.9 at t = 0"):
        tm.predict(PROBLEM, tm.SGD(lr=0.3, proportions={"+": lambda _: 0.4, "-": 0.5}), [1.0])
    with pytest.raises(ValueError, match=r"should not be negative. Found -0.1"):
        tm.predict(PROBLEM, tm.SGD(lr=0.3, proportions={"+": lambda _: -0.1, "-": 1.1}), [1.0])
    sgd = tm.SGD(lr=0.3, proportions=TURN)
    with pytest.raises(ValueError, match=r"`moments` takes no schedules of `proportions`. Use `simulate` or `predict`"):
        moments(PROBLEM, sgd, [1.0], 50)
    with pytest.raises(ValueError, match=r"fresh examples"):
        tm.simulate(PROBLEM, sgd, [1.0], 50, method=Direct(), data=tm.Fixed(1.0))
    with pytest.raises(ValueError, match=r"constant weights and proportions"):
        tm.timescales(PROBLEM, sgd)
    with pytest.raises(ValueError, match=r"two groups or more"):
        tm.schedules.in_turn({"+": 1.0})
    with pytest.raises(ValueError, match=r"should be a positive number. Found 0"):
        tm.schedules.in_turn({"+": 0.0, "-": 1.0})
