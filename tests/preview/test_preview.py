"""tm.preview: what it says, what-ifs that equal edited data, the identity of the loss, refusals, and other labels."""

import numpy as np
import pytest

import tiltmeter as tm
from tiltmeter.preview.doubt import doubt_of, half_width
from two_group_tables import parts, table


@pytest.fixture(scope="module")
def view():
    return tm.preview(*parts(count=6000, rate=2.0, question=tm.Question(kind="benefit")))


def same(one, other):
    """All curves but the band, whose width is that of the preview before the edit."""
    assert list(one) == list(other)
    for name in [name for name in one if "_gap_" not in name]:
        a, b = one[name].values, other[name].values
        assert a.shape == b.shape, name
        assert np.nanmax(np.abs(a - b), initial=0.0) < 1e-10, name


def test_it_names_the_group_and_says_what_was_computed(view):
    text = str(view)
    assert text.splitlines()[0] == view.claim
    assert "will have the" in view.claim
    assert "Computed from the table; your network was not trained." in text
    assert "differs by up to" in text
    assert view.named in ("a", "b")
    assert "<p>" in view._repr_html_()


def test_progress_grows_from_zero_to_one(view):
    times = view.run["loss"].time.values
    assert (times[0], times[-1]) == (0.0, 1.0)
    assert (np.diff(times) > 0).all()
    assert view.run.clock == "progress"
    assert tm.leaders(view.run).basis == "forecast"


def test_the_loss_is_half_of_q_minus_r_plus_the_labels():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(900, 3))
    y = x[:, 0] + rng.normal(size=900)
    run = tm.preview(*tm.GroupedData(x, y, ["a", "b", "b"] * 300).split(0.3)).run
    held_out = tm.GroupedData(x, y, ["a", "b", "b"] * 300).split(0.3)[1]
    squares = np.array([np.mean(held_out.y[held_out.of_group(g)] ** 2) for g in ("a", "b")])
    by_parameters = (run["Q"] - 2 * run["R"] + squares) / 2
    assert float(abs(by_parameters - run["loss"]).max()) < 1e-12


def test_weights_and_proportions_equal_edited_data():
    train, held_out = parts(count=1500, rate=1.0)
    view = tm.preview(train, held_out)
    factors = np.where(train.codes == 1, 3.0, 1.0) * np.where((train.codes == 0) & (train.y == 1), 0.5, 1.0)
    same(view.what_if(weights={"b": 3.0, ("a", 1): 0.5}).run, tm.preview(train.with_weights(factors), held_out).run)
    share = np.bincount(train.codes) / len(train)
    even = (0.5 / share)[train.codes]
    same(view.what_if(proportions={"a": 1.0, "b": 1.0}).run, tm.preview(train.with_weights(even), held_out).run)


def test_without_a_column_equals_data_without_it():
    train, held_out = parts(count=1500, rate=1.0)
    smaller = [part.with_points(part.x[:, [0, 2, 3]]) for part in (train, held_out)]
    edited = tm.preview(train, held_out).what_if(without=["column 1"])
    same(edited.run, tm.preview(*smaller).run)


def test_thresholds_decide_and_leave_the_loss_alone(view):
    strict = view.what_if(thresholds={"a": 0.9})
    assert strict.run["positive_rate"].sel(group="a")[-1] < view.run["positive_rate"].sel(group="a")[-1]
    assert strict.run["positive_rate"].sel(group="b")[-1] == view.run["positive_rate"].sel(group="b")[-1]
    assert float(abs(strict.run["loss"] - view.run["loss"]).max()) == 0.0
    usual = view.what_if(thresholds={"a": 0.5, "b": 0.5})
    same(usual.run, view.run)


def test_an_early_stop_is_the_beginning_of_the_same_path(view):
    early = view.what_if(stop=0.5)
    assert float(early.run["loss"].time[-1]) == 0.5
    first = early.run["loss"].values[:-1]
    assert np.array_equal(first, view.run["loss"].values[: len(first)])


def test_an_edit_of_an_edit_keeps_both(view):
    twice = view.what_if(thresholds={"a": 0.9}).what_if(stop=0.5)
    assert float(twice.run["positive_rate"].time[-1]) == 0.5
    assert (
        twice.run["positive_rate"].sel(group="a")[-1] < view.what_if(stop=0.5).run["positive_rate"].sel(group="a")[-1]
    )


def test_the_recipe_brings_loss_weights_and_proportions():
    train, held_out = parts(count=1500)
    recipe = tm.Recipe(lr=0.1, steps=10, weights={"b": 2.0})
    same(tm.preview(train, held_out, recipe=recipe).run, tm.preview(train, held_out).what_if(weights={"b": 2.0}).run)
    square = tm.preview(train, held_out, recipe=tm.Recipe(lr=0.1, steps=10, loss=tm.Square())).run
    assert square["loss"].attrs["definition"] == "half squared error"
    with pytest.raises(ValueError, match="knows weights and proportions, not GroupDRO"):
        tm.preview(train, held_out, recipe=tm.Recipe(lr=0.1, steps=9, interventions=(tm.interventions.GroupDRO(0.1),)))


def test_several_classes_and_groups():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1500, 4))
    y = x[:, :3].argmax(1)
    data = tm.GroupedData(x, y, rng.choice(["a", "b", "c"], 1500))
    view = tm.preview(*data.split(0.4))
    assert float(view.run["error"].isel(time=-1).max()) < 0.2
    assert view.causes("error", deals=0).others == "all others"
    with pytest.raises(ValueError, match="A ladder is of one score"):
        view.ladder()


def test_numbers_have_curves_and_no_band():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(900, 3))
    view = tm.preview(*tm.GroupedData(x, x[:, 0] + 0.1 * rng.normal(size=900), ["a", "b", "b"] * 300).split(0.3))
    assert view.run["loss"].values[-1].max() < 0.05
    assert view.band_sentence() == ""
    assert view.claim.startswith("The loss will be 0.0")
    assert view.claim.endswith("previews have no band for it, so nobody is named.")
    assert view.causes(deals=0).curve == "loss"


def test_columns_that_say_nothing_name_nobody():
    """Without a fall of the loss decisions follow noise, which may look like a large gap."""
    rng = np.random.default_rng(0)
    data = tm.GroupedData(rng.normal(size=(3000, 3)), rng.integers(0, 2, 3000), rng.choice(["a", "b", "c"], 3000))
    view = tm.preview(*data.split(0.2))
    assert not view.doubt.holds
    assert "the held-out loss does not clearly fall" in str(view)


def test_it_names_nobody_where_it_does_not_hold(view):
    assert doubt_of(0.02, True).holds
    assert not doubt_of(0.11, True).holds
    assert "not the rows of a table" in doubt_of(0.0, False).why
    assert "does not clearly fall" in doubt_of(0.0, True, fall=2.9).why
    refused = tm.results.Preview(view.run.replace(dict(view.run)), doubt_of(0.2, True))
    assert refused.claim.startswith("This preview does not hold for networks")
    assert refused.named == ""
    assert "by the columns alone" in str(refused)


def test_bands_grow_with_smaller_groups_and_end_below_twenty_people():
    people, variance = np.array([10.0, 50.0, 2000.0]), np.array([0.02, 0.005, 0.0001])
    none, wide, narrow = half_width("gap", people, variance, 0.01)
    assert np.isnan(none)
    assert 0 < narrow < wide < 0.3
    assert half_width("gap", people, variance, 0.08)[2] > narrow


def test_a_large_table_is_read_by_a_sample_that_is_said(monkeypatch):
    from tiltmeter.preview import inputs

    monkeypatch.setattr(inputs, "MOST_ROWS", 500)
    view = tm.preview(*parts(count=1500))
    assert "The theory read 500 of 900 training rows, drawn at random." in str(view)


@pytest.mark.parametrize(
    ("call", "error", "sentence"),
    [
        (lambda v: tm.preview([1.0]), TypeError, "`train` should be GroupedData"),
        (lambda v: v.what_if(thresholds={"c": 0.5}), KeyError, "no group 'c'"),
        (lambda v: v.what_if(thresholds={"a": 1.5}), ValueError, "strictly between 0 and 1"),
        (lambda v: v.what_if(without=["age"]), KeyError, "no column 'age'. There are: column 0"),
        (lambda v: v.what_if(without=[f"column {i}" for i in range(4)]), ValueError, "should leave a column"),
        (lambda v: v.what_if(stop=1.5), ValueError, "stop"),
        (lambda v: v.what_if(proportions={"a": 1.0}), KeyError, "a share for every group"),
        (lambda v: v.what_if(weights={"c": 1.0}), KeyError, "names 'c'"),
        (lambda v: v.causes("ppv"), KeyError, "no gap of 'ppv' can be explained"),
        (lambda v: v.causes(group="c"), KeyError, "No group 'c'"),
        (lambda v: v.causes(deals=0).of("luck"), KeyError, "No cause 'luck'"),
        (lambda v: v.confirm(seeds=1), ValueError, "at least 2"),
    ],
)
def test_bad_input_says_what_would_be_right(view, call, error, sentence):
    with pytest.raises(error, match=sentence.replace("(", r"\(")):
        call(view)


def test_parts_of_other_shapes_and_groups_are_refused():
    train, held_out = parts(count=600)
    with pytest.raises(ValueError, match="should have the same features"):
        tm.preview(train, held_out.with_points(held_out.x[:, :2]))
    other = tm.GroupedData(held_out.x, held_out.y, np.where(held_out.codes == 0, "a", "c"))
    with pytest.raises(ValueError, match="should have the same groups"):
        tm.preview(train, other)
    nested = tm.GroupedData({"x": train.x}, train.y, train.codes)
    with pytest.raises(TypeError, match="in parts"):
        tm.preview(nested, nested)


def test_groups_in_another_order_are_the_same_groups():
    train, held_out = parts(count=1200, rate=1.0)
    names = [held_out.groups[code] for code in held_out.codes]
    turned = tm.GroupedData(held_out.x, held_out.y, names, groups=["b", "a"])
    same(tm.preview(train, turned).run, tm.preview(train, held_out).run)


def test_weighted_held_out_points_have_curves_and_no_claim():
    train, held_out = parts(count=900)
    view = tm.preview(train, held_out.with_weights(np.linspace(0.5, 1.5, len(held_out))))
    assert not list(view.run.points)
    assert view.named == ""


def test_the_same_table_has_the_same_preview():
    one, other = (tm.preview(*parts(count=900)).run for _ in range(2))
    assert one == other


def test_a_table_of_one_column_and_one_of_many():
    rng = np.random.default_rng(0)
    for columns in (1, 450):
        x = rng.normal(size=(800, columns))
        data = tm.GroupedData(x, (x[:, 0] > 0).astype(int), ["a", "b"] * 400)
        assert float(tm.preview(*data.split(0.3)).run["error"].isel(time=-1).max()) < 0.4
    assert table(count=100).x.shape == (100, 4)
