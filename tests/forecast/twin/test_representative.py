"""Units that a twin keeps stand for all: kernels of its layers are nearer to the wide ones than those of random
units."""

import numpy as np
import pytest
import torch
from torch import nn

from networks import small_cnn, transformer
from tiltmeter.forecast.twin import representative
from tiltmeter.forecast.twin.cut import Cutter, cut
from tiltmeter.forecast.twin.representative import FEW, POINTS, herded, sample_of
from tiltmeter.modules.networks import mlp


def images(points, seed=0):
    return torch.randn(points, 1, 12, 12, generator=torch.Generator().manual_seed(seed))


def vectors(points, seed=0):
    return torch.randn(points, 20, generator=torch.Generator().manual_seed(seed))


def tokens(points, seed=0):
    return torch.randn(points, 5, 6, generator=torch.Generator().manual_seed(seed))


#: A network, its points, a layer that takes in what hidden units pass on, and how many units these are.
NETWORKS = {
    "mlp": (lambda: mlp(20, (256,)), vectors, "3", 256),
    "deep mlp": (lambda: mlp(20, (128, 256)), vectors, "5", 256),
    "tanh": (lambda: nn.Sequential(nn.Linear(20, 256), nn.Tanh(), nn.Linear(256, 1)), vectors, "2", 256),
    "convolutions": (lambda: small_cnn(1, 1, 64), images, "4", 128),
    "transformer": (lambda: transformer(5, 6, None, 1, 64, 1, 4), tokens, "encoder.layers.0.linear2", 256),
}


def passed_on(network, layer, x):
    """What units pass on to a layer, (places, units)."""
    seen = []
    hook = network.get_submodule(layer).register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    with torch.enable_grad():  # without it, torch may fuse the layers of a transformer
        network.eval()(x)
    hook.remove()
    found = seen[0].detach().double()
    rows = (found.movedim(1, -1) if found.ndim == 4 else found).flatten(0, -2)
    return rows[torch.linspace(0, len(rows) - 1, 200).long()]


def kernel(rows):
    """Products at all pairs of places, averaged over units."""
    return rows @ rows.T / rows.shape[1]


@pytest.mark.parametrize("name", NETWORKS)
def test_kernels_are_nearer_at_points_that_were_not_seen(name):
    make, points, layer, count = NETWORKS[name]
    torch.manual_seed(0)
    model = make()
    rows = passed_on(model, layer, points(200, seed=1))
    assert rows.shape[1] == count
    off = {POINTS: [], 2: []}  # of two points, units are drawn by chance
    for seed in range(6):
        for some, found in off.items():
            narrow = cut(model, points(some), 1 / 4, seed)
            (kept,) = [one for one in narrow.units if one is not None and len(one) == count // 4]
            found.append(float((kernel(rows[:, kept]) - kernel(rows)).norm()))
    assert np.mean(off[POINTS]) < 0.8 * np.mean(off[2])


def test_rows_that_do_not_differ_are_drawn_by_chance():
    model = mlp(20, (64,))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(0.1)
    kept = [Cutter(model, vectors(POINTS))(1 / 4, seed).units[0] for seed in range(40)]
    counts = np.bincount(np.concatenate(kept), minlength=64)
    assert len(kept[0]) == 16
    assert counts.max() < 24  # of 40, 10 are expected with a standard error of 2.7


def test_a_few_points_say_nothing():
    model = mlp(20, (64,))
    few, many = vectors(FEW - 1), vectors(FEW)
    rng = np.random.default_rng(3)
    assert np.array_equal(cut(model, few, 1 / 4, 3).units[0], np.sort(rng.permutation(64)[:16]))
    assert not np.array_equal(cut(model, many, 1 / 4, 3).units[0], cut(model, few, 1 / 4, 3).units[0])


def test_every_seed_has_units_of_its_own_and_always_the_same():
    torch.manual_seed(0)
    model = mlp(20, (128,))
    cutter = Cutter(model, vectors(POINTS))
    kept = [cutter(1 / 8, seed).units[0] for seed in (0, 1, 0)]
    assert not np.array_equal(kept[0], kept[1])
    assert np.array_equal(kept[0], kept[2])
    assert np.array_equal(kept[1], Cutter(model, vectors(POINTS))(1 / 8, 1).units[0])
    assert all(len(np.unique(one)) == 16 for one in kept)


def test_groups_keep_as_many_units_each():
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(1, 32, 3), nn.GroupNorm(4, 32), nn.ReLU(), nn.Conv2d(32, 1, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten()
    )
    (kept,) = Cutter(model, images(POINTS))(1 / 2, 0).units
    assert np.bincount(kept // 8).tolist() == [4, 4, 4, 4]


def test_numbers_that_are_not_finite_are_passed_over():
    torch.manual_seed(0)
    model = mlp(20, (64,))
    with torch.no_grad():
        model[1].weight.mul_(1e30)
    assert len(cut(model, vectors(POINTS), 1 / 4, 0).units[0]) == 16


def test_the_network_and_its_mode_are_left_alone():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(20, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Dropout(0.5), nn.Linear(64, 1))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    state = torch.get_rng_state()
    narrow = cut(model, vectors(POINTS), 1 / 4, 0).model
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert torch.equal(torch.get_rng_state(), state)
    assert model.training
    assert narrow.training
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in narrow.modules())


def test_herding_is_nearer_the_more_it_may_keep():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(256, 40)) ** 2
    off = {
        count: np.mean([np.linalg.norm(rows[herded(rows, count, rng)].mean(0) - rows.mean(0)) for _ in range(10)])
        for count in (16, 64)
    }
    chance = {
        count: np.mean([np.linalg.norm(rows[rng.permutation(256)[:count]].mean(0) - rows.mean(0)) for _ in range(10)])
        for count in (16, 64)
    }
    assert off[16] < 0.6 * chance[16]
    assert off[64] < 0.4 * chance[64]
    assert sorted(herded(rows, 256, rng).tolist()) == list(range(256))


def test_points_are_drawn_from_all():
    x = torch.arange(1000.0)[:, None]
    sample = sample_of(x)
    assert len(sample) == POINTS
    assert sample.max() > 900
    assert torch.equal(sample, sample_of(x))
    assert len(sample_of(x[:10])) == 10
    assert len(sample_of(torch.zeros(100, 3, 224, 224))) == FEW


def test_of_many_places_some_are_kept(monkeypatch):
    monkeypatch.setattr(representative, "PLACES", 50)
    torch.manual_seed(0)
    model = small_cnn(1, 1, 64)
    cutter = Cutter(model, images(POINTS))
    assert sorted(len(one) for one in cutter(1 / 4, 0).units) == [16, 32, 64]
    seen = [rows for part in cutter._responses._seen for rows in part]
    assert seen
    assert all(rows.shape[1] == 50 for rows in seen)
