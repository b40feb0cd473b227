import json
import math

import numpy as np
import pytest

from tiltmeter.record import When, at, every, log_spaced

CHOICES = [
    every(1),
    every(7),
    log_spaced(1),
    log_spaced(3),
    log_spaced(20),
    log_spaced(1000),
    at([5]),
    at([9, 0, 70, 9]),
]


@pytest.mark.parametrize("when", CHOICES, ids=repr)
def test_asking_step_by_step_and_listing_agree(when):
    assert when.steps(3000) == [step for step in range(3001) if when(step)]
    for until in (0, 1, 9, 10, 99, 100, 101):
        assert when.steps(until) == [step for step in when.steps(3000) if step <= until]


@pytest.mark.parametrize("when", CHOICES, ids=repr)
def test_it_survives_json_and_its_own_repr(when):
    assert When.from_json(json.loads(json.dumps(when.to_json()))) == when
    assert eval(repr(when), {"every": every, "log_spaced": log_spaced, "at": at}) == when
    assert hash(eval(repr(when))) == hash(when)


def test_log_spaced_is_the_set_it_says():
    for per_decade in (1, 2, 5, 20, 100):
        exact = {0} | {round(10 ** (k / per_decade)) for k in range(7 * per_decade + 1)}
        assert log_spaced(per_decade).steps(10**7) == sorted(exact)


def test_log_spaced_does_not_drift():
    when = log_spaced(20)
    assert all(when(10**k) for k in range(16))
    for k in range(12 * 20):
        step = round(10 ** (k / 20))
        assert when(step)
        if step > 50:
            assert not when(step + 1)
            assert not when(step - 1)


def test_log_spaced_is_evenly_spaced_on_a_log_axis():
    late = np.array([step for step in log_spaced(20).steps(10**6) if step >= 10**4])
    assert np.allclose(np.diff(np.log10(late)), 1 / 20, atol=1e-4)


def test_they_are_values():
    assert every(3) == every(3) != every(4)
    assert every(3) != log_spaced(3)
    assert at([3, 1, 3]) == at((1, 3)) == at(np.array([3, 1])) == at({1, 3})
    assert len({every(2), every(2), at([2])}) == 2
    with pytest.raises(AttributeError):
        every(3).n = 4


def test_numpy_steps_are_steps():
    assert every(np.int64(5))(np.int32(10)) is True
    assert json.dumps(at(np.arange(3)).to_json()) == '{"at": [0, 1, 2]}'


@pytest.mark.parametrize(
    ("make", "kind", "sentence"),
    [
        (lambda: every(0), ValueError, "`n` should be at least 1. Found n = 0."),
        (lambda: every(-3), ValueError, "`n` should be at least 1. Found n = -3."),
        (lambda: every(2.0), TypeError, "`n` should be an integer. Found n = 2.0."),
        (lambda: every(True), TypeError, "`n` should be an integer. Found n = True."),
        (lambda: every("5"), TypeError, "`n` should be an integer. Found n = '5'."),
        (lambda: log_spaced(0), ValueError, "`per_decade` should be at least 1. Found per_decade = 0."),
        (lambda: log_spaced(math.nan), TypeError, "`per_decade` should be an integer."),
        (lambda: at([1, -2]), ValueError, "`steps` should not be negative: steps count updates. Found steps = -2."),
        (lambda: at([1, 2.5]), TypeError, "`steps` should be an integer. Found steps = 2.5."),
        (lambda: at(5), TypeError, "`steps` should be a list of integers. Found steps = 5."),
        (lambda: at("15"), TypeError, "`steps` should be a list of integers. Found steps = '15'."),
        (lambda: at([]), ValueError, "`steps` should name at least one step. Found none."),
        (lambda: every(2)(-1), ValueError, "`step` should not be negative"),
        (lambda: log_spaced(2)(0.5), TypeError, "`step` should be an integer. Found step = 0.5."),
        (lambda: at([2]).steps(-1), ValueError, "`until` should not be negative"),
        (lambda: When.from_json({"sometimes": 3}), ValueError, 'should read like {"every": 10}'),
        (lambda: When.from_json({"every": 3, "at": [1]}), ValueError, 'should read like {"every": 10}'),
        (lambda: When.from_json([3]), ValueError, 'should read like {"every": 10}'),
        (lambda: When.from_json({"every": 0}), ValueError, "`n` should be at least 1"),
    ],
)
def test_bad_choices_are_refused(make, kind, sentence):
    with pytest.raises(kind) as caught:
        make()
    assert sentence in str(caught.value)
