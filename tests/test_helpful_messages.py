"""Messages that say what to do next, for mistakes that newcomers made."""

import warnings

import numpy as np
import pytest

import tiltmeter as tm
from tiltmeter.interventions import GroupDRO, Tilted

PROBLEM = tm.teacher_mixture(rho=0.75, variance=(0.5, 1.5), overlap=0.7)


@pytest.mark.parametrize(
    ("where", "name", "sentence"),
    [
        (tm.interventions, "GroupDro", "Did you mean GroupDRO?"),
        (tm, "first_leader", "Did you mean tiltmeter.theory.first_leader?"),
        (tm, "predcit", "Did you mean predict?"),
    ],
)
def test_a_name_that_is_nearly_right(where, name, sentence):
    with pytest.raises(AttributeError) as raised:
        getattr(where, name)
    assert sentence in str(raised.value)


def test_a_name_like_nothing_gets_no_suggestion():
    with pytest.raises(AttributeError, match=r"has no 'qqqq'\.$"):
        tm.qqqq  # noqa: B018


def test_times_show_what_is_wrong():
    with pytest.raises(ValueError, match=r"should increase strictly\. Found 1 after 3\."):
        tm.predict(PROBLEM, tm.SGD(lr=0.2), [3.0, 1.0])
    with pytest.raises(ValueError, match=r"should not be negative\. Found -1\."):
        tm.predict(PROBLEM, tm.SGD(lr=0.2), [3.0, 1.0, -1.0])


def test_simulate_without_a_dimension():
    with pytest.raises(
        TypeError, match=r"needs d, the dimension of the inputs: simulate\(problem, sgd, times, d=500\)"
    ):
        tm.simulate(PROBLEM, tm.SGD(lr=0.2), [1.0])


def test_a_law_on_a_fixed_set_is_sent_to_a_simulation_that_works():
    sgd = tm.SGD(lr=0.2, interventions=(GroupDRO(3.0, by="draws"),))
    with pytest.raises(ValueError, match=r'Use `simulate` with the same data, method=Direct\(\) and by="weights"'):
        tm.predict(PROBLEM, sgd, [1.0], data=tm.Fixed(2.0))
    weighed = tm.SGD(lr=0.2, interventions=(GroupDRO(3.0, by="weights"),))
    with pytest.raises(ValueError, match=r"method=Direct\(\)\.$"):
        tm.predict(PROBLEM, weighed, [1.0], data=tm.Fixed(2.0))
    run = tm.simulate(PROBLEM, weighed, [0.1], d=20, data=tm.Fixed(2.0), method=tm.theory.Direct())
    assert np.isfinite(run["loss"].values).all()


@pytest.mark.parametrize(
    ("law", "noisy"),
    [
        (GroupDRO(30.0, proportional=100.0, memory=30), True),
        (Tilted(50.0), True),
        (GroupDRO(2.0, 4.0, memory=40), False),
        (GroupDRO(30.0, memory=30), False),
        (Tilted(3.0), False),
    ],
)
def test_pulls_that_are_mostly_noise_are_announced(law, noisy):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        tm.simulate(PROBLEM, tm.SGD(lr=0.2, interventions=(law,)), [0.1], d=50)
    assert any("mostly noise" in str(one.message) for one in told) is noisy
    assert (
        any("This assumes that the losses of single points scatter by about 0.5." in str(one.message) for one in told)
        is noisy
    )
