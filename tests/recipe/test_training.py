"""Schedulers, clipping and order in `train` and `ensemble`: equal to a loop written out in plain torch."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn
from torch.optim.lr_scheduler import (
    CosineAnnealingLR,
    LambdaLR,
    LinearLR,
    MultiStepLR,
    OneCycleLR,
    SequentialLR,
)

import tiltmeter as tm
from tiltmeter.recipe.sampling import Draws, Epochs
from tiltmeter.recipe.table import recipe_from_table

STEPS, BATCH = 24, 8
FEW = tm.Watch(when=tm.record.at([0, STEPS // 2]))
SGD = partial(torch.optim.SGD, lr=0.5, momentum=0.5)


def network():
    return nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 1))


def seeded(seed=0, make=network):
    torch.manual_seed(seed)
    return make()


def warm_then_cosine(optimiser):
    parts = [LinearLR(optimiser, 0.1, total_iters=5), CosineAnnealingLR(optimiser, T_max=STEPS - 5)]
    return SequentialLR(optimiser, parts, milestones=[5])


SCHEDULERS = {
    "cosine": partial(CosineAnnealingLR, T_max=STEPS),
    "milestones": partial(MultiStepLR, milestones=[7, 15], gamma=0.1),
    "lambda": partial(LambdaLR, lr_lambda=lambda step: 0.9**step),
    "sequence": warm_then_cosine,
    "one cycle": partial(OneCycleLR, max_lr=0.5, total_steps=STEPS + 1, cycle_momentum=False),
}


def by_hand(model, train, optimiser, batches, scheduler=None, rate=None, clip=None):
    """What anyone would write."""
    own = optimiser(model.parameters())
    ratios = [group["lr"] / own.param_groups[0]["lr"] for group in own.param_groups]
    schedule = None if scheduler is None else scheduler(own)
    x, y = train.tensors()
    for step, places in enumerate(batches):
        if rate is not None:
            for group, ratio in zip(own.param_groups, ratios, strict=True):
                group["lr"] = rate(step) * ratio
        own.zero_grad()
        nn.functional.softplus(-(2.0 * y[places] - 1.0) * model(x[places])[:, 0]).mean().backward()
        if clip is not None:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        own.step()
        if schedule is not None:
            schedule.step()
    return model


def epochs(train, seed=0, steps=STEPS):
    return [Epochs().batch(train, BATCH, seed, step) for step in range(steps)]


def trained(data, recipe, seed=0, **more):
    model = seeded()
    tm.train(model, *data, recipe, seed=seed, **{"watch": FEW, **more})
    return model


def assert_equal(one, other):
    for name, value in one.state_dict().items():
        assert torch.equal(value, other.state_dict()[name]), name


def recipe(optimiser=SGD, **given):
    return tm.Recipe(optimiser, **{"steps": STEPS, "batch": BATCH, "loss": tm.Logistic(), **given})


class TestTrain:
    @pytest.mark.parametrize("clip", [None, 0.05])
    @pytest.mark.parametrize("name", SCHEDULERS)
    def test_a_torch_scheduler_bit_by_bit(self, data, name, clip):
        found = trained(data, recipe(schedule=SCHEDULERS[name], clip=clip))
        expected = by_hand(seeded(), data[0], SGD, epochs(data[0]), SCHEDULERS[name], clip=clip)
        assert_equal(found, expected)
        plain = trained(data, recipe(clip=clip))
        assert not torch.equal(plain[0].weight, found[0].weight)

    def test_a_scheduler_of_momentum_too(self, data):
        cycle = partial(OneCycleLR, max_lr=0.5, total_steps=STEPS + 1)
        assert_equal(trained(data, recipe(schedule=cycle)), by_hand(seeded(), data[0], SGD, epochs(data[0]), cycle))

    def test_clipping_bit_by_bit(self, data):
        found = trained(data, recipe(clip=0.05))
        assert_equal(found, by_hand(seeded(), data[0], SGD, epochs(data[0]), clip=0.05))
        assert not torch.equal(found[0].weight, trained(data, recipe())[0].weight)
        # Negative control: a norm that no gradient reaches changes nothing.
        assert_equal(trained(data, recipe(clip=1e6)), trained(data, recipe()))

    @pytest.mark.parametrize("parts", [2, 3, 20])  # 20: more parts than points
    def test_accumulated_gradients_bit_by_bit(self, data, parts):
        found = trained(data, recipe(accumulate=parts, clip=0.05))
        model = seeded()
        own, (x, y) = SGD(model.parameters()), data[0].tensors()
        for places in epochs(data[0]):
            own.zero_grad()
            size = -(-len(places) // parts)  # the last batch of an epoch is smaller
            points, labels = x[places], y[places]
            for some, own_labels in zip(points.split(size), labels.split(size), strict=True):
                each = nn.functional.softplus(-(2.0 * own_labels - 1.0) * model(some)[:, 0])
                (each.mean() / (len(places) / len(some))).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.05)
            own.step()
        assert_equal(found, model)
        whole = trained(data, recipe(clip=0.05))
        torch.testing.assert_close(found.state_dict(), whole.state_dict())  # the same gradient, but for rounding

    def test_accumulated_gradients_of_weighted_points(self, data):
        weights = {data[0].groups[0]: 3.0}
        one, other = (trained(data, recipe(accumulate=parts, weights=weights)) for parts in (1, 4))
        torch.testing.assert_close(one.state_dict(), other.state_dict())

    def test_autocast_bit_by_bit(self, data):
        found = trained(data, recipe(autocast="bfloat16"))
        model = seeded()
        own, (x, y) = SGD(model.parameters()), data[0].tensors()
        for places in epochs(data[0]):
            own.zero_grad()
            with torch.autocast("cpu", torch.bfloat16):
                score = model(x[places])[:, 0]
            nn.functional.softplus(-(2.0 * y[places] - 1.0) * score.float()).mean().backward()
            own.step()
        assert_equal(found, model)
        assert not torch.equal(found[0].weight, trained(data, recipe())[0].weight)

    def test_compiled_without_other_arithmetic_is_the_same_to_the_bit(self, data):
        seen = []

        def backend(graph, inputs):
            seen.append(graph)
            return graph.forward

        torch._dynamo.register_backend(backend, name="watched_by_a_test")
        assert_equal(trained(data, recipe(compile="watched_by_a_test")), trained(data, recipe()))
        assert seen

    @pytest.mark.parametrize("more", [{"accumulate": 2}, {"autocast": "bfloat16"}])
    def test_a_rehearsal_runs_the_network_as_the_training_does(self, data, more):
        asked = recipe(order=0, **more)
        ahead = tm.forecast(seeded(), *data, asked, watch=FEW, method=tm.methods.Rehearsal(1))
        run = tm.train(seeded(), *data, asked, watch=FEW)
        np.testing.assert_array_equal(ahead["loss"], run["loss"])

    def test_settings_in_a_file(self):
        table = {"lr": 0.1, "steps": 5, "accumulate": 2, "autocast": "bfloat16", "compile": True}
        assert recipe_from_table(table) == tm.Recipe(lr=0.1, steps=5, accumulate=2, autocast="bfloat16", compile=True)

    @pytest.mark.parametrize(
        "schedule", [tm.schedules.Cosine(0.5, STEPS), tm.schedules.Warmup(0.5, 10), lambda step: 0.5 / (1 + step)]
    )
    def test_a_schedule_of_ours_bit_by_bit(self, data, schedule):
        """Also from a rate of zero, where a warm-up begins."""
        plain = partial(torch.optim.SGD, lr=1.0)
        expected = by_hand(seeded(), data[0], plain, epochs(data[0]), rate=schedule)
        assert_equal(trained(data, recipe(None, schedule=schedule)), expected)
        assert_equal(trained(data, recipe(plain, schedule=schedule)), expected)
        assert not torch.equal(expected[0].weight, seeded()[0].weight)

    @pytest.mark.parametrize("kind", ["ours", "torch"])
    def test_rates_of_layers_keep_their_ratios(self, data, kind):
        def layers(parameters):
            first, second, *others = parameters
            return torch.optim.SGD([{"params": [first, second]}, {"params": others, "lr": 0.05}], lr=0.5)

        schedule = tm.schedules.Cosine(0.5, STEPS) if kind == "ours" else SCHEDULERS["cosine"]
        told = {"rate": schedule} if kind == "ours" else {"scheduler": schedule}
        found = trained(data, recipe(layers, schedule=schedule))
        assert_equal(found, by_hand(seeded(), data[0], layers, epochs(data[0]), **told))
        alike = trained(data, recipe(partial(torch.optim.SGD, lr=0.5), schedule=schedule))
        assert not torch.equal(found[2].weight, alike[2].weight)

    @pytest.mark.parametrize("name", [*SCHEDULERS, "momentum too", "ours"])
    def test_resumed_in_the_middle_of_a_schedule(self, data, tmp_path, name):
        more = {
            "momentum too": partial(OneCycleLR, max_lr=0.5, total_steps=STEPS + 1),
            "ours": tm.schedules.Cosine(0.5, STEPS),
        }
        asked = recipe(schedule={**SCHEDULERS, **more}[name], clip=0.5)
        whole = trained(data, asked)

        class Killed(BaseException):
            """As a kill, it leaves no time to write anything."""

        class Dies(nn.Sequential):
            count = 0

            def forward(self, x):
                if self.training and torch.is_grad_enabled() and len(x) == BATCH:
                    Dies.count += 1
                    if Dies.count == 17:
                        raise Killed
                return super().forward(x)

        settings = {
            "to": tmp_path / "run",
            "checkpoint": tm.record.every(5),
            "watch": tm.Watch(when=tm.record.every(4)),
        }
        dying = Dies(*seeded())
        with pytest.raises(Killed):
            tm.train(dying, *data, asked, **settings)
        Dies.count = -1000
        resumed = Dies(*seeded(9))
        tm.train(resumed, *data, asked, **settings, resume=True)
        assert Dies.count == -1000 + STEPS - 15  # from the checkpoint of step 15
        assert_equal(resumed, whole)


class TestOrder:
    def test_a_seed_fixes_the_batches_whatever_the_run(self, data):
        one, other = (trained(data, recipe(order=7), seed=seed) for seed in (0, 1))
        assert_equal(one, other)
        assert_equal(one, by_hand(seeded(), data[0], SGD, epochs(data[0], 7)))
        assert_equal(one, trained(data, recipe(), seed=7))
        assert not torch.equal(one[0].weight, trained(data, recipe(), seed=0)[0].weight)

    def test_a_seed_of_draws(self, data):
        batches = [Draws({"a": 1, "b": 3}).batch(data[0], BATCH, 7, step) for step in range(STEPS)]
        found = trained(data, recipe(order=7, proportions={"a": 1, "b": 3}), seed=3)
        assert_equal(found, by_hand(seeded(), data[0], SGD, batches))

    def test_places_are_the_batches(self, data):
        places = np.random.default_rng(0).integers(0, len(data[0]), (STEPS + 3, 5))
        asked = tm.Recipe(SGD, steps=STEPS, order=places, loss=tm.Logistic())
        assert asked.batch == 5
        alone = trained(data, asked, seed=4)
        assert_equal(alone, by_hand(seeded(), data[0], SGD, places[:STEPS]))
        together = tm.ensemble(network, *data, asked, seeds=[0, 2], watch=FEW)
        for seed in (0, 2):
            run = tm.train(seeded(seed), *data, asked, seed=seed, watch=FEW)
            np.testing.assert_allclose(together["loss"].sel(seed=seed), run["loss"], rtol=1e-5, atol=1e-6)

    def test_places_beyond_the_data_are_refused(self, data):
        points = len(data[0])
        asked = tm.Recipe(lr=0.1, steps=2, order=[[0, 1], [2, points]])
        sentence = f"`order` should hold places below {points}, the number of points. Found {points}."
        for work in (
            lambda: tm.train(network(), *data, asked),
            lambda: tm.ensemble(network, *data, asked),
            lambda: tm.forecast(network(), *data, asked),
        ):
            with pytest.raises(ValueError, match="order") as error:
                work()
            assert str(error.value) == sentence


def assert_each_seed_is_its_run(data, asked, chosen=lambda curve: curve, one=None, together=None):
    together = tm.ensemble(network, *data, asked, seeds=[3, 0], watch=FEW) if together is None else together
    for seed in (3, 0):
        run = tm.train(seeded(seed), *data, asked if one is None else one, seed=seed, watch=FEW)
        for name in run:
            found = chosen(together[name].sel(seed=seed))
            np.testing.assert_allclose(found, run[name], rtol=1e-4, atol=1e-5, err_msg=name)
    return together


class TestEnsemble:
    @pytest.mark.parametrize(
        "given",
        [
            *({"schedule": SCHEDULERS[name]} for name in SCHEDULERS),
            {"schedule": tm.schedules.Warmup(0.5, 10)},
            {"clip": 0.05},
            {"clip": 0.05, "schedule": SCHEDULERS["cosine"]},
            {"optimiser": partial(torch.optim.AdamW, lr=0.05), "clip": 0.05, "schedule": SCHEDULERS["cosine"]},
            {"optimiser": partial(torch.optim.SGD, lr=0.5), "clip": 0.05},
            {"order": 5},
        ],
        ids=lambda given: ", ".join(given),
    )
    def test_every_seed_is_its_run(self, data, given):
        asked = recipe(**given)
        together = assert_each_seed_is_its_run(data, asked)
        plain = tm.ensemble(
            network, *data, replace(asked, schedule=None, clip=None, order=None), seeds=[3, 0], watch=FEW
        )
        assert float(abs(together["loss"] - plain["loss"]).max()) > 1e-3

    @pytest.mark.parametrize(
        ("form", "schedule"),
        [("short", None), ("torch", SCHEDULERS["cosine"]), ("adamw", SCHEDULERS["milestones"])],
        ids=["short", "torch", "adamw"],
    )
    def test_recipes_over_rates_and_decays(self, data, form, schedule):
        def one(lr, decay):
            if form == "short":
                return recipe(None, lr=lr, weight_decay=decay, schedule=schedule)
            kind = torch.optim.SGD if form == "torch" else torch.optim.AdamW
            return recipe(partial(kind, lr=lr, weight_decay=decay), schedule=schedule)

        rates, decays = [0.3, 0.1], [0.0, 0.2]
        recipes = [one(lr, decay) for lr in rates for decay in decays]
        grid = tm.ensemble(network, *data, recipes, seeds=[3, 0], watch=FEW)
        assert grid["loss"].dims == ("time", "group", "seed", "lr", "weight_decay")
        for lr in rates:
            for decay in decays:
                place = {"lr": lr, "weight_decay": decay}
                assert_each_seed_is_its_run(
                    data, None, lambda curve, place=place: curve.sel(place), one(lr, decay), together=grid
                )

    @pytest.mark.parametrize(
        ("pairs", "dims"),
        [
            ([(0.1, 0.0), (0.2, 0.0)], ("lr",)),
            ([(0.1, 0.0), (0.1, 0.2)], ("weight_decay",)),
            ([(0.1, 0.0), (0.2, 0.2)], ("recipe",)),
            ([(0.1, 0.0), (0.1, 0.0)], ("recipe",)),
            ([(0.1, 0.0), (0.2, 0.0), (0.1, 0.2), (0.2, 0.2)], ("recipe",)),
        ],
    )
    def test_dimensions(self, data, pairs, dims):
        recipes = [tm.Recipe(lr=lr, weight_decay=decay, steps=2) for lr, decay in pairs]
        run = tm.ensemble(network, *data, recipes, seeds=1, watch=FEW)
        assert run["loss"].dims == ("time", "group", "seed", *dims)
        assert run.origin.settings["recipes"] == [one.to_json() for one in recipes]

    def test_schedules_may_differ(self, data):
        recipes = [recipe(None, schedule=tm.schedules.Cosine(rate, STEPS)) for rate in (0.1, 0.5)]
        together = tm.ensemble(network, *data, recipes, seeds=[3, 0], watch=FEW)
        for number, one in enumerate(recipes):
            assert_each_seed_is_its_run(
                data, None, lambda curve, number=number: curve.sel(recipe=number), one, together=together
            )

    def test_rates_that_a_schedule_replaces_are_no_dimension(self, data):
        recipes = [recipe(partial(torch.optim.SGD, lr=lr), schedule=tm.schedules.Cosine(0.5, STEPS)) for lr in (1, 2)]
        run = tm.ensemble(network, *data, recipes, seeds=1, watch=FEW)
        assert run["loss"].dims == ("time", "group", "seed", "recipe")
        np.testing.assert_allclose(run["loss"].sel(recipe=0), run["loss"].sel(recipe=1), rtol=1e-6)

    @pytest.mark.parametrize(
        ("change", "sentence"),
        [
            ({"batch": 9}, "Found another `batch`: 8 and 9."),
            ({"clip": 1.0}, "Found another `clip`: None and 1.0."),
            ({"order": 3}, "Found another `order`: None and 3."),
            ({"loss": tm.Square()}, "Found another `loss`:"),
            ({"optimiser": partial(torch.optim.SGD, lr=0.5, momentum=0.6)}, "Found another `optimiser`:"),
            ({"optimiser": partial(torch.optim.Adam, lr=0.5)}, "Found another `optimiser`:"),
        ],
    )
    def test_recipes_that_cannot_be_trained_together(self, data, change, sentence):
        with pytest.raises(ValueError, match="may differ in lr, weight_decay and schedule") as error:
            tm.ensemble(network, *data, [recipe(), replace(recipe(), **change)], seeds=1)
        assert sentence in str(error.value)

    def test_an_empty_list(self, data):
        with pytest.raises(ValueError, match=r"`recipe` should be a Recipe or several. Found an empty list."):
            tm.ensemble(network, *data, [])


def test_a_rate_set_in_the_only_group_counts(data):
    def grouped(parameters):
        return torch.optim.SGD([{"params": list(parameters), "lr": 0.3}], lr=1e-4)

    asked, plain = recipe(grouped), recipe(partial(torch.optim.SGD, lr=0.3))
    assert_each_seed_is_its_run(data, asked)
    np.testing.assert_array_equal(
        tm.forecast(seeded(), *data, asked)["loss"], tm.forecast(seeded(), *data, plain)["loss"]
    )
