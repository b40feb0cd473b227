"""Mixture, teacher_mixture and the named cases: values, grids and every impossible geometry."""

import json
import math

import numpy as np
import pytest
import xarray as xr

from tiltmeter import SGD, predict, teacher_mixture
from tiltmeter.theory import Mixture, cases

CENTRED = np.diag([0.0, 0.0, 1.0, 1.0])
HALF = {"a": 0.5, "b": 0.5}
ONE = {"a": 1.0, "b": 1.0}


def gram(**entries):
    """The centred geometry with some entries changed, as in gram(mt=0.5) for mean a . teacher a."""
    matrix = CENTRED.copy()
    for (i, j), value in entries.get("at", {}).items():
        matrix[i, j] = matrix[j, i] = value
    return matrix


class TestValues:
    def test_compares_by_value_and_hashes(self):
        one, two = teacher_mixture(rho=0.8), teacher_mixture(rho=0.8)
        assert one == two
        assert hash(one) == hash(two)
        assert one != teacher_mixture(rho=0.7)
        assert one != "mixture"

    def test_is_immutable(self):
        with pytest.raises(AttributeError, match="immutable"):
            teacher_mixture().weight = None

    def test_json_round_trip(self):
        problem = teacher_mixture(0.7, 1.5, (0.5, 1.2), 0.6, (0.5, -0.3), (0.2, -0.4))
        assert Mixture.from_json(json.loads(json.dumps(problem.to_json()))) == problem

    def test_json_round_trip_of_a_grid_and_tuple_labels(self):
        women, men = ("f", 1), ("m", 2)
        problem = Mixture({women: ("share", [0.2, 0.6]), men: ("share", [0.8, 0.4])}, {women: 1.0, men: 2.0}, CENTRED)
        back = Mixture.from_json(json.loads(json.dumps(problem.to_json())))
        assert back == problem
        assert back.groups == (women, men)

    def test_a_grid_is_unhashable_and_compares_by_value(self):
        make = lambda: teacher_mixture(rho=("rho", [0.2, 0.8]))  # noqa: E731
        assert make() == make()
        with pytest.raises(TypeError, match="unhashable"):
            hash(make())

    def test_replace_changes_only_what_is_named(self):
        problem = teacher_mixture(0.7, 1.0, (0.5, 1.0), 0.5)
        changed = problem.replace(variance={"+": 2.0, "-": 3.0})
        assert changed.variance.values.tolist() == [2.0, 3.0]
        assert changed.weight.equals(problem.weight)
        with pytest.raises(KeyError, match="no colour"):
            problem.replace(colour=1)

    def test_from_vectors_equals_the_gram_of_these_vectors(self):
        rng = np.random.default_rng(1)
        means, teachers = rng.normal(size=(2, 5)), rng.normal(size=(2, 5))
        unit = teachers / np.linalg.norm(teachers, axis=1, keepdims=True)
        problem = Mixture.from_vectors(
            HALF, ONE, dict(zip("ab", means, strict=True)), dict(zip("ab", teachers, strict=True))
        )
        stacked = np.concatenate([means, unit])
        assert problem.gram.values == pytest.approx(stacked @ stacked.T)

    def test_repr_names_groups_and_grid(self):
        assert "over rho: 2" in repr(teacher_mixture(rho=("rho", [0.2, 0.8])))
        assert "+ (weight 0.2 .. 0.8" in repr(teacher_mixture(rho=("rho", [0.2, 0.8])))


class TestTeacherMixture:
    def test_thresholds_are_what_was_asked(self):
        problem = teacher_mixture.from_thresholds((0.471, -0.188), 0.7, 4.0, (0.1, 1.0), 0.9)
        overlaps = np.diag(problem.gram.values[:2, 2:])  # mean_c . teacher_c = c A_c
        assert overlaps / np.sqrt([0.1, 1.0]) == pytest.approx([0.471, -0.188])

    def test_mean_labels_are_what_was_asked(self):
        problem = teacher_mixture.from_mean_labels((0.471, -0.188), 0.7, 4.0, (0.1, 1.0), 0.9)
        thresholds = np.diag(problem.gram.values[:2, 2:]) / np.sqrt([0.1, 1.0])
        assert [math.erf(a / math.sqrt(2)) for a in thresholds] == pytest.approx([0.471, -0.188])

    def test_readings_h2_and_h7_of_the_notes(self):
        h2 = teacher_mixture.from_thresholds((0.471, -0.188), 0.7, 4.0, (0.1, 1.0), 0.9).gram.values[0, 2:]
        h7 = teacher_mixture.from_mean_labels((0.471, -0.188), 0.7, 4.0, (0.1, 1.0), 0.9).gram.values[0, 2:]
        assert h2.round(3).tolist() == [0.149, 0.188]
        assert h7.round(3).tolist() == [0.199, 0.238]

    @pytest.mark.parametrize("name", ["centred_crossing", "three_phases", "spurious_correlation", "no_bias"])
    def test_cases_say_what_to_expect(self, name):
        case = getattr(cases, name)
        assert len(case.__doc__) > 60
        assert predict(*case(), curves=("loss",))["loss"].notnull().all()


class TestGrids:
    def test_every_number_may_be_a_grid_and_each_point_equals_its_own_problem(self):
        rho, shift = np.array([0.3, 0.6]), np.array([0.5, 1.0, 2.0])
        problem = teacher_mixture(
            rho=("rho", rho), shift=("shift", shift), variance=(0.5, ("rho", [1.0, 2.0])),
            overlap=0.6, shift_overlap=(0.2, 0.1), label_bias=(0.1, 0.0),
        )  # fmt: skip
        lr = xr.DataArray([0.1, 0.3], dims="lr", coords={"lr": [0.1, 0.3]})
        times = [0.0, 1.0, 10.0]
        whole = predict(problem, SGD(lr=lr), times)
        assert set(whole["error"].dims) == {"time", "group", "rho", "shift", "lr"}
        for i, r in enumerate(rho):
            for s in shift:
                single = teacher_mixture(r, s, (0.5, [1.0, 2.0][i]), 0.6, (0.2, 0.1), (0.1, 0.0))
                for eta in lr.values:
                    alone = predict(single, SGD(lr=float(eta)), times)
                    for name in alone:
                        part = whole[name].sel(rho=r, shift=s, lr=eta).transpose(*alone[name].dims)
                        np.testing.assert_allclose(part.values, alone[name].values, rtol=1e-11, atol=1e-13)

    def test_a_named_numpy_array_labels_itself(self):
        curve = predict(teacher_mixture(rho=("rho", [0.2, 0.8])), SGD(lr=0.1), [1.0])["loss"]
        assert curve.coords["rho"].values.tolist() == [0.2, 0.8]

    def test_an_unlabelled_dimension_counts(self):
        problem = teacher_mixture(rho=("case", [0.2, 0.8]), variance=(1.0, ("case", [1.0, 3.0])))
        curve = predict(problem, SGD(lr=("case", [0.1, 0.2])), [1.0])["loss"]
        assert curve.coords["case"].values.tolist() == [0, 1]
        alone = predict(teacher_mixture(0.8, variance=(1.0, 3.0)), SGD(lr=0.2), [1.0])["loss"]
        np.testing.assert_allclose(curve.sel(case=1), alone, rtol=1e-12)

    def test_grids_that_do_not_fit_are_refused(self):
        one = xr.DataArray([0.2, 0.8], dims="case", coords={"case": [0, 1]})
        two = xr.DataArray([0.2, 0.8], dims="case", coords={"case": [5, 6]})
        with pytest.raises(ValueError, match="do not share their labels"):
            teacher_mixture(rho=one, shift=two)
        with pytest.raises(ValueError, match="do not share"):
            teacher_mixture(rho=("case", [0.2, 0.8]), shift=("case", [0.1, 0.2, 0.3]))
        with pytest.raises(ValueError, match="thresholds and variances do not share"):
            teacher_mixture.from_thresholds((one, 0.0), variance=(two, 1.0))
        with pytest.raises(ValueError, match="problem and SGD do not share"):
            predict(teacher_mixture(rho=one), SGD(lr=two), [1.0])


BAD = [
    (lambda: teacher_mixture(rho=1.2), ValueError, "`rho` should lie strictly between 0 and 1. Found rho = 1.2."),
    (lambda: teacher_mixture(rho=("r", [0.5, 0.0])), ValueError, "Found rho = 0."),
    (lambda: teacher_mixture(rho="half"), TypeError, "`rho` should be a number. Found rho = 'half'."),
    (lambda: teacher_mixture(rho=[0.2, 0.8]), TypeError, "carry a dimension name"),
    (lambda: teacher_mixture(rho=math.nan), ValueError, "`rho` should be finite. Found rho = nan."),
    (lambda: teacher_mixture(rho=True), TypeError, "`rho` should be a number"),
    (lambda: teacher_mixture(rho=("time", [0.5])), ValueError, "a dimension named 'time', which curves use themselves"),
    (lambda: teacher_mixture(rho=("group", [0.5])), ValueError, "a dimension named 'group'"),
    (lambda: teacher_mixture(rho=("seed", [0.5])), ValueError, "a dimension named 'seed'"),
    (lambda: teacher_mixture(shift=-1.0), ValueError, "`shift` is a squared length and should not be negative. Found shift = -1."),
    (lambda: teacher_mixture(overlap=1.5), ValueError, "`overlap` should lie between -1 and 1. Found overlap = 1.5."),
    (lambda: teacher_mixture(variance=2.0), TypeError, "`variance` should be a pair, one number for '+' and one for '-'"),
    (lambda: teacher_mixture(variance=(1.0, 0.0)), ValueError, "`variance` should be positive for every group. Found 0."),
    (lambda: teacher_mixture(variance=(1.0, math.inf)), ValueError, "`variance` should be finite"),
    (
        lambda: teacher_mixture(shift=0.1, shift_overlap=(0.5, 0.0)),
        ValueError,
        "the overlap of mean + and teacher + is 0.5, but their lengths allow at most 0.316228 (too large by 0.184)",
    ),
    (
        lambda: teacher_mixture(shift=1.0, overlap=-0.9, shift_overlap=(0.8, 0.8)),
        ValueError,
        "should be positive semi-definite; its smallest eigenvalue is -",
    ),
    (lambda: teacher_mixture.from_mean_labels((1.0, 0.0)), ValueError, "`mean_labels` should lie strictly between -1 and 1"),
    (lambda: Mixture({}, {}, []), TypeError, "`weight` should map every group to its share"),
    (lambda: Mixture({"a": 0.5, "b": 0.6}, ONE, CENTRED), ValueError, "They sum to 1.1, off by +0.1."),
    (lambda: Mixture({"a": 1.5, "b": -0.5}, ONE, CENTRED), ValueError, "`weight` should be positive for every group. Found -0.5."),
    (lambda: Mixture(HALF, {"a": 1.0}, CENTRED), KeyError, "`variance` should name the groups 'a', 'b'. Found 'a'."),
    (lambda: Mixture(HALF, ONE, CENTRED, {"a": 1.0, "c": 0.0}), KeyError, "`label_bias` should name the groups 'a', 'b'"),
    (lambda: Mixture(HALF, ONE, np.eye(3)), ValueError, "`gram` should be 4 x 4 for 2 groups"),
    (lambda: Mixture(HALF, ONE, gram(at={(2, 2): 4.0})), ValueError, "Teachers should have unit length. teacher a has squared length 4."),
    (lambda: Mixture(HALF, ONE, gram(at={(0, 0): -1.0})), ValueError, "A squared length cannot be negative. mean a has -1."),
    (lambda: Mixture(HALF, ONE, CENTRED + np.eye(4, k=1)), ValueError, "`gram` should be symmetric. The overlaps of mean a with mean b"),
    (lambda: Mixture(HALF, ONE, xr.DataArray(CENTRED, dims=("x", "y"))), ValueError, "dimensions `vector` and `other`"),
    (lambda: Mixture.from_vectors(HALF, ONE, {"a": [1.0]}, {"a": [1.0], "b": [1.0]}), KeyError, "`means` has no vector for group 'b'"),
    (
        lambda: Mixture.from_vectors(HALF, ONE, {"a": [1.0], "b": [1.0]}, {"a": [0.0], "b": [1.0]}),
        ValueError,
        "The teacher of group 'a' should not be zero.",
    ),
    (
        lambda: Mixture.from_vectors(HALF, ONE, {"a": [1.0], "b": [1.0, 2.0]}, {"a": [1.0], "b": [1.0]}),
        ValueError,
        "vectors of one common length",
    ),
    (lambda: Mixture.from_json({"rho": 1}), ValueError, "does not describe a Mixture"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "kind", "sentence"), BAD, ids=[sentence[:60] for _, _, sentence in BAD])
def test_bad_input_gets_one_clear_sentence(call, kind, sentence):
    with pytest.raises(kind) as raised:
        call()
    assert sentence in str(raised.value)
    assert "\n" not in str(raised.value)
