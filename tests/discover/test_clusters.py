"""Clusters: groups of images and texts by the features of some layers, within labels."""

import json

import numpy as np
import pytest
import torch

import tiltmeter as tm
from discovered_runs import made_run, margins

RNG = np.random.default_rng(0)
POINTS = 3000
POSITIVE = RNG.random(POINTS) < 0.5
KIND = (RNG.random(POINTS) < 0.2) & POSITIVE  # a subclass of the positives that lies elsewhere
FEATURES = RNG.normal(size=(POINTS, 5, 4)) + 6.0 * KIND[:, None, None] + 2.0 * POSITIVE[:, None, None]
TABLE = {"size": np.where(KIND, "large", "small"), "place": RNG.choice(["a", "b"], POINTS)}
RUN = made_run(margins(POINTS, late=KIND), positive=POSITIVE)


@pytest.fixture(scope="module")
def discovery():
    return tm.discover(RUN, features={"first layer": FEATURES})


def test_a_late_subclass_is_a_clear_cluster(discovery):
    group = discovery.clear[0]
    assert group.verdict == "learned later"
    assert group.name.startswith("positive, cluster ")
    assert group.name.endswith("by first layer")
    members = group.rule.holds(discovery.columns)
    assert (members & ~KIND).sum() < 0.05 * members.sum()
    assert group.against == "other points of label positive"
    assert set(discovery.run(0).points["loss"].coords["positive"].values) == {True}


def test_examples_are_of_the_group(discovery):
    group = discovery.clear[0]
    members = np.flatnonzero(group.rule.holds(discovery.columns))
    assert len(group.nearest) == len(group.hardest) == 9
    assert set(group.nearest) | set(group.hardest) <= set(members.tolist())
    losses = RUN.points["loss"].values[-1]
    assert min(losses[list(group.hardest)]) >= np.sort(losses[members])[-9]


def test_any_points_are_assigned_by_features_alone(discovery):
    again = tm.results.Discovery.from_json(json.loads(json.dumps(discovery.to_json())))
    for result in (discovery, again):
        members = result.group(features={"first layer": torch.as_tensor(FEATURES)}, labels=POSITIVE.astype(int))
        assert np.array_equal(members, discovery.group())
    with pytest.raises(ValueError, match="`labels` should give the label of every point"):
        discovery.group(features={"first layer": FEATURES})
    with pytest.raises(KeyError, match=r"`features`: no layer 'first layer'. There are: 'other'"):
        discovery.group(features={"other": FEATURES}, labels=POSITIVE)
    with pytest.raises(ValueError, match=r"`features` should have 20 numbers for every point.*Found 3"):
        discovery.group(features={"first layer": FEATURES[:, 0, :3]}, labels=POSITIVE)


def test_data_with_features(discovery):
    data = tm.GroupedData(np.zeros((POINTS, 1)), POSITIVE.astype(int), ["all"] * POINTS)
    divided = discovery.data(data, features={"first layer": FEATURES})
    assert divided.groups == discovery.parts


def test_a_table_describes_the_clusters():
    group = tm.discover(RUN, TABLE, features={"first layer": FEATURES}).clear[0]
    assert group.described.startswith("size = large (overlap ")


def test_an_easy_subclass_is_never_worse():
    easy = margins(POINTS) + np.where(KIND, 2.0, 0.0)
    discovery = tm.discover(made_run(easy, positive=POSITIVE), features={"first layer": FEATURES})
    for group in discovery.clear:
        members = group.rule.holds(discovery.columns)
        assert (members & KIND).sum() < 0.5 * members.sum()


def test_examples_are_written_to_a_new_folder(discovery, tmp_path):
    images = np.random.default_rng(0).random((POINTS, 6, 5))
    files = discovery.write_examples(tmp_path / "sheets", images=images)
    assert len(files) == len(discovery.groups)
    picture = pytest.importorskip("PIL.Image").open(files[0])
    assert picture.size == (9 * 7, 2 * 8)
    shown = np.asarray(picture)[:6, :5]
    first = images[discovery.groups[0].nearest[0]]
    assert np.abs(shown / 255 * np.ptp(images) + images.min() - first).max() < 0.01
    colour = np.zeros((POINTS, 3, 6, 5), dtype=np.uint8)
    assert discovery.write_examples(tmp_path / "colour", images=colour)[0].stat().st_size > 0
    words = [f"text {place}\x1b[31m" for place in range(POINTS)]
    text = discovery.write_examples(tmp_path / "texts", texts=words)[0].read_text(encoding="utf-8")
    assert f"text {discovery.groups[0].nearest[0]}\\x1b[31m" in text
    with pytest.raises(ValueError, match="`folder` should be a new folder"):
        discovery.write_examples(tmp_path / "texts", texts=words)
    with pytest.raises(TypeError, match="`images` or `texts` should hold one for every held-out point"):
        discovery.write_examples(tmp_path / "new")
    with pytest.raises(ValueError, match=r"There should be one for each of 3,000 points. Found 3"):
        discovery.write_examples(tmp_path / "new", texts=["a", "b", "c"])
    with pytest.raises(ValueError, match=r"`images` should have shape"):
        discovery.write_examples(tmp_path / "other", images=np.zeros((POINTS, 4)))


@pytest.mark.parametrize(
    ("features", "message"),
    [
        (FEATURES, "`features` should be a dict of arrays.*Found ndarray"),
        ({}, "`features` should be a dict of arrays.*Found an empty dict"),
        ({"first": FEATURES[:10]}, "one row for every held-out point of the run, 3,000. Found 10 in 'first'"),
        ({"first": FEATURES[:, 0, 0]}, r"at least two dimensions. Found shape \(3000,\)"),
        ({"first": FEATURES * np.nan}, "`features` should be finite numbers. Found others in 'first'"),
    ],
)
def test_refusals(features, message):
    with pytest.raises((TypeError, ValueError), match=message):
        tm.discover(RUN, features=features)


def test_a_probe_keeps_labels_and_if_asked_the_entropy(tmp_path):
    rng = np.random.default_rng(1)
    x = rng.normal(size=(900, 6)).astype(np.float32)
    y = rng.integers(0, 3, 900)
    held_out = tm.GroupedData(x, y, ["all"] * 900)
    model = torch.nn.Linear(6, 3)
    with tm.Probe(model, held_out, tm.Watch(entropy=True), to=tmp_path / "run", budget=None) as probe:
        probe(0)
    points = tm.load(tmp_path / "run").points
    assert points["loss"].coords["label"].values.tolist() == y.tolist()
    chances = torch.softmax(model(torch.as_tensor(x)), 1)
    expected = -(chances * chances.log()).sum(1).detach().numpy()
    assert np.allclose(points["entropy"].values[0], expected, atol=1e-5)
    with tm.Probe(model, held_out, budget=None) as plain:
        plain(0)
    assert "entropy" not in plain.trajectory().points


def test_several_classes_have_clusters_within_their_labels():
    rng = np.random.default_rng(2)
    y = rng.integers(0, 3, 1500)
    odd = (y == 2) & (rng.random(1500) < 0.3)
    x = rng.normal(size=(1500, 3)) + 8.0 * odd[:, None]
    run = made_run(margins(1500, late=odd))
    labels = {name: run.points[name].drop_vars("positive").assign_coords(label=("point", y)) for name in ["loss"]}
    run = tm.Trajectory(dict(run), "step", run.origin, points=labels)
    discovery = tm.discover(run, features={"input": x})
    assert discovery.clear[0].name.startswith("2, cluster ")
    assert "The entropy of predictions is not known" in discovery.licence
    members = discovery.group(features={"input": x}, labels=y)
    assert set(members[odd]) == {discovery.clear[0].name}
    assert discovery.clear[0].difference.times[0] > 0  # the untrained network is not judged
