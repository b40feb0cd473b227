"""SGD, starts and schedules: values, JSON, and every bad setting."""

import json
import math

import numpy as np
import pytest
import xarray as xr

from tiltmeter import SGD
from tiltmeter.schedules import Cosine, PowerDecay, Steps, Warmup, breaks_of, schedule_from_json, schedule_to_json
from tiltmeter.theory.problem.starts import Overlaps, Random, Zero

SCHEDULES = [PowerDecay(0.5, 4.0), Cosine(0.4, 10.0, 0.1), Warmup(0.3, 2.0), Steps((0.0, 3.0), (0.3, 0.1))]


@pytest.mark.parametrize(
    "sgd",
    [
        SGD(lr=0.1),
        SGD(lr=("lr", [0.1, 0.2]), weights={"+": 2.0}, proportions={"+": 0.5, "-": 0.5}),
        SGD(lr=0.1, batch=4, momentum=0.9, nesterov=True, weight_decay=0.1, clip=1.0, train_bias=True),
        SGD(lr=0.1, start=Random(0.5)),
        SGD(lr=0.1, start=Overlaps(M={"+": 0.1}, R={"-": 0.2}, Q=0.5, bias=0.3)),
        SGD(lr=PowerDecay(0.5, 4.0), weights={("f", 1): Steps((0.0, 1.0), (1.0, 2.0))}),
    ],
)
def test_json_round_trip(sgd):
    assert SGD.from_json(json.loads(json.dumps(sgd.to_json()))) == sgd


def test_compares_by_value_and_hashes_unless_a_grid():
    assert SGD(lr=0.1) == SGD(lr=0.1, start=Zero())
    assert hash(SGD(lr=0.1)) == hash(SGD(lr=0.1))
    assert SGD(lr=0.1) != SGD(lr=0.2)
    assert SGD(lr=0.1) != 0.1
    with pytest.raises(TypeError, match="unhashable"):
        hash(SGD(lr=("lr", [0.1])))


def test_to_torch_converts_the_learning_rate():
    assert SGD(lr=0.5, momentum=0.9).to_torch(d=100)["lr"] == 0.005
    with pytest.raises(ValueError, match="one constant learning rate"):
        SGD(lr=Warmup(0.1, 1.0)).to_torch(d=100)


class TestSchedules:
    @pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda s: type(s).__name__)
    def test_json_round_trip(self, schedule):
        assert schedule_from_json(json.loads(json.dumps(schedule_to_json(schedule)))) == schedule

    def test_values(self):
        assert PowerDecay(0.5, 4.0, power=0.5)(12.0) == 0.25
        assert Cosine(0.4, 10.0, 0.1)(10.0) == pytest.approx(0.1)
        assert Cosine(0.4, 10.0, 0.1)(99.0) == pytest.approx(0.1)
        assert Warmup(0.3, 2.0)(1.0) == pytest.approx(0.15)
        assert Steps((0.0, 3.0), (0.3, 0.1))(3.0) == 0.1

    def test_breaks_are_where_a_schedule_is_not_smooth(self):
        assert [breaks_of(s) for s in SCHEDULES] == [(), (10.0,), (2.0,), (3.0,)]
        assert breaks_of(math.sin) == ()

    def test_a_users_function_is_named_but_not_rebuilt(self):
        stored = schedule_to_json(math.sin)
        with pytest.raises(ValueError, match="was a function and cannot be rebuilt"):
            schedule_from_json(stored)


BAD = [
    (lambda: SGD(lr=0.0), ValueError, "`lr` should be positive. Found lr = 0."),
    (lambda: SGD(lr=-0.1), ValueError, "`lr` should be positive. Found lr = -0.1."),
    (lambda: SGD(lr=math.inf), ValueError, "`lr` should be finite"),
    (lambda: SGD(lr="fast"), TypeError, "`lr` should be a number. Found lr = 'fast'."),
    (lambda: SGD(lr=np.array([0.1, 0.2])), TypeError, '`lr` should be a number or carry a dimension name, as in ("lr", values)'),
    (lambda: SGD(lr=xr.DataArray([0.1], dims="time")), ValueError, "a dimension named 'time'"),
    (lambda: SGD(lr=0.1, batch=0), ValueError, "`batch` should be at least 1. Found batch = 0."),
    (lambda: SGD(lr=0.1, batch=1.5), ValueError, "`batch` should be a whole number. Found batch = 1.5."),
    (lambda: SGD(lr=0.1, momentum=1.0), ValueError, "`momentum` should lie in [0, 1). Found momentum = 1.0."),
    (lambda: SGD(lr=0.1, nesterov=True), ValueError, "`nesterov` needs a momentum"),
    (lambda: SGD(lr=0.1, weight_decay=-1), ValueError, "`weight_decay` should be at least 0. Found weight_decay = -1."),
    (lambda: SGD(lr=0.1, clip=0.0), ValueError, "`clip` should be positive, or None"),
    (lambda: SGD(lr=0.1, weights=[1.0, 2.0]), TypeError, "`weights` should map groups to numbers"),
    (lambda: SGD(lr=0.1, weights={"+": -1.0}), ValueError, "`weights['+']` should be at least 0. Found weights['+'] = -1."),
    (lambda: SGD(lr=0.1, start="zero"), TypeError, "`start` should be Zero(), Random(scale) or Overlaps(...). Found str."),
    (lambda: Random(-1.0), ValueError, "`scale` should lie between 0 and 1e150. Found scale = -1.0."),
    (lambda: Overlaps(Q=-0.1), ValueError, "`Q` is a squared length and should not be negative. Found Q = -0.1."),
    (lambda: PowerDecay(0.0, 1.0), ValueError, "`initial` should be a positive number. Found initial = 0.0."),
    (lambda: PowerDecay(0.1, 1.0, power=-1), ValueError, "`power` should not be negative"),
    (lambda: Cosine(0.1, -1.0), ValueError, "`duration` should be a positive number"),
    (lambda: Cosine(0.1, 1.0, -0.1), ValueError, "`final` should not be negative"),
    (lambda: Steps((0.0, 1.0), (0.1,)), ValueError, "Found 2 starts and 1 values."),
    (lambda: Steps((1.0, 0.0), (0.1, 0.2)), ValueError, "`starts` should begin at 0 and increase"),
    (lambda: Steps((0.0,), (-0.1,)), ValueError, "`values` should not be negative"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "kind", "sentence"), BAD, ids=[sentence[:60] for _, _, sentence in BAD])
def test_bad_input_gets_one_clear_sentence(call, kind, sentence):
    with pytest.raises(kind) as raised:
        call()
    assert sentence in str(raised.value)
    assert "\n" not in str(raised.value)
