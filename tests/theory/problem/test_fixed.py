"""Fixed, Flow and Descent: frozen values that survive JSON."""

import json

import pytest

from tiltmeter import SGD, Fixed, Flow
from tiltmeter.theory import Descent
from tiltmeter.theory.problem.full_batch import training_from_json
from tiltmeter.theory.problem.starts import Overlaps, Random

DATA = [
    Fixed(2.0),
    Fixed(0.5, {"+": 0.1, ("a", "b"): 0.2}, replace=True),
    Fixed(("samples", [0.5, 2.0]), {"-": ("noise", [0.0, 0.1])}),
]
TRAININGS = [
    Flow(1.0),
    Flow(("lr", [0.5, 1.0]), weight_decay=0.1, weights={"+": 2.0}, train_bias=True, start=Random(0.5)),
    Descent(0.3),
    Descent(0.3, momentum=0.8, proportions={"+": 0.5, "-": 0.5}, start=Overlaps(R={"+": 0.1}, Q=0.4)),
    SGD(0.3, batch=4),
]


@pytest.mark.parametrize("data", DATA)
def test_data_round_trip(data):
    assert Fixed.from_json(json.loads(json.dumps(data.to_json()))) == data


@pytest.mark.parametrize("training", TRAININGS)
def test_training_round_trip(training):
    again = training_from_json(json.loads(json.dumps(training.to_json())))
    assert again == training
    assert type(again) is type(training)


def test_they_compare_by_value():
    assert Flow(1.0) == Flow(1.0)
    assert hash(Flow(1.0)) == hash(Flow(1.0))
    assert Flow(1.0) != Descent(1.0)
    assert Descent(1.0) != Descent(1.0, momentum=0.5)
    assert Fixed(2.0) != Fixed(2.0, replace=True)
    assert hash(Fixed(2.0, {"+": 0.1})) == hash(Fixed(2.0, {"+": 0.1}))
    with pytest.raises(TypeError, match="unhashable"):
        hash(DATA[2])


def test_nothing_can_be_changed():
    with pytest.raises(AttributeError):
        Fixed(2.0).samples = 3.0
    with pytest.raises(AttributeError):
        Flow(1.0).lr = 3.0


def test_an_epoch_lasts_as_long_as_there_are_samples():
    assert Fixed(2.0).epochs(5) == 10.0
    assert Fixed(2.0).epochs(5, batch=4) == 2.5


@pytest.mark.parametrize(
    ("make", "kind", "words"),
    [
        (lambda: training_from_json({"training": "adam"}), ValueError, "Unknown training 'adam'"),
        (lambda: Fixed(-1.0), ValueError, "`samples` should be positive. Found samples = -1."),
        (lambda: Fixed([1.0]), TypeError, "`samples` should be a number or carry a dimension name"),
        (lambda: Fixed(1.0, 0.1), TypeError, r"`flips` should map groups to shares, as in \{'-': 0.1\}. Found 0.1."),
        (lambda: Flow(0.0), ValueError, "`lr` should be positive. Found lr = 0."),
        (lambda: Flow(1.0, weights={"+": lambda t: t}), TypeError, "Flow has no schedules"),
        (lambda: Descent(1.0, weight_decay=-1.0), ValueError, "`weight_decay` should be at least 0"),
    ],
)
def test_bad_input(make, kind, words):
    with pytest.raises(kind, match=words):
        make()
