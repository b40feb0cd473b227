"""Hostile calls: each argument of the front doors is replaced by odd values; the answer is a result or one sentence."""

import inspect
import math
import signal
import warnings
from datetime import date
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
import xarray as xr
from torch import nn

import tiltmeter as tm

#: No answer may take longer.
SECONDS = 20
RNG = np.random.default_rng(0)
X = RNG.normal(size=(1000, 3)).astype("float32")
Y, G = (X[:, 0] > 0).astype(int), np.where(X[:, 1] > 0, "a", "b")
FRAME = pd.DataFrame({"p": X[:, 0], "q": X[:, 1], "y": Y, "g": G, "s": 1 / (1 + np.exp(-X[:, 0]))})
TIMES = np.geomspace(0.01, 5, 12)

ODD = [
    *(None, True, False, 0, 1, -1, 2**63, 10**400, 0.0, -0.0, 0.5, 1e-320, 1e308, math.nan, math.inf, -math.inf, 1j),
    *("", "a", "loss", "no such thing", "\ud800", "\x1b[31m", "../../x", "x" * 5000, b"bytes", "1", "nan"),
    *((), [], {}, set(), [None], [[]], ["a", "a"], {"a": None}, {1: 2}, {"a": math.nan}, (1, 2, 3), range(3)),
    *(np.array(3.0), np.zeros(0), np.full(5, np.nan), np.zeros((2, 2, 2)), np.array(["a", None], dtype=object)),
    *(pd.DataFrame(), pd.Series([1, 2]), xr.DataArray([1.0]), torch.zeros(0), torch.tensor(math.nan), nn.Identity()),
    *(object(), int, len, lambda *_: 1, date(2020, 1, 1), Path("/no/such/place"), SimpleNamespace(a=1), iter([1])),
]


#: Arguments that may be functions of the user's.
FUNCTIONS = ("make", "model", "loss", "read", "decide", "deliver")


class Doors:
    """A valid call of each front door, as the function and its named arguments."""

    def __init__(self, folder):
        torch.manual_seed(0)
        self.folder, self.count = folder, 0
        self.train, self.held_out = tm.GroupedData(X, Y, G).split(0.5)
        self.table = pd.DataFrame(self.held_out.x[:, 1:], columns=["q", "r"])
        self.recipe = tm.Recipe(lr=0.1, steps=4, batch=8, loss=tm.Logistic())
        self.run = tm.train(nn.Linear(3, 1), self.train, self.held_out, self.recipe)
        self.saved = folder / "saved"
        tm.save(self.run, self.saved)
        self.problem = tm.teacher_mixture(rho=0.8)
        self.theory = tm.predict(self.problem, tm.SGD(lr=0.1), TIMES)

    def path(self):
        self.count += 1
        return self.folder / str(self.count)

    def calls(self):
        data = {"train": self.train, "held_out": self.held_out, "recipe": self.recipe}
        yield tm.GroupedData, {"x": X, "y": Y, "group": G, "weights": None}
        yield tm.GroupedData.from_frame, {"frame": FRAME, "label": "y", "group": "g", "features": ["p", "q"]}
        yield tm.Question, {"decision": "approved", "outcome": "repaid", "kind": "benefit", "curve": None}
        yield tm.Recipe, {"lr": 0.1, "steps": 4, "batch": 8, "loss": tm.Logistic(), "weights": None, "epochs": None}
        yield tm.Watch, {"when": tm.record.every(2)}
        yield tm.train, {"model": nn.Linear(3, 1), **data, "seed": 0, "to": None, "watch": tm.Watch()}
        yield tm.ensemble, {"make": lambda: nn.Linear(3, 1), **data, "seeds": 2}
        yield tm.forecast, {"model": nn.Linear(3, 1), **data, "budget": None, "method": None, "progress": False}
        yield tm.tangent, {"model": nn.Linear(3, 1), "train": self.train, "held_out": self.held_out, "progress": False}
        yield tm.Probe, {"model": nn.Linear(3, 1), "held_out": self.held_out, "to": None, "loss": tm.Logistic()}
        yield tm.Steering, {"laws": tm.interventions.GroupDRO(0.1), "data": self.train}
        yield tm.leaders, {"run": self.run, "question": None, "groups": None, "level": 0.05}
        yield tm.compare, {"before": self.run, "after": self.run}
        yield tm.gate, {"run": self.run, "gap": 0.1}
        yield tm.scorecard, {"runs": {"a": self.run, "b": self.run}, "curve": "loss"}
        yield tm.agreement, {"a": self.run, "b": self.run}
        yield tm.fairness.stopping, {"trajectory": self.run, "curve": "loss", "within": 0.1}
        yield tm.fairness.why, {"trajectory": self.run}
        yield tm.fairness.calibration, {"trajectory": self.run}
        yield tm.discover, {"run": self.run, "table": self.table, "features": None, "level": 0.05}
        yield tm.report, {"runs": [self.run], "path": self.path().with_suffix(".html"), "title": "a", "question": None}
        yield tm.results.to_model_card, {"run": self.run, "path": self.path().with_suffix(".md")}
        yield tm.predictions.run, {"frame": FRAME, "label": "y", "score": "s", "group": "g"}
        yield tm.save, {"what": self.run, "path": self.path()}
        yield tm.load, {"path": self.saved}
        yield tm.record.check, {"path": self.saved}
        yield tm.stack, {"trajectories": [self.run, self.run]}
        yield tm.teacher_mixture, {"rho": 0.8, "shift": 1.0, "variance": (1.0, 1.0), "overlap": 0.3}
        yield tm.SGD, {"lr": 0.1, "weights": None}
        yield tm.Flow, {"lr": 0.1, "weights": None}
        yield tm.Fixed, {"samples": 2.0, "flips": None}
        yield tm.predict, {"problem": self.problem, "sgd": tm.SGD(lr=0.1), "times": TIMES}
        yield (
            tm.simulate,
            {"problem": self.problem, "sgd": tm.SGD(lr=0.1), "times": TIMES[:3], "d": 20, "seeds": 2},
        )
        yield tm.equilibrium, {"problem": self.problem, "loss": tm.Square(), "samples": 2.0, "ridge": 0.1}
        yield tm.timescales, {"problem": self.problem, "sgd": tm.SGD(lr=0.1)}
        yield tm.drivers, {"problem": self.problem, "sgd": tm.SGD(lr=0.1), "times": TIMES}
        yield tm.record.every, {"n": 5}
        yield tm.record.at, {"steps": [1, 2]}
        yield self.train.split, {"held_out": 0.2, "seed": 0}
        yield (
            tm.advise,
            {
                "model": nn.Linear(3, 1),
                **data,
                "interventions": {"balanced": tm.interventions.Balanced()},
                "progress": False,
            },
        )
        yield tm.record.log_spaced, {"per_decade": 5}


def named(function, given):
    """Every argument that the signature has, under its name, at a valid value; a call with other names is no door."""
    parameters = inspect.signature(function).parameters
    assert set(given) <= set(parameters), f"{function}: {set(given) - set(parameters)}"
    plain = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    defaults = {
        name: one.default for name, one in parameters.items() if one.default is not one.empty and one.kind not in plain
    }
    return {**defaults, **given}


def bound(function, arguments):
    """Call with every argument by name; parameters that have no name by position."""
    parameters = inspect.signature(function).parameters
    first = [arguments[n] for n, one in parameters.items() if one.kind is one.POSITIONAL_ONLY and n in arguments]
    rest = {n: value for n, value in arguments.items() if parameters[n].kind is not parameters[n].POSITIONAL_ONLY}
    return function(*first, **rest)


def one_sentence(error):
    text = str(error.args[0] if isinstance(error, KeyError) and error.args else error)
    return isinstance(error, (ValueError, TypeError, KeyError, OSError, ImportError, OverflowError)) and text.endswith(
        (".", ").", "?")
    )


def attack(doors, odd):
    """Every argument of every door replaced by every odd value: how many calls, and which were no result or sentence."""
    count, bad = 0, []

    def too_long(*_):
        raise RuntimeError(f"no answer within {SECONDS} seconds")

    before = signal.signal(signal.SIGALRM, too_long)
    try:
        for function, given in doors.calls():
            arguments = named(function, given)
            for name in arguments.keys() - {"progress"}:  # anything that is true or false, or a function of the user's
                for value in odd:
                    if name in FUNCTIONS and callable(value):
                        continue  # what it raises is the user's own
                    count += 1
                    signal.alarm(SECONDS)
                    try:
                        with warnings.catch_warnings():
                            warnings.simplefilter("ignore")
                            str(bound(function, {**arguments, name: value}))
                    except Exception as error:
                        if not one_sentence(error):
                            bad.append((function.__name__, name, repr(value)[:60], repr(error)[:160]))
                    finally:
                        signal.alarm(0)
    finally:
        signal.signal(signal.SIGALRM, before)
    return count, bad


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_five_thousand_hostile_calls(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    count, bad = attack(Doors(tmp_path), ODD)
    assert count >= 5000
    assert bad == []


def test_some_hostile_calls(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert attack(Doors(tmp_path), [math.nan, "no such thing", object()])[1] == []


#: What takes any object, and why it is not silent: `check` never raises, it reports; names of columns may be anything.
ANYTHING = {("check", "path")}


def test_no_argument_is_taken_silently(tmp_path, monkeypatch):
    """An object that means nothing anywhere is refused by every argument of every door."""
    monkeypatch.chdir(tmp_path)
    silent = []
    for function, given in Doors(tmp_path).calls():
        arguments = named(function, given)
        for name in arguments:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    str(bound(function, {**arguments, name: object()}))
            except Exception:
                continue
            silent.append((getattr(function, "__name__", type(function).__name__), name))
    assert [one for one in silent if one not in ANYTHING] == []
