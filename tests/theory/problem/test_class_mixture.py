"""ClassMixture and class_mixture: values, JSON, and every bad input's sentence."""

import numpy as np
import pytest

import tiltmeter as tm
from tiltmeter.theory.samples import samples

GOOD = {
    "weight": {"a": 0.6, "b": 0.4},
    "variance": {"a": 1.0, "b": 2.0},
    "means": {"a": [0, 0], "b": [0, 0]},
    "teachers": {"a": {"x": [1, 0], "y": [0, 1]}, "b": {"x": [1, 0], "y": [0, 1]}},
}


def test_json_and_equality():
    problem = tm.theory.ClassMixture(**GOOD)
    again = tm.theory.ClassMixture.from_json(problem.to_json())
    assert again == problem
    assert hash(again) == hash(problem)
    assert problem != tm.theory.class_mixture(3)
    assert (problem.groups, problem.classes) == (("a", "b"), ("x", "y"))
    with pytest.raises(ValueError, match=r"read-only"):
        problem.means["a"][0] = 1.0
    with pytest.raises(ValueError, match=r"does not describe a ClassMixture"):
        tm.theory.ClassMixture.from_json({"mixture": 1})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"weight": {"a": 0.6, "b": 0.5}}, "sum to one. They sum to 1.1"),
        ({"variance": {"a": 1.0, "b": -2.0}}, r"positive and finite. Found variance\['b'\] = -2"),
        ({"variance": {"a": 1.0}}, "`variance` should name the groups 'a', 'b'"),
        ({"teachers": {g: {"x": [1, 0]} for g in "ab"}}, "at least 2 classes. Found 1"),
        ({"teachers": {"a": GOOD["teachers"]["a"], "b": {"x": [1, 0]}}}, "'b' lacks the classes 'y'"),
        (
            {"teachers": {"a": GOOD["teachers"]["a"], "b": {"x": [1, 0], "y": [0, 1], "z": [1, 1]}}},
            "further classes 'z'",
        ),
        ({"teachers": {g: {"x": [1, 0], "y": [1, 0]} for g in "ab"}}, "have one teacher: one of them never occurs"),
        ({"means": {"a": [0, 0, 0], "b": [0, 0]}}, "one common length. Found"),
        ({"means": {"a": [0, np.nan], "b": [0, 0]}}, "vector of finite numbers"),
        ({"label_bias": {"a": {"x": 0.0}, "b": {"x": 0.0, "y": 0.0}}}, "should name the classes 'x', 'y'"),
    ],
)
def test_bad_input(change, said):
    with pytest.raises((ValueError, KeyError), match=said):
        tm.theory.ClassMixture(**{**GOOD, **change})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"classes": 1}, "`classes` should be an integer of at least 2. Found classes = 1"),
        ({"classes": 2.5}, "Found classes = 2.5"),
        ({"rho": 1.2}, "`rho` should lie strictly between 0 and 1. Found rho = 1.2"),
        ({"overlap": 1.5}, "`overlap` should lie between -1 and 1"),
        ({"similarity": 1.0}, "`similarity` should lie strictly between -1 and 1"),
        ({"shift": -1.0}, "should not be negative"),
        ({"class_bias": (0.0, 1.0)}, "one number for each of the 3 classes. Found 2"),
    ],
)
def test_bad_numbers(given, said):
    with pytest.raises(ValueError, match=said):
        tm.theory.class_mixture(**given)


def test_impossible_geometry():
    gram = np.diag([0.0, 1.0, 1.0])
    gram[1, 2] = gram[2, 1] = 1.3
    with pytest.raises(ValueError, match=r"Impossible geometry: .* smallest eigenvalue is -0.3"):
        tm.theory.ClassMixture.from_gram({"a": 1.0}, {"a": 1.0}, (0, 1), gram)
    with pytest.raises(ValueError, match=r"should be 3 x 3 for 1 groups and 2 classes"):
        tm.theory.ClassMixture.from_gram({"a": 1.0}, {"a": 1.0}, (0, 1), np.eye(2))
    with pytest.raises(ValueError, match=r"finite and symmetric"):
        tm.theory.ClassMixture.from_gram({"a": 1.0}, {"a": 1.0}, (0, 1), np.triu(np.ones((3, 3))))


def test_swapped_classes_look_like_one_another():
    problem = tm.theory.class_mixture(3, overlap=0.9, swapped=True)
    plus, minus = problem.teachers["+"], problem.teachers["-"]
    assert plus[0] @ minus[1] == pytest.approx(0.9)
    assert plus[0] @ minus[0] == pytest.approx(0.0, abs=1e-12)
    assert plus[2] @ minus[2] == pytest.approx(0.9)


def test_samples_have_the_classes_of_the_theory():
    from tiltmeter.theory.population.classes.moments import class_moments

    problem = tm.theory.class_mixture(4, 0.7, (0.5, 1.5), overlap=0.4, shift=1.0, class_bias=(0.3, 0.0, 0.0, -0.5))
    data = samples(problem, d=30, points=40_000)
    assert data.sizes == {"+": 28000, "-": 12000}
    for g, group in enumerate(problem.groups):
        mine = data.y[data.codes == g]
        share = np.bincount(mine.astype(int), minlength=4) / len(mine)
        np.testing.assert_allclose(
            share, class_moments(problem).pi[g], atol=4 * 0.5 / np.sqrt(len(mine)), err_msg=group
        )
