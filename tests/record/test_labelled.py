import json
import math

import numpy as np
import pytest
import xarray as xr

from tiltmeter.record.labelled import (
    aligned,
    array_from_json,
    array_to_json,
    label_from_json,
    label_to_json,
    labelled,
    labels_array,
    values_from_json,
    values_to_json,
)


def through_file(value):
    return json.loads(json.dumps(value, allow_nan=False))


def test_a_number_is_a_scalar_array():
    assert labelled(3, "rho").dtype == float
    assert labelled(np.float32(0.5), "rho").item() == 0.5
    assert labelled(np.array(2.0), "rho").dims == ()


def test_a_grid_labels_itself_and_other_dimensions_stay_bare():
    assert labelled(("rho", [0.2, 0.8]), "rho").rho.values.tolist() == [0.2, 0.8]
    assert not labelled(("run", [0.2, 0.8]), "rho").coords
    square = labelled((("rho", "run"), [[1, 2, 3], [4, 5, 6]]), "rho")
    assert square.sizes == {"rho": 2, "run": 3}
    assert not square.coords


def test_grids_meet_by_their_labels():
    a, b = labelled(("a", [1, 2]), "a"), labelled(("b", [1, 2, 3]), "b")
    assert [array.sizes for array in aligned([a, b], "the mixture")] == [{"a": 2, "b": 3}] * 2
    with pytest.raises(ValueError, match="The grids of the mixture do not share their labels"):
        aligned([a, labelled(("a", [1, 3]), "a")], "the mixture")


def test_a_labelled_array_keeps_its_labels():
    given = xr.DataArray([1, 2], dims="width", coords={"width": [10, 20]})
    assert labelled(given, "lr").identical(given.astype(float))


@pytest.mark.parametrize(
    ("value", "kind", "sentence"),
    [
        ([0.2, 0.8], TypeError, r'`rho` should be a number or carry a dimension name, as in \("rho", values\)'),
        (True, TypeError, "Found bool"),
        ("high", TypeError, r"`rho` should be a number\. Found rho = 'high'"),
        (1j, TypeError, r"`rho` should be a number\. Found rho = 1j"),
        (("rho", ["a", "b"]), TypeError, "`rho` should hold numbers"),
        (math.nan, ValueError, r"`rho` should be finite\. Found rho = nan"),
        (("rho", [1.0, math.inf]), ValueError, r"`rho` should be finite\. Found rho = inf"),
        (("group", [1.0]), ValueError, "has a dimension named 'group', which curves use themselves: rename it"),
    ],
)
def test_what_is_no_labelled_number_is_refused(value, kind, sentence):
    with pytest.raises(kind, match=sentence):
        labelled(value, "rho")


@pytest.mark.parametrize(
    "label", ["+", "", "é", 3, -1, 0.5, True, None, ("a", 1), (("a", 2), 0.5), math.inf, -math.inf, "Infinity", "nan"]
)
def test_labels_survive_json(label):
    back = label_from_json(through_file(label_to_json(label)))
    assert back == label
    assert type(back) is type(label)


def test_a_nan_label_survives_json():
    assert math.isnan(label_from_json(through_file(label_to_json(math.nan))))


def test_numpy_labels_become_plain():
    assert label_to_json(np.int64(3)) == 3
    assert type(label_to_json(np.float64(0.5))) is float


def test_labels_that_cannot_be_stored_are_refused():
    with pytest.raises(TypeError, match="Labels should be text, numbers or tuples"):
        label_to_json(frozenset())
    dated = xr.DataArray([1.0], dims="day", coords={"day": np.array(["2020-01-01"], dtype="datetime64[ns]")})
    with pytest.raises(TypeError, match=r"Found datetime64.* in `day`"):
        array_to_json(dated)
    with pytest.raises(ValueError, match="A label should be text"):
        label_from_json({"a": 1})


def test_tuples_stay_whole_as_coordinates():
    assert labels_array([("a", 1), ("b", 2)]).shape == (2,)
    assert labels_array(["a", 1]).tolist() == ["a", 1]
    assert labels_array([1, 2]).dtype == int


ARRAYS = [
    xr.DataArray(0.1),
    xr.DataArray(np.array([0.1, np.nan, np.inf, -np.inf, -0.0, 5e-324]), dims="k"),
    xr.DataArray(np.array([[0.1, 0.2]], dtype="float32"), dims=("a", "b"), coords={"b": ["x", "y"]}),
    xr.DataArray(np.array([2**63, 1], dtype="uint64"), dims="k"),
    xr.DataArray(np.array([True, False]), dims="k", coords={"k": [True, False]}),
    xr.DataArray(np.array([1, -2], dtype="int8"), dims="k", coords={"k": labels_array([("a", 1), ("b", 2)])}),
    xr.DataArray(np.zeros((0, 3)), dims=("time", "group"), coords={"group": ["a", "b", "c"]}),
    xr.DataArray(np.zeros((2, 0, 3)), dims=("a", "b", "c")),
    xr.DataArray([1.0], dims="time", coords={"time": [0.0], "group": "+"}),
    xr.DataArray(
        [[1.0, 2.0]], dims=("time", "seed"), coords={"lr": ("seed", [0.1, 0.2]), "m": (("time", "seed"), [[1, 2]])}
    ),
    xr.DataArray([1.0, 2.0], dims="ridge", coords={"ridge": [0.0, np.inf]}),
]


@pytest.mark.parametrize("array", ARRAYS, ids=range(len(ARRAYS)))
def test_arrays_survive_strict_json_to_the_last_bit(array):
    array = array.assign_attrs(long_name="loss", scale=[1, 2])
    back = array_from_json(through_file(array_to_json(array)))
    assert back.equals(array)
    assert back.dtype == array.dtype
    assert back.attrs == array.attrs
    assert (np.signbit(back.values) == np.signbit(array.values)).all() if array.dtype.kind == "f" else True


@pytest.mark.parametrize("dtype", ["complex128", "<U3", "object", "datetime64[ns]", "longdouble"])
def test_only_numbers_that_json_can_hold_become_json(dtype):
    if np.dtype(dtype).kind == "f" and np.dtype(dtype).itemsize == 8:
        pytest.skip("long doubles are doubles here")
    with pytest.raises(TypeError, match="Only numbers can be recorded"):
        values_to_json(np.zeros(2, dtype=dtype))


@pytest.mark.parametrize(
    ("nested", "dtype", "shape", "fact"),
    [
        ([0.1, 0.2], "float64", (3,), r"values have shape \(2,\) where \(3,\) is expected"),
        ([0.1, "high"], "float64", (2,), "'high' is not a number"),
        ([[0.1], [0.1, 0.2]], "float64", (2, 2), "inhomogeneous"),
        ([0.1], "complex128", (1,), "is not a type of numbers"),
    ],
)
def test_damaged_values_are_told(nested, dtype, shape, fact):
    with pytest.raises(ValueError, match=fact):
        values_from_json(nested, dtype, shape)
