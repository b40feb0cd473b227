"""An ensemble is its seeds: seed s is the run that `train` makes with seed s."""

from functools import partial
from itertools import product

import numpy as np
import pytest
import torch
from torch import nn

import tiltmeter as tm
from tiltmeter import GroupedData, Square, Trajectory, ensemble, load, predict, stack, train
from tiltmeter.measures import GroupMetric
from tiltmeter.recipe import Recipe, Watch
from tiltmeter.recipe.sampling import STRETCH, Draws, Epochs
from tiltmeter.record import Origin, at, every, log_spaced
from tiltmeter.theory import cases

SGD = partial(torch.optim.SGD, lr=0.1)


def small():
    return nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 1))


def one_by_one(make, data, held_out, seeds, recipe, watch=Watch()):
    runs = []
    for seed in seeds:
        torch.manual_seed(seed)
        runs.append(train(make(), data, held_out, recipe, seed=seed, watch=watch))
    return stack(runs)


def parted(settings):
    """The recipe and the watch of these settings."""
    evaluations = {name: value for name, value in settings.items() if name in ("when", "measures", "decide", "read")}
    return Recipe(**{name: value for name, value in settings.items() if name not in evaluations}), Watch(**evaluations)


def assert_same(together, alone, tolerance=1e-5):
    assert list(together) == list(alone)
    for name in alone:
        assert together[name].dims == alone[name].dims, name
        assert together[name].attrs == alone[name].attrs, name
        np.testing.assert_array_equal(together[name].time, alone[name].time)
        np.testing.assert_allclose(together[name], alone[name], atol=tolerance, rtol=tolerance, err_msg=name)


def mean_absolute_score(y_true, y_score):
    return np.abs(y_score).mean()


CASES = {
    "sgd": {"optimiser": SGD},
    "adam, half squared error": {"optimiser": partial(torch.optim.Adam, lr=0.01), "loss": Square()},
    "momentum, a loss of torch": {
        "optimiser": partial(torch.optim.SGD, lr=0.05, momentum=0.9),
        "loss": nn.BCEWithLogitsLoss(pos_weight=torch.tensor(2.0)),
    },
    "proportions and weights": {
        "optimiser": partial(torch.optim.AdamW, lr=0.01),
        "proportions": {"a": 0.3, "b": 0.7},
        "weights": {"a": 2.0, ("b", 1): 3.0},
    },
    "a measure, a decision": {
        "optimiser": SGD,
        "measures": [mean_absolute_score],
        "decide": lambda score: score > 0.1,
    },
}


@pytest.mark.parametrize("case", CASES)
def test_every_seed_is_the_run_of_that_seed(flat, case):
    data, held_out = flat.split(0.3)
    settings = {"steps": 25, "batch": 8, "when": at([0, 1, 10]), **CASES[case]}
    recipe, watch = parted(settings)
    together = ensemble(small, data, held_out, recipe, seeds=[4, 0, 7], watch=watch)
    assert_same(together, one_by_one(small, data, held_out, [4, 0, 7], recipe, watch))
    assert together["loss"].time.values.tolist() == [0, 1, 10, 25]
    assert together["loss"].seed.values.tolist() == [4, 0, 7]
    assert together.origin.seeds == (4, 0, 7)


def test_classes_and_a_model_that_needs_torch_func(images):
    def make():
        return nn.Sequential(nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.Flatten(), nn.Linear(108, 4))

    data, held_out = images.split(0.25)
    recipe, watch = Recipe(SGD, epochs=2, batch=16), Watch(when=every(5))
    together = ensemble(make, data, held_out, recipe, seeds=2, watch=watch)
    assert_same(together, one_by_one(make, data, held_out, range(2), recipe, watch))
    assert together["class_accuracy"].dims == ("time", "group", "class", "seed")


def test_outputs_to_read(flat):
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = small()

        def forward(self, x):
            return {"score": self.inner(x), "features": x}

    data, held_out = flat.split(0.3)
    recipe, watch = Recipe(SGD, steps=5), Watch(read=lambda output: output["score"])
    together = ensemble(Two, data, held_out, recipe, seeds=2, watch=watch)
    assert_same(together, one_by_one(Two, data, held_out, range(2), recipe, watch))


def test_a_loss_that_knows_no_single_point(flat):
    def median_like(score, y):
        return (score - y).pow(2).mean().sqrt()

    data, held_out = flat.split(0.3)
    recipe, watch = Recipe(SGD, steps=5, loss=median_like), Watch(decide=lambda score: score > 0.5)
    together = ensemble(small, data, held_out, recipe, seeds=2, watch=watch)
    assert_same(together, one_by_one(small, data, held_out, range(2), recipe, watch))


def test_grids_of_rates_share_seeds_and_batches(flat):
    data, held_out = flat.split(0.3)
    watch, rates, decays = Watch(when=at([0])), [0.02, 0.2, 0.1], [0.0, 0.5]
    recipes = {pair: Recipe(lr=pair[0], weight_decay=pair[1], steps=12, batch=8) for pair in product(rates, decays)}
    grid = ensemble(small, data, held_out, list(recipes.values()), seeds=2, watch=watch)
    assert grid["loss"].dims == ("time", "group", "seed", "lr", "weight_decay")
    for lr in rates:
        for decay in decays:
            alone = one_by_one(small, data, held_out, range(2), recipes[lr, decay], watch)
            chosen = grid.replace(
                {name: curve.sel(lr=lr, weight_decay=decay, drop=True) for name, curve in grid.items()}
            )
            assert_same(chosen, alone)
    noted = [recipe["optimiser"] for recipe in grid.origin.settings["recipes"]]
    assert [(one["lr"], one.get("weight_decay", 0.0)) for one in noted] == list(recipes)
    # One dimension for both: pairs instead of all combinations.
    pairs = ensemble(small, data, held_out, [recipes[0.02, 0.0], recipes[0.2, 0.5]], seeds=2, watch=watch)
    np.testing.assert_allclose(
        pairs["loss"].isel(recipe=1), grid["loss"].sel(lr=0.2, weight_decay=0.5), rtol=1e-5, atol=1e-7
    )


def test_runs_that_diverge_end_and_the_others_go_on(flat, tmp_path):
    data, held_out = flat.split(0.3)
    recipes = [Recipe(lr=rate, steps=60, loss=Square()) for rate in (0.1, 1e4)]
    settings = {"seeds": 2, "watch": Watch(when=every(10))}
    with np.errstate(all="ignore"):
        run = ensemble(lambda: nn.Linear(6, 1), data, held_out, recipes, to=tmp_path / "run", **settings)
    time = run.diverged.sel(lr=1e4)
    assert np.isnan(run.diverged.sel(lr=0.1)).all()
    assert (time > 0).all()
    assert (time < 60).all()
    assert np.isfinite(run["loss"].sel(lr=0.1)).all()
    assert run["loss"].sel(lr=1e4).isel(time=-1).isnull().all()
    assert load(tmp_path / "run") == run
    with np.errstate(all="ignore"):
        ended = ensemble(lambda: nn.Linear(6, 1), data, held_out, recipes[1], **settings)
    assert ended["loss"].time.values[-1] == ended.diverged.max() < 60


def test_nothing_around_it_changes(flat):
    torch.manual_seed(3)
    np.random.seed(3)  # noqa: NPY002
    expected = torch.rand(2), np.random.rand(2)  # noqa: NPY002
    torch.manual_seed(3)
    np.random.seed(3)  # noqa: NPY002
    dropout = lambda: nn.Sequential(nn.Linear(6, 5), nn.Dropout(0.5), nn.Linear(5, 1))  # noqa: E731
    first = ensemble(dropout, flat, None, Recipe(SGD, steps=10), seeds=3)
    assert torch.equal(torch.rand(2), expected[0])
    assert (np.random.rand(2) == expected[1]).all()  # noqa: NPY002
    assert ensemble(dropout, flat, None, Recipe(SGD, steps=10), seeds=3) == first


def test_the_predicted_change_of_leader_is_found_over_seeds():
    """The theory's crossing, trained: the group of larger variance leads first, the larger group in the end."""
    (predicted,) = tm.leaders(predict(*cases.centred_crossing()), "loss").changes
    d, rng = 40, np.random.default_rng(0)
    teachers = np.linalg.qr(rng.normal(size=(d, 2)))[0] * np.sqrt(d)
    teachers = {"+": teachers[:, 0], "-": 0.5 * teachers[:, 0] + np.sqrt(0.75) * teachers[:, 1]}
    group = np.where(rng.random(8000) < 0.8, "+", "-")
    x = rng.normal(size=(8000, d)) * np.sqrt(np.where(group == "+", 0.5, 1.5))[:, None]
    y = np.sign(np.where(group == "+", x @ teachers["+"], x @ teachers["-"]))
    data, held_out = GroupedData(x, y, group).split(0.5)

    def at_zero():
        model = nn.Linear(d, 1, bias=False)
        nn.init.zeros_(model.weight)
        return model

    run = ensemble(
        at_zero,
        data,
        held_out,
        Recipe(lr=0.1 / d, steps=20 * d, batch=1, sampling=Draws(), loss=Square()),
        watch=Watch(when=log_spaced(40)),
        seeds=8,
    )
    # The mean as it is, since the theory speaks of it; what eight seeds and these points show of it is less.
    mean = Trajectory({"loss": run["loss"].mean("seed")}, "step", Origin("mean over seeds"))
    late = [crossing for crossing in tm.leaders(mean, "loss").changes if crossing.time > d]
    assert [(crossing.leader_before, crossing.leader_after) for crossing in late] == [("-", "+")]
    assert late[0].time / d == pytest.approx(predicted.time, rel=0.35)


class TestSampling:
    @pytest.mark.parametrize(
        "sampling", [Epochs(), Draws(), Draws({"a": 0.5, "b": 0.5})], ids=["epochs", "draws", "shares"]
    )
    def test_a_batch_depends_on_seed_and_step_alone(self, flat, sampling):
        steps = range(2 * max(STRETCH, sampling.batches(flat, 16)))
        forward = [sampling.batch(flat, 16, 5, step) for step in steps]
        backward = [sampling.batch(flat, 16, 5, step) for step in reversed(steps)][::-1]
        other = [sampling.batch(flat, 16, 6, step) for step in steps]
        assert all((a == b).all() for a, b in zip(forward, backward, strict=True))
        assert not all((a == b).all() for a, b in zip(forward, other, strict=True))

    def test_draws_follow_the_proportions(self, flat):
        places = np.concatenate([Draws({"a": 0.3, "b": 0.7}).batch(flat, 64, 0, step) for step in range(STRETCH)])
        share = (flat.codes[places] == 1).mean()
        assert abs(share - 0.7) < 4 * np.sqrt(0.21 / len(places))
        counts = np.bincount(places, minlength=len(flat))[flat.codes == 1]
        # Uniform within the group: the spread of Poisson counts.
        assert abs(counts.var() / counts.mean() - 1.0) < 4 * np.sqrt(2 / len(counts))
        assert (flat.codes[Draws({"a": 1.0}).batch(flat, 100, 0, 0)] == 0).all()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"train": [1]}, "`train` should be GroupedData. Found list."),
        ({"held_out": [1]}, "`held_out` should be GroupedData. Found list."),
        ({"seeds": 0}, "`seeds` should lie between 1 and 100,000,000. Found seeds = 0."),
        (
            {"seeds": "all"},
            "`seeds` should be how many, or a list of different whole numbers from 0. Found seeds = 'all'.",
        ),
        (
            {"seeds": [0, -1]},
            "`seeds` should be how many, or a list of different whole numbers from 0. Found seeds = [0, -1].",
        ),
        (
            {"seeds": [1, 1]},
            "`seeds` should be how many, or a list of different whole numbers from 0. Found seeds = [1, 1].",
        ),
        ({"optimiser": None, "lr": -0.1}, "`lr` should be a positive number. Found lr = -0.1."),
        ({"optimiser": None, "lr": [0.1, 0.2]}, "`lr` should be a positive number. Found lr = [0.1, 0.2]."),
        ({"make": lambda: 3}, "`make` should return a torch.nn.Module. Found int."),
        (
            {"optimiser": lambda _: None},
            "`optimiser` should make a torch optimiser, as partial(torch.optim.AdamW, lr=3e-4). "
            "Found that it makes nothing.",
        ),
        ({"when": 10}, "`when` should choose steps, as log_spaced(20) or every(100). Found int."),
        (
            {"measures": [lambda _: {}]},
            "`measures` of an ensemble should be functions f(y_true, y_score). Found one of a snapshot.",
        ),
        (
            {"measures": [GroupMetric(mean_absolute_score), GroupMetric(mean_absolute_score)]},
            "Two measures give a curve 'mean_absolute_score': rename one.",
        ),
        (
            {"loss": lambda score, y: (score - y).abs().max(), "decide": lambda s: s > 0, "weights": {"a": 2.0}},
            "Weights multiply the loss of each point, but <lambda> gives one number per batch.",
        ),
    ],
)
def test_bad_input(flat, change, sentence):
    given = {"make": small, "train": flat, "held_out": None, "seeds": 2, "optimiser": SGD, "steps": 3, **change}
    make, data, held_out, seeds = (given.pop(name) for name in ("make", "train", "held_out", "seeds"))

    def asked():
        recipe, watch = parted(given)
        ensemble(make, data, held_out, recipe, seeds=seeds, watch=watch)

    with pytest.raises((TypeError, ValueError)) as error:
        asked()
    assert str(error.value) == sentence
