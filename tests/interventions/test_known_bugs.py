"""Slips of published code that are not repeated here, one test each.

Others stand beside their intervention: the adjustment of group DRO that one zero switches off, or that is added to the
losses shown, and absent groups (`group/test_exact.py`); what the batch code of group DRO equalises
(`theory/test_laws.py`); a second factor q (`point/test_generalised_cross_entropy.py`); a row of zeros among gradients
(`gradient/test_directions.py`); statistics updated twice (`step/test_sam.py`); erasure without balancing
(`model/test_erasure.py`); terms of a batch without a group (`point/test_fairness_penalty.py`)."""

import warnings
from dataclasses import fields, replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

import tiltmeter as tm
from tiltmeter.interventions.model import eraser

lab = pytest.importorskip("tiltmeter_lab")

I = tm.interventions
RECIPE = tm.Recipe(lr=0.2, steps=10, batch=16, loss=tm.Logistic())


def points(count=200, seed=0):
    rng = np.random.default_rng(seed)
    rare, y = rng.random(count) < 0.25, rng.integers(0, 2, count)
    x = rng.normal(size=(count, 4)).astype("float32")
    x[:, 0] += 2 * y - 1
    x[:, 1] += np.where(rare, -1, 1) * (2 * y - 1)
    return tm.GroupedData(x, y, np.where(rare, "rare", "common"))


def trained(*laws, model=None, **more):
    data = points()
    torch.manual_seed(0)
    model = nn.Linear(4, 1) if model is None else model
    tm.train(model, data, data, replace(RECIPE, interventions=laws, **more), watch=tm.Watch(when=tm.record.at([1])))
    return model


def test_weights_have_mean_one():
    """SubpopBench: weights that sum to the number of groups are another learning rate."""
    from tiltmeter.recipe.lowered import lowered_recipe

    data = points()
    for power in (0.0, 0.5, 1.0):
        found = lowered_recipe(replace(RECIPE, interventions=(I.Balanced(power),)), data).weights
        assert np.mean([found[group] for group in np.asarray(data.groups)[data.codes]]) == pytest.approx(1.0)


def test_group_dro_sees_the_batches_of_plain_training():
    """group_DRO #6: one flag balanced the batches of the method and not those of what it was compared with."""
    assert torch.equal(trained(I.GroupDRO(0.0, begin="shares")).weight, trained().weight)


@pytest.mark.parametrize(
    "change",
    [{"rate": 0.5}, {"proportional": 2.0}, {"adjust": 3.0}, {"floor": 0.3}, {"begin": "shares"}, {"by": "draws"}]
    + [{"memory": 0.0}, {"every": 3}],
    ids=lambda change: next(iter(change)),
)
def test_no_setting_of_group_dro_is_without_effect(change):
    """group_DRO: `alpha` acted in one branch of the code only."""
    law = I.GroupDRO(0.3, proportional=0.5, adjust=1.0, floor=0.05)
    assert set(change) <= {field.name for field in fields(law)}
    assert not torch.equal(trained(law).weight, trained(replace(law, **change)).weight)


def test_spectral_decoupling_keeps_its_ratio_to_the_loss():
    """gradient-starvation: after some steps the code's loss was coefficient * (penalty + loss), and there was no
    1/2."""
    law = lab.interventions.SpectralDecoupling(0.1)
    scores, losses = torch.tensor([2.0, -1.0]), torch.tensor([0.3, 0.4])
    torch.testing.assert_close(law.each(losses, scores, None) - losses, 0.05 * scores.square())
    steer = tm.Steering(law, points(), model=nn.Linear(4, 1))
    values = {steer(losses, scores=scores, y=torch.ones(2)).item() for _ in range(50)}
    assert len(values) == 1  # whatever the step


def test_jtt_repeats_wrong_points_found_in_evaluation_mode():
    """BalancingGroups #5: correct points were repeated, and errors came from a network with its dropout on."""
    data = points()
    found = I.JTT(times=5).data(data, SimpleNamespace(decision=1 - data.y))
    assert len(found) == 5 * len(data)
    model = nn.Sequential(nn.Dropout(0.9), nn.Linear(4, 1))
    with torch.no_grad():
        model[1].weight.copy_(torch.tensor([[50.0, 0.0, 0.0, 0.0]]))
        model[1].bias.zero_()
    right = tm.GroupedData(data.x, (data.x[:, 0] > 0).astype(int), data.codes)
    recipe = tm.Recipe(lr=1e-9, steps=1, batch=16, loss=tm.Logistic(), interventions=(I.JTT(times=5, scout=1),))
    run = tm.train(model, right, right, recipe)
    assert run.origin.settings["data_interventions"][0]["picked"] == 0


class TestDFR:
    def test_it_draws_and_does_not_take_the_first_rows(self):
        data = points(400)
        first = np.argsort(data.x[:, 0] * (2 * data.y - 1), kind="stable")  # the most misleading rows ahead
        sorted_, shuffled = data.take(first), data.take(np.random.default_rng(0).permutation(first))
        one, two = (I.DFR(fits=20).deliver(nn.Linear(4, 1), part).weight for part in (sorted_, shuffled))
        assert torch.cosine_similarity(one, two).item() > 0.98

    def test_the_unit_of_a_feature_does_not_matter(self):
        """Tuning with one scaling and fitting with another."""
        data = points(300)
        wide = tm.GroupedData(data.x * np.float32([1.0, 1000.0, 1.0, 0.01]), data.y, data.codes)
        scores = [I.DFR().deliver(nn.Linear(4, 1), part)(part.tensors()[0]).detach().numpy() for part in (data, wide)]
        np.testing.assert_allclose(*scores, atol=1e-3)

    def test_no_setting_that_scikit_learn_gives_up(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error", FutureWarning)
            warnings.simplefilter("error", DeprecationWarning)
            I.DFR(fits=1).deliver(nn.Linear(4, 1), points())
            I.Erasure().deliver(nn.Linear(4, 1), points())

    def test_flags_are_booleans(self):
        for make in (lambda: I.Erasure(balanced="False"), lambda: I.SelecMix(plain="False")):
            with pytest.raises(TypeError, match="should be True or False"):
                make()


def test_a_rare_concept_is_erased_too():
    """concept-erasure: an absolute tolerance left a concept in 2 of 20,000 rows as it was."""
    rng = np.random.default_rng(0)
    x, z = rng.normal(size=(20_000, 4)), np.zeros(20_000, dtype=int)
    z[:2] = 1
    x[:2] += 50.0
    erased = eraser(x, z, np.ones(len(z)))(x)
    assert np.abs(erased[:2].mean(0) - erased[2:].mean(0)).max() < 1e-8


def test_mixing_without_the_plain_batch_turns_the_bias_round():
    """SelecMix: 95 % of points go along with the bias, and after mixing 5 %; the default keeps half of each."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 1000)
    a = np.where(rng.random(1000) < 0.95, y, 1 - y)
    given = torch.zeros(1000, 1), torch.as_tensor(y), torch.as_tensor(a)

    def aligned(law):
        _, labels, groups = law.batch(*given, np.random.default_rng(1))
        return (labels == groups).double().mean().item()

    assert aligned(I.SelecMix(plain=False)) == pytest.approx(0.05, abs=0.025)
    assert aligned(I.SelecMix()) == pytest.approx(0.5, abs=0.025)
