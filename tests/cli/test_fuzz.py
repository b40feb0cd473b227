"""Files, flags and values at random: each is accepted, or refused in a sentence without a word of Python's."""

import json
import random
import re
import warnings

import numpy as np
import pytest

import tiltmeter as tm
from tiltmeter.cli.toml_file import PROBLEM_FILE, TRAINING_FILE, read_tables
from tiltmeter.recipe.table import recipe_from_table
from tiltmeter.theory.cli.options import build_problem, build_sgd, build_times

PYTHON = re.compile(
    r"Traceback|object is not|has no attribute|positional argument|keyword argument|unhashable|not subscriptable|"
    r"must be (?:real|str|int)|cannot be interpreted|invalid literal|unsupported operand|<class|_[a-z]+\(\)|"
    r"not supported between|could not convert|too large to convert|ufunc|dtype\("
)
FINE = (ValueError, TypeError, KeyError, OSError)
TEXTS = ["", "a", "sgd", "adamw", "square", "Cosine", "digits", "F", "all", "drop", "\\u0000", "ä", "x" * 300]
NUMBERS = [
    "0",
    "1",
    "-1",
    "2",
    "0.5",
    "-0.5",
    "1e-300",
    "1e300",
    "1e160",
    "nan",
    "inf",
    "-inf",
    "9223372036854775807",
    "10",
]


def value(rng, depth=0):
    kind = rng.random()
    if kind < 0.45:
        return rng.choice(NUMBERS)
    if kind < 0.6:
        return json.dumps(rng.choice(TEXTS))
    if kind < 0.7:
        return rng.choice(["true", "false"])
    if kind < 0.74:
        return "2020-01-01"
    if kind < 0.88 and depth < 2:
        return "[" + ", ".join(value(rng, depth + 1) for _ in range(rng.randrange(4))) + "]"
    if depth < 2:
        keys = rng.sample(
            ["a", "b", "kind", "schedule", "class", "lr", "initial", "duration", "M", "Q", "+", "-"], rng.randrange(4)
        )
        return "{" + ", ".join(f"{json.dumps(key)} = {value(rng, depth + 1)}" for key in keys) + "}"
    return rng.choice(NUMBERS)


def file(rng, schema):
    if rng.random() < 0.05:
        return f"{rng.choice([*schema, 'other'])} = {value(rng)}\n"
    lines = []
    for table in rng.sample(list(schema), rng.randrange(1, len(schema) + 1)):
        lines.append(f"[{table}]")
        for key in rng.sample(list(schema[table]), rng.randrange(min(5, len(schema[table])) + 1)):
            lines.append(f"{key} = {value(rng)}")
        if rng.random() < 0.05:
            lines.append(f"unknown = {value(rng)}")
    return "\n".join(lines) + "\n"


def refusal(make):
    """None where it is accepted, else the sentence; anything but a sentence of ours fails."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            make()
    except FINE as error:
        text = str(error.args[0]) if error.args else ""
        assert text
        assert not PYTHON.search(text), text
        assert len(text) < 1000, text
        return text
    return None


def checked(path, text, schema, make):
    path.write_text(text, encoding="utf-8")
    try:
        return refusal(lambda: make(read_tables(path, schema)))
    except BaseException as error:
        raise AssertionError(f"{type(error).__name__}: {error}\n{text}") from error


def problem_of(tables):
    problem = build_problem({k: v for k, v in tables["problem"].items() if k != "case"})
    build_sgd({"lr": 0.1, **tables["sgd"]}, problem)
    build_times(tables["times"])


VALUES = [
    None,
    True,
    -1,
    0,
    1,
    2,
    0.5,
    np.nan,
    np.inf,
    1e300,
    10**400,
    "a",
    b"a",
    [],
    [1],
    [1, 2],
    {},
    {"a": 1},
    (),
    (1, 2),
    np.array([]),
    np.array([[1.0]]),
    object(),
]
CALLS = [
    lambda a, b: tm.SGD(lr=a, batch=b),
    lambda a, b: tm.SGD(lr=0.1, momentum=a, clip=b),
    lambda a, b: tm.SGD(lr=0.1, weight_decay=a, weights=b),
    lambda a, b: tm.teacher_mixture(rho=a, shift=b),
    lambda a, b: tm.teacher_mixture(rho=0.5, variance=a, overlap=b),
    lambda a, b: tm.Recipe(lr=a, steps=b),
    lambda a, b: tm.Recipe(lr=0.1, steps=10, batch=a, clip=b),
    lambda a, b: tm.Recipe(lr=0.1, steps=10, weights=a, order=b),
    lambda a, b: tm.GroupedData(a, b, b),
    lambda a, b: tm.GroupedData(np.zeros((4, 1)), a, b),
    lambda a, b: tm.record.log_spaced(a),
    lambda a, b: tm.record.every(a),
    lambda a, b: tm.record.at(a),
    lambda a, b: tm.record.Origin(a, settings=b),
]


def count(scale, slow):
    return scale if slow else scale // 40


@pytest.mark.parametrize("slow", [False, pytest.param(True, marks=pytest.mark.slow)])
class TestFuzz:
    def test_training_files(self, tmp_path, slow):
        rng = random.Random(1)
        make = lambda tables: recipe_from_table(tables["training"], ("a", "b"))  # noqa: E731
        answers = [
            checked(tmp_path / "t.toml", file(rng, TRAINING_FILE), TRAINING_FILE, make)
            for _ in range(count(8000, slow))
        ]
        assert 0 < sum(answer is not None for answer in answers) <= len(answers)

    def test_problem_files(self, tmp_path, slow):
        rng = random.Random(2)
        for _ in range(count(8000, slow)):
            checked(tmp_path / "p.toml", file(rng, PROBLEM_FILE), PROBLEM_FILE, problem_of)

    def test_values(self, slow):
        rng = random.Random(3)
        for _ in range(count(8000, slow)):
            call, a, b = rng.randrange(len(CALLS)), rng.choice(VALUES), rng.choice(VALUES)
            try:
                refusal(lambda call=call, a=a, b=b: CALLS[call](a, b))
            except BaseException as error:
                raise AssertionError(f"call {call} of {a!r}, {b!r}: {type(error).__name__}: {error}") from error
