"""Rules: what a table offers, what is left out, and what is refused."""

import numpy as np
import pandas as pd
import pytest

from discovered_runs import people
from tiltmeter.discover.curves import refuse_answers
from tiltmeter.discover.rules import Between, Equals, Missing, Rule, candidates, columns_of


def test_every_kind_of_table_gives_the_same_columns(tmp_path):
    table = people(200)
    frame = pd.DataFrame(table)
    pl, pa = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    file = tmp_path / "people.csv"
    frame.to_csv(file, index=False)
    first = columns_of(table)
    for other in (frame, pl.DataFrame(table), pa.table(frame), file):
        columns = columns_of(other)
        assert list(columns) == list(first)
        assert all(np.array_equal(columns[name], first[name]) for name in first)


def test_a_name_is_the_rule():
    """Whoever applies the name gets the same rows: thresholds are rounded before they are used."""
    table = {"x": np.random.default_rng(0).normal(size=500) * np.pi}
    columns = columns_of(table)
    for condition in candidates(columns).conditions:
        relation, threshold = condition.text.split()[1:]
        by_hand = columns["x"] <= float(threshold) if relation == "<=" else columns["x"] > float(threshold)
        assert np.array_equal(condition.holds(columns), by_hand)


def test_missing_values_are_a_condition_and_never_a_number():
    table = {"age": [20.0, np.nan, 60.0, np.nan] * 50, "job": ["cook", None, "clerk", "cook"] * 50}
    offered = candidates(columns_of(table))
    names = [condition.text for condition in offered.conditions]
    assert "age is missing" in names
    assert "job is missing" in names
    columns = columns_of(table)
    assert not Between("age", most=100.0).holds(columns)[1]
    assert Missing("job").holds(columns).tolist()[:4] == [False, True, False, False]


def test_what_is_left_out_is_named():
    rng = np.random.default_rng(0)
    table = {**people(400), "id": np.arange(400), "name": [f"p{i}" for i in range(400)], "same": [1.0] * 400}
    table["born"] = pd.to_datetime("1990-01-01") + pd.to_timedelta(rng.integers(0, 9000, 400), unit="D")
    left_out = candidates(columns_of(table)).left_out
    assert left_out == {
        "id": "numbers the rows, as an id",
        "name": "400 different words, as of an id",
        "same": "one value only",
        "born": "dates",
    }


def test_equal_conditions_are_offered_once():
    table = {"a": ["x", "y"] * 100, "b": ["x", "y"] * 100, "c": [0, 1] * 100}
    offered = candidates(columns_of(table))
    assert len(offered.conditions) == offered.holds.shape[1] == 2


def test_json_round_trip():
    rule = Rule.of([Between("age", 30.0, 50.0), Equals("job", "cook"), Missing("town")])
    again = Rule.from_json(rule.to_json())
    assert again == rule
    assert again.name == "30 < age <= 50 and job = cook and town is missing"


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ("label", "besides the label. Found the label in column 'extra'"),
        ("finer label", "Found the label in column 'extra'"),
        ("noisy label", "Found the label in column 'extra'"),
        ("loss", "Found the order of its losses in column 'extra'"),
        ("score", "Found the order of its scores in column 'extra'"),
        ("decision", "Found its decisions in column 'extra'"),
    ],
)
def test_answers_are_no_columns(column, message):
    rng = np.random.default_rng(0)
    labels = rng.random(600) < 0.4
    loss, score, decisions = rng.exponential(size=600), rng.random(600), rng.random(600) < 0.5
    extra = {
        "label": np.where(labels, "yes", "no"),
        "finer label": np.where(labels, rng.choice(["50-60", "60-80"], 600), rng.choice(["0-20", "20-50"], 600)),
        "noisy label": labels + 0.1 * rng.random(600),
        "loss": np.log(loss) ** 3,
        "score": np.exp(score),
        "decision": decisions,
    }[column]
    columns = columns_of({**people(600), "extra": extra})
    with pytest.raises(ValueError, match="leave it out") as refusal:
        refuse_answers(columns, labels, decisions, {"losses": loss, "scores": score})
    assert message in str(refusal.value)
    refuse_answers(columns_of(people(600)), labels, decisions, {"losses": loss, "scores": score})


def test_tables_that_cannot_be_read():
    with pytest.raises(TypeError, match=r"`table` should be a table of pandas, polars or Arrow.*Found int"):
        columns_of(3)
    with pytest.raises(ValueError, match=r"`table` should have columns of equal length. Found 2 in 'a', 1 in 'b'"):
        columns_of({"a": [1, 2], "b": [1]})
    with pytest.raises(KeyError, match="`table`: no column 'age'"):
        columns_of({"a": [1, 2]}, ["age"])
    with pytest.raises(TypeError, match=r"Column 'job' of `table` should hold words.*Found numbers"):
        Equals("job", "cook").holds(columns_of({"job": [1, 2]}))
