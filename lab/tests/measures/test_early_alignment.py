"""Early alignment: the extremes of G, four clusters whatever the width, the merged network, and large
initialisation."""

import numpy as np
import pytest
import torch

import tiltmeter as tm
import tiltmeter_lab as lab
from networks import small_cnn
from tiltmeter.modules.networks import TwoLayer, mlp, two_layer
from tiltmeter_lab.data.clusters import symmetric_clusters
from tiltmeter_lab.measures.early_alignment import EarlyAlignment
from tiltmeter_lab.measures.shared.alignment_pull import Pull
from tiltmeter_lab.measures.shared.neurons import clusters, merged, merged_distance, neurons_of, prominent


def descend(net, data, lr, steps, measures=(), when=()):
    """Gradient descent on all points at once."""
    return tm.train(
        net, data, data, tm.Recipe(lambda p: torch.optim.SGD(p, lr=lr), steps=steps, batch=len(data)), watch=tm.Watch(when=tm.record.at([0, *when, steps]), measures=measures))  # fmt: skip


def angles(extremes):
    return np.sort(np.degrees(np.arctan2(extremes.direction[:, 1], extremes.direction[:, 0])).round(6) % 360)


@pytest.mark.parametrize("seed", range(3))
def test_extremes_of_the_symmetric_clusters(seed):
    data = symmetric_clusters(seed=seed)
    found = Pull(data.x, data.y / 2).extremes()
    np.testing.assert_allclose(angles(found), [0, 90, 180, 270], atol=1e-6)
    upright = np.abs(found.direction[:, 0]) > 0.5
    assert (found.sign[upright] == 1).all()
    assert (found.sign[~upright] == -1).all()
    # The clusters at +e1 add E[x1] / 8, those at +-e2 take away E[relu(x1)] / 4.
    plus = data.x[data.of_group("+e1"), 0].mean() / 8
    beside = np.maximum(data.x[data.y < 0, 0], 0).mean() / 4
    assert found.rate == pytest.approx(plus - beside, rel=1e-9)
    assert found.rate == pytest.approx(0.1247, abs=5e-4)


def test_plane_agrees_with_a_scan_and_with_ascent():
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=(40, 2)), rng.choice([-1.0, 1.0], 40)
    pull = Pull(x, y / 2)
    exact = pull.extremes()
    scan = np.linspace(0, 2 * np.pi, 100_001)[:-1]
    height = np.abs(pull(np.stack([np.cos(scan), np.sin(scan)], axis=1)))
    peaks = np.flatnonzero((height > np.roll(height, 1)) & (height > np.roll(height, -1)))
    np.testing.assert_allclose(angles(exact), np.degrees(scan[peaks]), atol=0.01)
    ascent = pull._by_ascent(0)
    assert np.abs(pull(ascent)).max() == pytest.approx(exact.rate, rel=1e-4)


def test_more_dimensions_find_the_axes():
    with pytest.warns(UserWarning, match="give unreliable results"):
        data = symmetric_clusters(10, points=4)
    found = Pull(data.x, data.y / 2).extremes()
    np.testing.assert_allclose(sorted(np.abs(found.direction[:, :2]).max(1)), 1.0, atol=1e-5)
    assert len(found.value) == 4


def test_gradient_is_that_of_g():
    rng = np.random.default_rng(0)
    pull = Pull(rng.normal(size=(30, 4)), rng.normal(size=30))
    v, step = rng.normal(size=(1, 4)), 1e-6
    numeric = [(pull(v + step * e) - pull(v - step * e))[0] / (2 * step) for e in np.eye(4)]
    np.testing.assert_allclose(pull.gradient(v)[0], numeric, atol=1e-7)


@pytest.mark.parametrize("width", [50, 400])
def test_four_clusters_then_a_network_of_four_neurons(width):
    """Exactly four (direction, sign) clusters at the end of alignment, and merged they are the network: three seeds."""
    data, lr = symmetric_clusters(), 1.0
    for seed in range(3 if width == 50 else 1):
        torch.manual_seed(seed)
        net = two_layer(2, width, scale=1e-4)
        run = descend(net, data, lr, 300, [EarlyAlignment(lr=lr)], when=[45])
        assert run["directions"].sel(time=45) == 4
        assert run["alignment"].sel(time=45) > 0.99
        assert run["condensation"].sel(time=45) > 0.98
        assert run["loss"].sel(time=45).mean() > 0.6  # of log 2 = 0.69: hardly moved
        assert run["alignment"].sel(time=0) < 0.8
        assert run["directions"].sel(time=0) > 10
        assert run["merged_distance"].sel(time=300) < 1e-4
        assert run["condensation_null"].sel(time=300) < 0.6
        assert merged(net, 2.0, most=4).v.shape == (4, 2)


def test_four_clusters_in_ten_dimensions_if_the_start_is_small_enough():
    data = symmetric_clusters(10, points=8)
    found = {}
    for scale in (1e-2, 1e-4):
        torch.manual_seed(0)
        net = two_layer(10, 50, scale=scale)
        steps = round(np.log(0.1 / neurons_of(net).size.sum()) / (2 * 0.1246))
        found[scale] = descend(net, data, 1.0, steps, [EarlyAlignment(lr=1.0)]).to_dataset("directions", "alignment")
    assert found[1e-4]["directions"][-1] == 4
    assert found[1e-4]["alignment"][-1] > 0.99
    assert found[1e-2]["directions"][-1] > 8  # scores grow before all have turned


def test_large_initialisation_does_not_condense():
    for seed in range(3):
        torch.manual_seed(seed)
        run = descend(two_layer(2, 50, scale=2.0), symmetric_clusters(), 1.0, 100, [EarlyAlignment(lr=1.0)])
        assert run["error"].sel(time=100).max() == 0  # it does learn
        assert run["condensation"].sel(time=100) < 0.4
        assert run["directions"].sel(time=100) > 20
        assert run["merged_distance"].sel(time=100) > 0.1


def test_tolerance_follows_the_learning_rate():
    extremes = Pull(symmetric_clusters().x, symmetric_clusters().y / 2).extremes()
    angle = {lr: EarlyAlignment(lr=lr).tolerance(extremes) - 1.0 for lr in (0.05, 0.25, 1.0)}
    assert angle[1.0] == pytest.approx(4 * angle[0.25]) == pytest.approx(20 * angle[0.05])
    # What the jumps were measured to be, 3.24, 0.84 and 0.03 degrees, is within one side of it.
    assert angle[1.0] / 2 > 3.24
    assert angle[0.25] / 2 > 0.84


def test_sequential_and_two_layer_are_read_alike():
    torch.manual_seed(1)
    net = mlp(2, (6,), 1, bias=False)
    twin = TwoLayer(net[1].weight.detach().clone(), net[3].weight.detach()[0].clone())
    data = symmetric_clusters()
    one, other = (lab.measure("early-alignment", model, data) for model in (net, twin))
    for name in one:
        assert one[name] == pytest.approx(float(other[name]), abs=1e-6), name
    small = merged(net, 0.01)
    assert merged_distance(net, small, torch.as_tensor(data.x)) < 1e-6


def test_zero_weights_and_points_without_pull_are_finite():
    net = TwoLayer(torch.zeros(5, 2, dtype=torch.float64), torch.zeros(5, dtype=torch.float64))
    found = lab.measure(EarlyAlignment(), net, symmetric_clusters())
    assert all(np.isfinite(values) for values in found.values())
    assert found["network_scale"] == 0
    nothing = tm.GroupedData(np.zeros((60, 2)), np.tile([-1.0, 1.0], 30), "label")
    found = lab.measure(EarlyAlignment(), two_layer(2, 5), nothing)
    assert all(np.isfinite(values) for values in found.values())


def test_other_architectures_are_refused_in_one_sentence():
    images = tm.GroupedData(np.zeros((60, 1, 8, 8)), np.tile([0, 1], 30), "label")
    with pytest.raises(TypeError, match=r"needs a network of two layers: .* Found Conv2d, ReLU"):
        lab.measure("early-alignment", small_cnn(1, 1), images)
    with pytest.raises(TypeError, match="without biases"):
        lab.measure("early-alignment", mlp(2, (4,), 1), symmetric_clusters())
    three = tm.GroupedData(np.ones((60, 2)), np.arange(60) % 3, "label")
    with pytest.raises(ValueError, match=r"decides between two labels. Found 3"):
        lab.measure("early-alignment", two_layer(2, 4), three)
    for bad in ({"lr": -1.0}, {"degrees": 90.0}):
        with pytest.raises(ValueError, match="`lr` should not be negative"):
            EarlyAlignment(**bad)
    for bad in ({"cumulative": 0.0}, {"clusters": 0}):
        with pytest.raises(ValueError, match="`cumulative` should be a share"):
            EarlyAlignment(**bad)
    with pytest.raises(ValueError, match="`degrees` should be an angle"):
        merged(two_layer(2, 4), -1.0)


def test_prominent_and_clusters_by_hand():
    assert prominent(np.array([0.25, 0.25, 0.25, 0.25]), 0.5).tolist() == [0, 1]
    assert prominent(np.array([1.0]), 1.0).tolist() == [0]
    direction = np.array([[1, 0], [np.cos(0.1), np.sin(0.1)], [np.cos(0.2), np.sin(0.2)]])
    # Within 6.9 degrees of the largest, not chained from member to member.
    assert clusters(direction, np.ones(3), np.array([0.5, 0.3, 0.2]), 6.9).tolist() == [0, 0, 1]
    net = two_layer(3, 4)
    assert neurons_of(net).share.sum() == pytest.approx(1.0)
    snapshot = tm.Probe(two_layer(2, 4), symmetric_clusters(), budget=None).snapshot()
    assert EarlyAlignment().passes(snapshot) == 2.0
    assert set(lab.measure(*EarlyAlignment.example(0))) >= {"alignment", "alignment_null", "condensation_null"}


def test_extremes_are_found_once_per_run():
    measure, data = EarlyAlignment(), symmetric_clusters()
    descend(two_layer(2, 8), data, 1.0, 3, [measure], when=[1, 2])
    known = measure._known["extremes"]
    probe = tm.Probe(two_layer(2, 8), data, watch=tm.Watch(measures=(measure,)), budget=None)
    probe.evaluate(0)
    assert measure._known["extremes"] is not known  # other points: found again
    known = measure._known["extremes"]
    probe.evaluate(1)
    assert measure._known["extremes"] is known
