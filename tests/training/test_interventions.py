"""Interventions in networks: equal to a loop of one's own, exact where there is a formula, and nothing where nothing is
asked."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from torch import nn

import tiltmeter as tm
from tiltmeter.interventions.group_intervention import remembered

lab = pytest.importorskip("tiltmeter_lab")

I = tm.interventions
RECIPE = tm.Recipe(lr=0.2, steps=25, batch=16, loss=tm.Logistic())


def points(count=300, seed=0, shift=1.0):
    rng = np.random.default_rng(seed)
    rare, y = rng.random(count) < 0.25, rng.integers(0, 2, count)
    x = rng.normal(size=(count, 5)).astype("float32")
    x[:, 0] += 2 * y - 1
    x[:, 1] += shift * np.where(rare, -1, 1) * (2 * y - 1)
    return tm.GroupedData(x, y, np.where(rare, "rare", "common"))


TRAIN, HELD_OUT = points().split(0.4)
CODES = torch.tensor([0, 1])


def network(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 1))


def trained(*laws, train=TRAIN, **more):
    model = network()
    run = tm.train(model, train, HELD_OUT, replace(RECIPE, interventions=laws, **more))
    return run, model


def same(one, two):
    return all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))


@dataclass(frozen=True)
class AsDrawn(I.GroupIntervention):
    def pull(self, z, seen):  # noqa: ARG002
        return seen.shares


class TestControls:
    """The settings that must change nothing, bit by bit."""

    @pytest.mark.parametrize(
        "law",
        [AsDrawn(), I.Balanced(1.0), lab.interventions.SpectralDecoupling(0.0), I.SAM(0.0)],
        ids=lambda law: type(law).__name__,
    )
    def test_nothing_asked_nothing_changed(self, law):
        assert same(trained()[1], trained(law)[1])

    def test_group_dro_at_rate_zero_is_balancing(self):
        assert same(trained(I.Balanced())[1], trained(I.GroupDRO(0.0))[1])
        assert not same(trained()[1], trained(I.GroupDRO(0.0))[1])

    def test_downsampled_equal_groups(self):
        even = TRAIN.take(np.concatenate([TRAIN.of_group(g)[:30] for g in TRAIN.groups]))
        assert same(trained(train=even.take(np.arange(60)))[1], trained(I.Downsampled(), train=even)[1])

    def test_integer_weights_are_duplicated_points(self):
        few = TRAIN.take(np.concatenate([TRAIN.of_group("common")[:60], TRAIN.of_group("rare")[:20]]))
        twice = few.take(np.repeat(np.arange(80), np.where(few.codes == few.groups.index("rare"), 3, 1)))
        one, two = (
            trained(*laws, train=data, batch=None)[1] for laws, data in (((I.GroupDRO(0.0),), few), ((), twice))
        )
        for a, b in zip(one.parameters(), two.parameters(), strict=True):
            torch.testing.assert_close(a, b, atol=1e-6, rtol=1e-5)


INTERVENTIONS = [
    (I.GroupDRO(0.2, proportional=1.0),),
    (I.VREx(2.0, every=3),),
    (I.UPGrad(),),
    (lab.interventions.SpectralDecoupling(0.2), I.Tilted(2.0)),
    (I.GroupDRO(0.2, by="draws"),),
]


@pytest.mark.parametrize("laws", INTERVENTIONS, ids=lambda laws: type(laws[-1]).__name__)
def test_a_loop_of_ones_own_is_train_bit_by_bit(laws):
    run, expected = trained(*laws)
    model = network()
    steer = tm.Steering(laws, TRAIN, model=model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    x, y = TRAIN.tensors()
    group = torch.as_tensor(TRAIN.codes)
    draws = steer.law.by == "draws"
    batches = iter(steer.sampler(TRAIN, 16, 25)) if draws else None
    for step in range(25):
        places = next(batches) if draws else RECIPE.batches(TRAIN).batch(TRAIN, 16, 0, step)
        score = model(x[places])[:, 0]
        losses = tm.Logistic().torch()(score, (y[places] == 1).float() * 2 - 1)
        loss = steer(losses, group[places], scores=score, y=y[places])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert same(model, expected)
    np.testing.assert_array_equal(steer.pull.numpy(), run["pull"].values[-1])
    assert not list(steer.parameters())
    again = tm.Steering(laws, TRAIN, model=model)
    again.load_state_dict(steer.state_dict())
    assert all(torch.equal(a, b) for a, b in zip(again.buffers(), steer.buffers(), strict=True))


@pytest.mark.parametrize(
    "laws", [*INTERVENTIONS[:2], INTERVENTIONS[3], (I.Downsampled(),), (I.Balanced(by="draws"),)], ids=str
)
def test_a_seed_of_an_ensemble_is_that_training(laws):
    recipe = replace(RECIPE, interventions=laws)
    both = tm.ensemble(network_of_any_seed, TRAIN, HELD_OUT, recipe, seeds=[4, 7])
    torch.manual_seed(7)
    alone = tm.train(network_of_any_seed(), TRAIN, HELD_OUT, recipe, seed=7)
    np.testing.assert_allclose(both["loss"].sel(seed=7), alone["loss"], atol=1e-6)
    if "pull" in alone:
        np.testing.assert_allclose(both["pull"].sel(seed=7), alone["pull"], atol=1e-6)


def network_of_any_seed():
    return nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 1))


class TestSteering:
    def test_order_of_a_step(self):
        """Pulls come from what was remembered before the batch; absent groups keep their loss."""
        steer = tm.Steering(I.Tilted(1.0, memory=2.0), TRAIN)
        shares = np.asarray(list(TRAIN.sizes.values())) / len(TRAIN)
        losses, group = torch.tensor([1.0, 3.0, 4.0]), torch.tensor([0, 0, 1])
        assert float(steer(losses, group)) == pytest.approx(float(losses.mean()))  # nobody was seen before
        np.testing.assert_allclose(steer.remembered, [2.0, 4.0])
        tilted = shares * np.exp([2.0, 4.0])
        np.testing.assert_allclose(steer.pull, tilted / tilted.sum())
        steer(torch.tensor([4.0, 4.0]), torch.tensor([0, 0]))
        np.testing.assert_allclose(steer.remembered, [3.0, 4.0])

    def test_weights_multiply_and_are_not_remembered(self):
        steer = tm.Steering(AsDrawn(), TRAIN)
        value = steer(torch.tensor([1.0, 2.0]), torch.tensor([0, 1]), weights=torch.tensor([3.0, 1.0]))
        assert float(value) == pytest.approx(2.5)
        np.testing.assert_allclose(steer.remembered, [1.0, 2.0])

    def test_evaluation_and_second_passes_learn_nothing(self):
        steer = tm.Steering(I.GroupDRO(1.0), TRAIN)
        before = {name: value.clone() for name, value in steer.state_dict().items()}
        steer(torch.ones(2), torch.tensor([0, 1]), learn=False)
        steer.eval()(torch.ones(2), torch.tensor([0, 1]))
        assert all(
            torch.equal(value, before[name]) or value.isnan().all() for name, value in steer.state_dict().items()
        )

    def test_a_batch_without_a_group_leaves_it_out_of_the_gradients(self):
        model = network()
        steer = tm.Steering(I.UPGrad(), TRAIN, model=model)
        x, _ = TRAIN.tensors()
        places = TRAIN.of_group("common")[:8]
        losses = model(x[places])[:, 0].square()
        value = steer(losses, torch.as_tensor(TRAIN.codes[places]))
        torch.testing.assert_close(value, losses.mean())  # the only group counts 1, as without an intervention

    def test_gradients_give_the_aggregate(self):
        model = network()
        steer = tm.Steering(I.NormalisedGradient(), TRAIN, model=model)
        x, _ = TRAIN.tensors()
        codes = torch.as_tensor(TRAIN.codes)
        steer(model(x)[:, 0].square(), codes).backward()
        found = torch.cat([p.grad.flatten() for p in model.parameters()])
        expected = torch.zeros_like(found)
        for code in (0, 1):
            model.zero_grad()
            model(x[codes == code])[:, 0].square().mean().backward()
            own = torch.cat([p.grad.flatten() for p in model.parameters()])
            expected += own / own.norm()
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)

    def test_remembering_is_that_of_the_simulation(self):
        from tiltmeter.theory.simulation.compiled_steered import remember

        rng = np.random.default_rng(0)
        known, sums, counts = rng.random((4, 3)), rng.random((4, 3)), rng.integers(0, 3, (4, 3)).astype(float)
        known[0, 0] = np.nan
        expected = known.copy()
        remember(expected, sums.copy(), counts.copy(), 5.0)
        np.testing.assert_allclose(remembered(known, sums, counts, 5.0), expected)

    @pytest.mark.parametrize(
        ("make", "kind", "sentence"),
        [
            (lambda: tm.Steering(I.SAM(), TRAIN), TypeError, "Found SAM, which changes the steps of the optimiser: `train`"),
            (lambda: tm.Steering(I.UPGrad(), TRAIN), ValueError, "UPGrad sees gradients: give model= too."),
            (lambda: tm.Steering(I.GroupDRO(), "data"), TypeError, "`data` should be GroupedData. Found str."),
            (lambda: tm.Steering(I.GroupDRO(), TRAIN)(torch.ones(2)), ValueError, "`group` should hold the code of every point"),
            (lambda: tm.Steering(I.GroupDRO(), TRAIN)(torch.ones(2).mean(), CODES), ValueError, '`losses` should be one per point: use reduction="none". Found a single number.'),
            (lambda: tm.Steering(lab.interventions.SpectralDecoupling(), TRAIN)(torch.ones(()), CODES), ValueError, "`losses` should be one per point"),
            (lambda: tm.Steering(I.GroupDRO(), TRAIN)(torch.ones(2, 1), CODES), ValueError, "`losses` should be one per point. Found shape (2, 1): squeeze them, as losses[:, 0]."),
            (lambda: tm.Steering(I.GroupDRO(), TRAIN)(torch.ones(2), ["a", "b"]), TypeError, "`group` should be a tensor of codes, as torch.as_tensor(train.codes)[batch]. Found list."),
            (lambda: tm.Steering(I.GroupDRO(), TRAIN)(torch.ones(2), CODES + 7), ValueError, "`group` should hold codes from 0 to 1, of the groups 'common', 'rare'. Found 8."),
            (lambda: tm.Steering(I.GroupDRO(), TRAIN)(torch.ones(2), CODES - 1), ValueError, "Found -1."),
            (lambda: tm.Steering(I.GroupDRO(by="draws"), TRAIN)(torch.ones(2), CODES + 7), ValueError, "Found 8."),
            (lambda: tm.Steering(lab.interventions.SpectralDecoupling(), TRAIN)(torch.ones(2)), ValueError, "give scores= and y= too"),
            (lambda: tm.Steering(I.GroupDRO(), TRAIN).sampler(TRAIN, 4, 4), ValueError, 'A sampler is for interventions with by="draws"'),
            (lambda: tm.Steering(I.GroupDRO(), TRAIN.take(TRAIN.of_group("rare"))), ValueError, "is never drawn, so GroupDRO cannot weigh it"),
        ],
    )  # fmt: skip
    def test_bad_input(self, make, kind, sentence):
        with pytest.raises(kind) as error:
            make()
        assert sentence in str(error.value)


class TestBadInput:
    @pytest.mark.parametrize(
        ("laws", "more", "sentence"),
        [
            ((I.GroupDRO(by="draws"),), {"steps": None, "epochs": 1}, 'GroupDRO with by="draws" draws every batch anew: give steps= instead of epochs=.'),
            ((I.Balanced(by="draws"),), {"order": np.zeros((25, 16), dtype=int)}, 'An array as `order` says which points come, and so does Balanced with by="draws".'),
            ((I.Downsampled(),), {"order": np.zeros((25, 16), dtype=int)}, "An array as `order` names places in the data, which Downsampled changes."),
            ((I.SelecMix(),), {"weights": {"rare": 2.0}}, "`weights` are those of points, which SelecMix replaces: use an intervention of groups instead."),
            ((tm.interventions.GeneralisedCrossEntropy(),), {"loss": tm.Square()}, "GeneralisedCrossEntropy needs the logistic loss or cross-entropy. Found half squared error."),
            ((I.SAM(), I.SAM()), {}, "`interventions` should hold at most one StepIntervention. Found SAM, SAM."),
        ],
    )  # fmt: skip
    def test_before_training(self, laws, more, sentence, tmp_path):
        model = network()
        with pytest.raises(ValueError, match=r"\.") as error:
            tm.train(model, TRAIN, HELD_OUT, replace(RECIPE, **{"interventions": laws, **more}), to=tmp_path / "run")
        assert str(error.value) == sentence
        assert same(model, network())
        assert not (tmp_path / "run").exists()

    def test_held_out_groups(self):
        recipe = replace(RECIPE, interventions=(I.DFR(),))
        with pytest.raises(ValueError, match="DFR needs validation groups: give validation="):
            tm.train(network(), TRAIN, HELD_OUT, recipe)
        with pytest.raises(ValueError, match="`validation` is for interventions that need validation groups"):
            tm.train(network(), TRAIN, HELD_OUT, RECIPE, validation=HELD_OUT)
        with pytest.raises(ValueError, match="DFR delivers a model that answers with logits"):
            tm.train(network(), TRAIN, HELD_OUT, replace(recipe, loss=tm.Square()), validation=HELD_OUT)
        one_class = HELD_OUT.take(np.flatnonzero(HELD_OUT.y == 1))
        with pytest.raises(ValueError, match="DFR needs points of all 2 labels"):
            tm.train(network(), TRAIN, HELD_OUT, recipe, validation=one_class)
