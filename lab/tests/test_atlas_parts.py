"""Parts of the atlases: trainings side by side are those one by one, tasks have what they promise, curricula order."""

import numpy as np
import pytest
import torch

from tiltmeter.modules.networks import mlp
from tiltmeter_lab.named.bias_atlas import NARROW, WIDE
from tiltmeter_lab.shared.atlas_cell import MOMENTS, trained_states
from tiltmeter_lab.shared.atlas_tasks import DATA, HELD_OUT, SPECTRUM, components, two_features, waves
from tiltmeter_lab.shared.component_claims import NOISE, noisy_problem
from tiltmeter_lab.shared.curriculum import CURRICULA, pool, ranking
from tiltmeter_lab.shared.pipeline_cell import flipped, group_losses, pipeline_cell, pruned
from tiltmeter_lab.shared.pipeline_data import pipeline_data
from tiltmeter_lab.shared.stacked_training import Trainer, gathered, networks, optimiser

SETTINGS = {
    "data": "mixture", "share": 0.8, "variance": 4, "noise": 0.2, "depth": 1, "width": 8, "activation": "relu",
    "scale": 1.0, "optimiser": "SGD", "lr": 0.1, "decay": 0.0, "curriculum": "none", "order": None, "steps": 20,
    "seeds": 2,
}  # fmt: skip


@pytest.mark.parametrize("name", ["SGD", "momentum", "AdamW"])
def test_networks_trained_together_are_those_trained_one_by_one(name):
    stacked = networks(3, (2, 5), "tanh", 0.7, range(3))
    rng = torch.Generator().manual_seed(1)
    x, y = torch.randn(3, 40, 3, generator=rng), torch.randn(3, 40, generator=rng)
    places = torch.randint(40, (6, 3, 8), generator=rng)
    trainer = Trainer(stacked, name, 0.1)
    for one in places:
        trainer.step(gathered(x, one), gathered(y, one))
    for seed in range(3):
        torch.manual_seed(seed)
        model = mlp(3, (5, 5), 1, "tanh")
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(0.7)
        rule = optimiser(name, 0.1, list(model.parameters()))
        for one in places:
            loss = 0.5 * (model(x[seed][one[seed]]).squeeze(-1) - y[seed][one[seed]]).square().mean()
            rule.zero_grad()
            loss.backward()
            rule.step()
        for mine, own in zip(stacked.model(seed).parameters(), model.parameters(), strict=True):
            torch.testing.assert_close(mine, own, rtol=1e-5, atol=1e-6)


def test_wide_and_narrow_networks_have_nearly_as_many_parameters():
    counts = [sum(p.numel() for p in mlp(8, (width,) * depth, 1).parameters()) for depth, width in (WIDE, NARROW)]
    assert abs(counts[0] - counts[1]) < 0.01 * counts[1]


@pytest.mark.parametrize("data", DATA)
def test_tasks_hold_what_they_promise(data):
    task = two_features(data, 60, 0)
    x, y = np.asarray(task.held_out.x), np.asarray(task.held_out.y)
    assert (np.sign(x[:, task.easy[0]]) == y).all()
    assert len(y) == HELD_OUT
    if data != "digits":
        far = np.abs(x[:, task.hard[0]]) > 0.4
        assert (far == (y > 0)).all()
    linear = components(data, 200, 0)
    # Those of the 400 points looked at are scaled to these variances exactly; the target is linear in them.
    np.testing.assert_allclose(np.asarray(linear.held_out.x).var(0), SPECTRUM, rtol=1e-4)
    plain = np.asarray(linear.held_out.x) / np.sqrt(SPECTRUM)
    np.testing.assert_allclose(linear.held_out.y, plain.sum(1) / np.sqrt(len(SPECTRUM)), atol=1e-4)
    assert (waves(data, 20, 0) is None) == (data == "digits")


def test_moments_are_taken_at_each_networks_own_time():
    tasks = [two_features("uniform", 60, seed) for seed in range(2)]
    settings = {"shape": [1, 8], "activation": "tanh", "scale": 1.0, "optimiser": "AdamW", "lr": 0.2, "steps": 60}
    states, reached = trained_states(tasks, settings)
    assert set(states) == set(MOMENTS)
    assert reached["start"].all()
    assert reached["end"].all()
    x, y = (torch.as_tensor(np.stack([np.asarray(part) for part in parts])) for parts in
            ([task.train.x for task in tasks], [task.train.y for task in tasks]))  # fmt: skip
    null = (y - y.mean(1, keepdim=True)).square().mean(1)
    loss = (states["matched loss"](x).squeeze(-1) - y).square().mean(1)
    assert (loss[reached["matched loss"]] <= 0.4 * null[reached["matched loss"]]).all()
    assert reached["matched loss"].any()
    wild, ended = trained_states(tasks, {**settings, "optimiser": "SGD", "lr": 1e6, "activation": "identity"})
    assert not ended["end"].any()
    assert wild


def test_a_curriculum_begins_with_its_points_and_ends_with_all():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 3))
    y = np.sign(x[:, 0])
    easy, hard = (ranking(name, x, y)[:20] for name in ("easy first", "hard first"))
    assert np.abs(x[easy, 0]).mean() > 3 * np.abs(x[hard, 0]).mean()
    assert int(pool("easy first", 200, 100)[0]) == 40
    assert (pool("hard first", 200, 100)[50:] == 200).all()
    with pytest.raises(KeyError, match=r"No curriculum 'harder'. There are: none, easy first, hard first."):
        ranking("harder", x, y)
    assert len(CURRICULA) == 3


def test_a_pipeline_cell_holds_every_way_to_stop_and_prune_and_an_order_is_shared():
    found = pipeline_cell(SETTINGS)
    assert dict(found["final_gap"].sizes) == {"stop": 2, "pruning": 4, "seed": 2}
    assert np.isfinite(found.to_array().values).all()
    # With the same order and the same weights nothing differs; seeds differ in their weights.
    same = pipeline_cell({**SETTINGS, "order": 0, "noise": 0.0})
    other = pipeline_cell({**SETTINGS, "order": 1, "noise": 0.0})
    assert float(same["final_gap"].isel(stop=0, pruning=0, seed=0)) != float(
        other["final_gap"].isel(stop=0, pruning=0, seed=0)
    )
    again = pipeline_cell({**SETTINGS, "noise": 0.0})
    np.testing.assert_array_equal(same["final_gap"].sel(seed=0), again["final_gap"].sel(seed=0))


def test_pruning_sets_the_smallest_weights_of_each_network_to_zero():
    train, held_out = pipeline_data("mixture", 0.8, 4)
    stacked = networks(20, (2, 16), "relu", 1.0, range(2))
    x = torch.as_tensor(train.x)
    y = torch.as_tensor(np.stack([flipped(train, 0.0, 0)] * 2))
    chosen = torch.zeros(2, 20, 8, dtype=torch.long)
    made = pruned(stacked, "nine tenths, tuned", x, y, SETTINGS, chosen)
    for name, value in made.parameters.items():
        if value.ndim == 3 and value.shape[1] > 1:
            zero = (value == 0).flatten(1).double().mean(1)
            assert ((zero > 0.88) & (zero < 0.92)).all(), name
    assert group_losses(made, held_out).shape == (2, 2)
    with pytest.raises(KeyError, match=r"No data set 'moon'. There are: mixture, digits, adult."):
        pipeline_data("moon", 0.5, 1)


def test_noisy_labels_carry_their_signal_where_it_was_put():
    x = np.random.default_rng(0).normal(size=(4000, 8))
    x = (x - x.mean(0)) * np.sqrt(np.geomspace(1, 0.01, 8))
    for leading, carriers in ((True, slice(0, 2)), (False, slice(6, 8))):
        noisy, clean = noisy_problem(x, 0, leading)
        weight = np.linalg.lstsq(x / x.std(0), clean.y, rcond=None)[0]
        assert (weight[carriers] ** 2).sum() == pytest.approx(1.0, rel=0.05)
        assert np.var(np.asarray(noisy.y) - np.asarray(clean.y)) == pytest.approx(NOISE, rel=0.1)
