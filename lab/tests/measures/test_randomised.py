"""Randomised features: a model of one coordinate, exactly; tokens, images; what is refused."""

from queue import SimpleQueue

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score
from torch import nn

import tiltmeter as tm
import tiltmeter_lab as lab
from networks import small_cnn, transformer
from tiltmeter_lab.data.slabs import linear_and_slabs, random_basis, slabs
from tiltmeter_lab.measures.randomised import Randomised
from tiltmeter_lab.measures.shared.exchanged_features import auc


def along(direction):
    """The model whose score is the coordinate along a direction."""
    model = nn.Linear(len(direction), 1, bias=False)
    model.weight.data[:] = torch.as_tensor(direction)
    return model


@pytest.mark.parametrize("turned", [False, True])
def test_a_model_of_one_coordinate(turned):
    d, n = 6, 2000
    basis = random_basis(d, seed=1) if turned else np.eye(d)
    data = slabs(linear_and_slabs(d), n, basis=basis if turned else None)
    sets = {"linear": [0], "slabs": range(1, d), "one slab": [3]}
    found = lab.measure(Randomised(sets, basis if turned else None), along(basis[0]), data)
    area, accuracy = found["randomised_auc"], found["randomised_accuracy"]
    assert area.dims == ("feature", "part")
    assert (area.sel(part="none") == 1).all()
    error = np.sqrt((n + 1) / (3 * n * n))  # standard error of an AUC without information, n/2 points of each label
    assert abs(area.sel(feature="linear", part="set") - 0.5) < 4 * error
    assert area.sel(feature="linear", part="rest") == 1
    assert area.sel(feature="slabs", part="set") == 1
    assert abs(area.sel(feature="slabs", part="rest") - 0.5) < 4 * error
    assert area.sel(feature="one slab", part="set") == 1
    assert abs(accuracy.sel(feature="linear", part="set") - 0.5) < 4 * 0.5 / np.sqrt(n)
    assert (found["randomised_auc_null"] == 0.5).all()
    assert np.allclose(found["randomised_accuracy_null"], 0.5, atol=0.03)


def test_a_set_keeps_its_joint_law():
    """The label is the parity of two coordinates: exchanged together, the decisions only trade places."""
    rng = np.random.default_rng(0)
    x = rng.choice([-1.0, 1.0], size=(500, 4)).astype(np.float32)
    y = (x[:, 0] * x[:, 1] > 0).astype(int)

    class Parity(nn.Module):
        def forward(self, points):
            return (points[:, 0] * points[:, 1])[:, None]

    data = tm.GroupedData(x, y, y)
    decisions = SimpleQueue()  # a list would be put back as it was

    class Spy(Parity):
        def forward(self, points):
            decisions.put((points[:, 0] * points[:, 1] > 0).float().mean().item())
            return super().forward(points)

    lab.measure(Randomised({"both": [0, 1]}), Spy(), data, loss=tm.Logistic(), chunk=1000)
    decided = [decisions.get() for _ in range(decisions.qsize())]
    assert np.allclose(decided[-2], y.mean())  # S exchanged by one order: the same decisions in another order
    # Directions that span the same two coordinates do the same.
    a = lab.measure(Randomised({"both": [0, 1]}), Parity(), data)["randomised_auc"]
    b = lab.measure(Randomised({"both": np.array([[1.0, 1, 0, 0], [1, -1, 0, 0], [2, 0, 0, 0]])}), Parity(), data)
    assert np.allclose(a, b["randomised_auc"])


def test_weights_and_ties_against_a_second_route():
    rng = np.random.default_rng(0)
    score, positive, mass = rng.integers(0, 5, 300) / 5, rng.random(300) < 0.4, rng.random(300)
    assert np.isclose(auc(score, positive, mass), roc_auc_score(positive, score, sample_weight=mass))


def test_it_works_for_images_and_tokens_and_in_a_probe():
    rng = np.random.default_rng(0)
    pictures = tm.GroupedData(rng.normal(size=(60, 3, 8, 8)).astype(np.float32), [0, 1, 2] * 20, [0] * 60)
    found = lab.measure(Randomised(draws=2), small_cnn(3, 3), pictures)
    assert found["randomised_accuracy"].shape == (16, 3)
    assert "randomised_auc" not in found
    tokens = tm.GroupedData(rng.integers(0, 2, (60, 6)), [0, 1] * 30, [0] * 60)
    model = transformer(6, vocabulary=2)
    assert np.isfinite(lab.measure("randomised", model, tokens)["randomised_auc"]).all()
    with pytest.raises(TypeError, match="Tokens have coordinates but no directions: name coordinates"):
        lab.measure(Randomised({"all": np.eye(6)}), model, tokens)
    with tm.Probe(model, tokens, watch=tm.Watch(measures=(Randomised({"first": [0]}),)), budget=None) as probe:
        probe(0)
    assert probe.trajectory()["randomised_auc"].dims == ("time", "feature", "part")


def test_its_cost_is_what_it_says():
    data = slabs((1, 5, 5), 60)
    passed = []
    model = along(np.eye(3)[0])
    model.register_forward_pre_hook(lambda m, x: passed.append(len(x[0])))
    measure = Randomised(draws=3)
    from tiltmeter.modules.untouched import untouched
    from tiltmeter_lab.measures.measure import snapshot_of

    with untouched(model):
        snapshot = snapshot_of(model, data)
        passed.clear()
        measure(snapshot)
        assert sum(passed) / len(data) == measure.passes(snapshot) == 19


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: Randomised(draws=0), "`draws` should be a whole number of at least 1. Found draws = 0."),
        (lambda: Randomised(draws=1.5), "`draws` should be a whole number of at least 1. Found draws = 1.5."),
        (lambda: Randomised({"a": [7]}), r"Set 'a' should list coordinates from 0 to 2. Found \[7\]."),
        (lambda: Randomised({}), "`features` should name at least one set. Found none."),
        (
            lambda: Randomised({"a": np.ones((1, 5))}),
            r"The directions of set 'a' should have 3 numbers. Found shape \(1, 5\)",
        ),
        (lambda: Randomised({"a": np.zeros((1, 3))}), "Directions should not all be zero."),
        (lambda: Randomised({"a": [0]}, basis=np.ones((3, 3))), "`basis` should have orthonormal rows"),
        (lambda: Randomised({"a": [0]}, basis=np.ones(3)), "`basis` should have orthonormal rows"),
        (lambda: Randomised({"a": [0]}, basis=np.eye(2)), r"`basis` should be 3 rows of 3. Found shape \(2, 2\)."),
    ],
)
def test_bad_choices_get_a_sentence(made, message):
    with pytest.raises(ValueError, match=message):
        lab.measure(made(), along(np.eye(3)[0]), slabs((1, 5, 5), 60))


def test_features_without_names_get_a_sentence():
    with pytest.raises(TypeError, match=r"`features` should map names to sets. Found list."):
        Randomised([[0, 1]])


def test_degenerate_points():
    one = slabs((1, 5, 5), 60)
    with pytest.raises(ValueError, match=r"At least two points are needed to exchange features. Found 1."):
        lab.measure(Randomised(), along(np.eye(3)[0]), one.take([int(np.argmin(one.y))]))
    same = one.take(np.flatnonzero(one.y == 0))
    with pytest.raises(ValueError, match=r"An AUC compares two labels. Found points of one only."):
        lab.measure(Randomised(), along(np.eye(3)[0]), same)
    constant = tm.GroupedData(np.ones((60, 3)), [0, 1] * 30, [0] * 60)
    found = lab.measure(Randomised(), along(np.zeros(3)), constant)
    assert (found["randomised_auc"] == 0.5).all()
