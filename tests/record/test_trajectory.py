import copy
import json
import pickle

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from tiltmeter.record import Origin, Trajectory, stack
from tiltmeter.record.labelled import labels_array


def curve(times, values, **labels):
    return xr.DataArray(values, dims=("time", *labels), coords={"time": times, **labels})


@pytest.fixture
def loss():
    return curve([0.0, 1.0, 3.0], [[0.5, 0.5], [0.2, 0.4], [np.nan, 0.3]], group=["+", "-"])


@pytest.fixture
def run(loss, origin):
    return Trajectory({"loss": loss, "norm": curve([0.0, 3.0], [1.0, 2.0])}, "t", origin)


def test_it_is_a_mapping_of_curves_that_own_their_times(run):
    assert list(run) == ["loss", "norm"]
    assert len(run) == 2
    assert "loss" in run
    assert "absent" not in run
    assert run["loss"].sizes["time"] == 3
    assert run["norm"].sizes["time"] == 2
    assert run["norm"].name == "norm"
    assert dict(run).keys() == {"loss", "norm"}


def test_an_absent_curve_is_named_with_those_there_are(run):
    with pytest.raises(KeyError, match=r"No curve 'los'\. There are: loss, norm\."):
        run["los"]


def test_nothing_changes_it(run, loss):
    before = run["loss"].values.copy()
    with pytest.raises(AttributeError, match="immutable"):
        run.clock = "step"
    with pytest.raises(AttributeError, match="immutable"):
        del run.origin
    with pytest.raises(AttributeError, match="immutable"):
        run.note = 3
    with pytest.raises(TypeError):
        run["loss"] = loss
    with pytest.raises(ValueError, match="read-only"):
        run["loss"][0, 0] = 9
    with pytest.raises(ValueError, match="read-only"):
        run["loss"].values[0, 0] = 9
    loss[1, 1] = 9
    np.testing.assert_array_equal(run["loss"].values, before)


def test_what_is_made_from_it_can_be_changed(run):
    changed = run["loss"].copy(deep=True)
    changed[0, 0] = 9
    assert run["loss"][0, 0] == 0.5
    assert changed[0, 0] == 9


def test_divergence_is_frozen_too(loss, origin):
    at = np.array([1.0, np.nan])
    run = Trajectory({"loss": loss}, "t", origin, diverged=xr.DataArray(at, dims="seed"))
    at[0] = 5
    assert run.diverged[0] == 1


@pytest.mark.parametrize(
    ("change", "kind", "sentence"),
    [
        (
            {"clock": "hour"},
            ValueError,
            '`clock` should be one of "t", "step", "epoch", "round", "progress". Found clock = \'hour\'.',
        ),
        ({"origin": "theory"}, TypeError, "`origin` should be an Origin. Found str."),
        ({"diverged": 3.0}, TypeError, "`diverged` should be an xarray.DataArray. Found float."),
        ({"curves": {"a": [1, 2]}}, TypeError, "Curve 'a' should be an xarray.DataArray. Found list."),
        ({"curves": {"a": xr.DataArray(1.0)}}, ValueError, "should have `time` as its first dimension"),
        ({"curves": {"a": xr.DataArray([1.0], dims="time")}}, ValueError, "should have `time` as its first dimension"),
        (
            {"curves": {"a": curve([0, 1], [[1.0], [2.0]], group=["+"]).T}},
            ValueError,
            "should have `time` as its first dimension, with coordinates. Found dims ('group', 'time').",
        ),
        ({"curves": {"a": curve([0.0, 0.0], [1.0, 2.0])}}, ValueError, "The times of curve 'a' should be finite and"),
        ({"curves": {"a": curve([1.0, 0.0], [1.0, 2.0])}}, ValueError, "strictly increasing"),
        ({"curves": {"a": curve(np.array([1, 0], "uint8"), [1.0, 2.0])}}, ValueError, "strictly increasing"),
        ({"curves": {"a": curve([0.0, np.inf], [1.0, 2.0])}}, ValueError, "should be finite"),
        ({"curves": {"a": curve(["x", "y"], [1.0, 2.0])}}, ValueError, "should be finite"),
        (
            {"curves": {"a": curve([0.0], [1j])}},
            TypeError,
            "Curve 'a' should hold numbers. Found values of type complex",
        ),
        ({"curves": {"a": curve([0.0], ["x"])}}, TypeError, "Curve 'a' should hold numbers. Found values of type <U1."),
    ],
)
def test_bad_parts_are_refused(loss, origin, change, kind, sentence):
    with pytest.raises(kind) as caught:
        Trajectory(**{"curves": {"loss": loss}, "clock": "t", "origin": origin, **change})
    assert sentence in str(caught.value)


def test_equality_is_by_value(run, loss, origin):
    twin = Trajectory({"loss": loss.copy(deep=True), "norm": run["norm"]}, "t", origin, evaluate=lambda _: run)
    assert twin == run
    assert run != 3
    assert run != run.on_clock("step", d=10)
    assert run != run.replace({"loss": loss})
    assert run != run.replace({"norm": run["norm"], "loss": loss})
    assert run != run.replace({"loss": loss + 1, "norm": run["norm"]})
    assert run != Trajectory(dict(run), "t", Origin("other"))
    assert run != Trajectory(dict(run), "t", origin, diverged=xr.DataArray(1.0))
    with pytest.raises(TypeError, match="unhashable"):
        hash(run)


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda run: pickle.loads(pickle.dumps(run))])
def test_it_can_be_handed_on(run, again):
    assert again(run) == run
    with pytest.raises(ValueError, match="read-only"):
        again(run)["loss"].values[0] = 1


def test_to_dataset_needs_one_time(run, loss, origin):
    with pytest.raises(ValueError, match=r"loss has 3 times; norm has 2 times\. Name those that do"):
        run.to_dataset()
    assert list(run.to_dataset("norm")) == ["norm"]
    both = Trajectory({"loss": loss, "error": loss * 2}, "t", origin).to_dataset()
    assert set(both) == {"loss", "error"}
    assert both.attrs == {"clock": "t", "source": "example"}
    with pytest.raises(KeyError, match="No curve 'speed'"):
        run.to_dataset("speed")


def test_to_dataframe_is_long(run, origin):
    table = run.to_dataframe()
    assert list(table.columns) == ["curve", "time", "group", "value"]
    assert len(table) == 3 * 2 + 2
    row = table[(table.curve == "loss") & (table.time == 1.0) & (table.group == "-")]
    assert row.value.item() == 0.4
    assert table[table.curve == "norm"].group.isna().all()
    assert list(Trajectory({}, "t", origin).to_dataframe().columns) == ["curve", "time", "value"]


def test_it_survives_json(run, origin):
    full = Trajectory(
        {
            **run,
            "flag": curve([0, 1], [True, False]),
            "pairs": curve([0], [[1, 2]], group=labels_array([("a", 1), ("b", 2)])),
            "none": curve(np.zeros(0), np.zeros((0, 2)), group=["+", "-"]),
            "cut": run["loss"].sel(group="+").assign_attrs(long_name="loss"),
        },
        "t",
        origin,
        diverged=xr.DataArray([1.0, np.nan], dims="seed", coords={"seed": [7, 8]}),
    )
    back = Trajectory.from_json(json.loads(json.dumps(full.to_json(), allow_nan=False)))
    assert back == full
    assert back["cut"].attrs == {"long_name": "loss"}
    assert back["flag"].dtype == bool


def test_clocks_convert_there_and_back(run):
    steps = run.on_clock("step", d=100)
    assert steps.clock == "step"
    assert steps["loss"].time.values.tolist() == [0, 100, 300]
    assert steps.on_clock("t", d=100) == run
    epochs = run.on_clock("epoch", d=100, steps_per_epoch=50)
    assert epochs["norm"].time.values.tolist() == [0, 6]
    assert run.on_clock("t") is run


def test_clocks_convert_divergence_and_evaluate(run, loss, origin):
    def evaluate(times, curves=None):
        assert curves in (None, ("loss",))
        return Trajectory({"loss": curve(np.asarray(times), np.asarray(times) * 2.0)}, "t", origin)

    theory = Trajectory({"loss": loss}, "t", origin, diverged=xr.DataArray(2.0), evaluate=evaluate)
    steps = theory.on_clock("step", d=10)
    assert steps.diverged == 20
    again = steps.evaluate([0.0, 50.0])
    assert again.clock == "step"
    assert again["loss"].time.values.tolist() == [0, 50]
    assert again["loss"].values.tolist() == [0, 10]
    assert steps.evaluate([50.0], ("loss",))["loss"].values.tolist() == [10]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"clock": "step"}, 'To go from clock "t" to "step", pass d=.'),
        ({"clock": "epoch", "d": 10}, 'To go from clock "t" to "epoch", pass steps_per_epoch=.'),
        ({"clock": "step", "d": 0}, "A clock needs a positive number of steps. Found 0."),
        ({"clock": "hour"}, "`clock` should be one of"),
    ],
)
def test_clocks_say_what_they_need(run, arguments, sentence):
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        run.on_clock(**arguments)
    assert sentence in str(caught.value)


def test_repr_and_html_tell_what_is_there(loss, origin):
    run = Trajectory(
        {"loss": loss.assign_attrs(long_name="mean <loss>"), "none": curve(np.zeros(0), np.zeros(0))},
        "t",
        origin,
        diverged=xr.DataArray([1.0, np.nan], dims="seed"),
    )
    assert repr(run).splitlines() == [
        "<Trajectory example, clock t, 2 curves>",
        "  loss  (time: 3, group: 2)  time 0 .. 3",
        "  none  (time: 0)  no evaluations",
        "  diverged: 1 of 2",
    ]
    html = run._repr_html_()
    assert "mean &lt;loss&gt;" in html
    assert "<loss>" not in html
    assert "(time: 3, group: 2)" in html


def runs(origin, *seeds, times=(0, 1)):
    return [
        Trajectory(
            {"loss": curve(list(times), [[seed, 0.5]] * len(times), group=["+", "-"])},
            "step",
            Origin("x", seeds=(seed,)),
        )
        for seed in seeds
    ]


def test_stack_adds_a_dimension_labelled_by_seed(origin):
    both = stack(runs(origin, 4, 7))
    assert both["loss"].dims == ("time", "group", "seed")
    assert both["loss"].sel(seed=7, group="+").values.tolist() == [7, 7]
    assert both.origin.seeds == (4, 7)
    assert both.diverged is None


def test_stack_labels(origin):
    assert stack(runs(origin, 4, 4))["loss"].seed.values.tolist() == [0, 1]
    named = stack(runs(origin, 1, 2), dim="lr", labels=[0.1, 0.2])
    assert named["loss"].lr.values.tolist() == [0.1, 0.2]
    pairs = stack(runs(origin, 1, 2), dim="case", labels=[("a", 1), ("b", 2)])
    assert pairs["loss"].case.values.tolist() == [("a", 1), ("b", 2)]


def test_stack_joins_times_and_divergence(origin):
    (early,), (late,) = runs(origin, 1, times=(0, 1)), runs(origin, 2, times=(0, 2))
    diverged = Trajectory(dict(early), "step", early.origin, diverged=xr.DataArray(1.0))
    both = stack([diverged, late])
    assert both["loss"].time.values.tolist() == [0, 1, 2]
    assert np.isnan(both["loss"].sel(seed=1, time=2)).all()
    assert both.diverged.sel(seed=1) == 1
    assert np.isnan(both.diverged.sel(seed=2))


def test_a_stack_stacks_again_under_another_name(origin):
    grid = stack([stack(runs(origin, 1, 2)), stack(runs(origin, 3, 4), labels=(1, 2))], dim="lr", labels=[0.1, 0.2])
    assert grid["loss"].dims == ("time", "group", "seed", "lr")


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda *_: stack([]), "`stack` needs at least one trajectory."),
        (
            lambda a, b: stack([a, b.on_clock("t", d=2)]),
            'Cannot stack clocks "step" and "t": convert one with `on_clock`.',
        ),
        (
            lambda a, b: stack([a, b.replace({"error": b["loss"]})]),
            "Cannot stack runs with different curves: error, loss",
        ),
        (lambda a, b: stack([a, b], labels=[1]), "`labels` should name every run. Found 1 labels for 2 runs."),
        (lambda a, b: stack([a, b], dim="group"), "Curve 'loss' already has a dimension 'group'."),
    ],
)
def test_what_does_not_stack_is_told(origin, make, sentence):
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        make(*runs(origin, 1, 2))
    assert sentence in str(caught.value)


def test_to_dataframe_of_a_stack_is_pandas(origin):
    assert isinstance(stack(runs(origin, 1, 2)).to_dataframe(), pd.DataFrame)
