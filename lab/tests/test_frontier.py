"""The frontier of error and unfairness: what is joined, and what is refused."""

import pytest

import tiltmeter as tm
from tiltmeter_lab.theory.frontier import frontier

PROBLEM = tm.teacher_mixture(0.8, 0.0, (0.5, 1.5), 0.5)


def drawn_rows(chart, layer):
    """The rows of one layer, wherever Altair has put them."""
    data = layer["data"]
    return data["values"] if "values" in data else chart["datasets"][data["name"]]


def test_the_frontier_joins_what_nothing_beats():
    coupled = tm.equilibrium(PROBLEM, tm.Square(), 2.0, 0.3, coupling=("coupling", [0.0, 0.1, 0.3, 1.0, 10.0]))
    whole = frontier({"coupled": coupled}, tm.fairness.criteria.AccuracyParity()).to_dict()
    line, marks = (drawn_rows(whole, layer) for layer in whole["layer"])
    assert len(marks) == 5
    for row in line:
        assert not any(other["x"] < row["x"] and other["y"] < row["y"] for other in marks)


def test_an_empty_mapping_is_refused():
    with pytest.raises(ValueError, match="`frontier` needs at least one Dataset"):
        frontier({}, tm.fairness.criteria.AccuracyParity())
