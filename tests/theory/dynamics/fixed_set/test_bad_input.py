"""Wrong settings of training on a fixed set are refused in one sentence each."""

import pytest

from tiltmeter import SGD, Fixed, Flow, predict, teacher_mixture
from tiltmeter.theory import Descent
from tiltmeter.theory.problem.starts import Overlaps
from tiltmeter.theory.problem.students import Network

CENTRED = teacher_mixture(rho=0.8, variance=(0.5, 1.5), overlap=0.5)
BAD = {
    "samples": (lambda: Fixed(0.0), ValueError, r"`samples` should be positive. Found samples = 0"),
    "flips": (
        lambda: Fixed(1.0, {"+": 1.2}),
        ValueError,
        r"`flips\['\+'\]` should lie between 0 and 1. Found .* = 1.2",
    ),
    "flips of whom": (
        lambda: predict(CENTRED, Flow(1.0), [1.0], data=Fixed(1.0, {"x": 0.1})),
        KeyError,
        "`flips` names the unknown group 'x'",
    ),
    "replace": (lambda: Fixed(1.0, replace=1), TypeError, "`replace` should be True or False"),
    "data": (lambda: predict(CENTRED, Flow(1.0), [1.0], data=2.0), TypeError, r"`data` should be a Fixed\(samples="),
    "descent online": (lambda: predict(CENTRED, Descent(0.1), [1]), ValueError, "Descent needs a training set"),
    "half a step": (
        lambda: predict(CENTRED, Descent(0.1), [1.5], data=Fixed(2.0)),
        ValueError,
        "`times` should be whole numbers of steps for Descent. Found 1.5",
    ),
    "batch": (
        lambda: predict(CENTRED, SGD(0.1, batch=2), [1.0], data=Fixed(2.0)),
        ValueError,
        r"no exact solution for shuffled epochs with batch = 2, only .* `simulate` with method=Direct\(\)",
    ),
    "momentum": (
        lambda: predict(CENTRED, SGD(0.1, momentum=0.5), [1.0], data=Fixed(2.0)),
        ValueError,
        r"SGD with momentum on a fixed set. Use Descent\(lr, momentum\)",
    ),
    "nesterov": (
        lambda: predict(CENTRED, SGD(0.1, momentum=0.5, nesterov=True), [1.0], data=Fixed(2.0)),
        ValueError,
        "SGD with nesterov on a fixed set",
    ),
    "trained bias": (
        lambda: predict(CENTRED, SGD(0.1, train_bias=True), [1.0], data=Fixed(2.0, replace=True)),
        ValueError,
        "SGD with a trained bias on a fixed set",
    ),
    "schedule": (
        lambda: predict(CENTRED, SGD(lambda t: 0.1), [1.0], data=Fixed(2.0)),
        ValueError,
        "SGD with a schedule on a fixed set",
    ),
    "training error of SGD": (
        lambda: predict(CENTRED, SGD(0.1), [1.0], ("training_error",), data=Fixed(2.0)),
        ValueError,
        "no exact `training_error` for SGD",
    ),
    "weights by label": (
        lambda: predict(CENTRED, Flow(0.1, weights={("+", 1): 2.0}), [1.0], data=Fixed(2.0)),
        ValueError,
        r"per \(group, label\), .* use `simulate`",
    ),
    "network": (
        lambda: predict(CENTRED, SGD(0.1), [1.0], student=Network(2), data=Fixed(2.0)),
        ValueError,
        "no exact solution for networks on a fixed set. Use `simulate`",
    ),
    "replace of flow": (
        lambda: predict(CENTRED, Flow(0.1), [1.0], data=Fixed(2.0, replace=True)),
        ValueError,
        "`replace` is about batches of SGD; Flow uses all examples",
    ),
    "bias that is not trained": (
        lambda: predict(CENTRED, Flow(0.1, start=Overlaps(bias=0.3)), [1.0], data=Fixed(2.0)),
        ValueError,
        "`start` gives a bias that is not trained",
    ),
    "too large for replacement": (
        lambda: predict(CENTRED, SGD(1.8), [1.0], data=Fixed(2.0, replace=True)),
        ValueError,
        "`lr` should lie below the stability limit 1.75364 .* Found lr = 1.8",
    ),
    "too large for shuffles": (
        lambda: predict(CENTRED, SGD(2.1), [1.0], data=Fixed(2.0)),
        ValueError,
        r"`lr` should lie below the stability limit 2\.03",
    ),
    "too large for descent": (
        lambda: predict(CENTRED, Descent(1.3), [1], data=Fixed(2.0)),
        ValueError,
        "`lr` should lie below the stability limit",
    ),
    "too many epochs": (
        lambda: predict(CENTRED, SGD(0.5), [200.0], data=Fixed(2.0)),
        ValueError,
        r"The last time should be at most .* epochs\) .* Fixed\(..., replace=True\)",
    ),
    "law of flow": (
        lambda: Flow(1.0, interventions=()),
        TypeError,
        r"Flow has no interventions. Use SGD\(lr=..., interventions=\(law,\)\): `predict` follows it on fresh data",
    ),
    "schedule of flow": (lambda: Flow(lambda t: 0.1), TypeError, "Flow has no schedules"),
    "momentum of descent": (lambda: Descent(0.1, momentum=1.0), ValueError, r"`momentum` should lie in \[0, 1\)"),
    "noise of flow": (
        lambda: predict(CENTRED, Flow(0.1), [1.0], ("batch_noise",), data=Fixed(2.0)),
        ValueError,
        "`batch_noise` is about batches of SGD",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name):
    ask, kind, words = BAD[name]
    with pytest.raises(kind, match=words):
        ask()
