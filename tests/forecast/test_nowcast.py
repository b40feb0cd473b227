"""The rest of a training from where it stands: exact for a linear model, better the later it begins."""

from dataclasses import replace
from functools import partial

import pytest
import torch
from torch import nn
from torch.optim import lr_scheduler

import tiltmeter as tm
from tiltmeter.forecast.twin.continued import kept_places, powers
from tiltmeter.forecast.twin.cut import cut
from tiltmeter.modules.networks import mlp

RECIPE = tm.Recipe(
    partial(torch.optim.AdamW, lr=1e-2),
    schedule=partial(lr_scheduler.CosineAnnealingLR, T_max=60),
    steps=60,
    batch=32,
    clip=0.5,
)
SCHEDULES = {
    "torch": RECIPE,
    "ours": replace(RECIPE, schedule=tm.schedules.Cosine(1e-2, 60)),
    "momentum": tm.Recipe(lr=0.05, momentum=0.9, steps=60),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_linear_model_goes_on_exactly(two_labels, tmp_path, name):
    torch.manual_seed(0)
    recipe = SCHEDULES[name]
    model = nn.Linear(6, 1).double()
    start = {key: value.clone() for key, value in model.state_dict().items()}
    whole = tm.train(model, *two_labels, recipe, watch=tm.Watch(when=tm.record.every(10)), seed=3)
    model.load_state_dict(start)

    class Stop(Exception):
        pass

    def stop(snapshot):
        if snapshot.step == 30:
            raise Stop
        return {}

    with pytest.raises(Stop):
        tm.train(
            model,
            *two_labels,
            recipe,
            watch=tm.Watch(when=tm.record.every(10), measures=(stop,)),
            seed=3,
            to=tmp_path / "run",
            checkpoint=tm.record.at([20]),
        )
    model.load_state_dict(start)  # a network of its kind: the weights are those of the checkpoint
    rest = tm.nowcast(tmp_path / "run", model, *two_labels, recipe, watch=tm.Watch(when=tm.record.every(10)))
    assert rest["loss"].time.values.tolist() == [20, 30, 40, 50, 60]
    assert float(abs(rest["loss"] - whole["loss"].sel(time=rest["loss"].time)).max()) < 1e-6
    assert rest.origin.settings["calculation"]["from_step"] == 20


def test_in_a_loop_of_one_s_own_the_later_the_better(two_labels):
    train, held_out = two_labels
    torch.manual_seed(0)
    model = mlp(6, (64,))
    recipe = tm.Recipe(partial(torch.optim.Adam, lr=1e-2), steps=120, batch=32, order=0)
    optimiser = recipe.make_optimiser(model.parameters())
    x, y = train.tensors()
    told, losses = {}, {}
    with tm.Probe(model, held_out, tm.Watch(when=tm.record.every(20)), budget=None) as probe:
        for step, places in enumerate(tm.training.BatchOrder(0, train, recipe)):
            probe(step)
            if step in (0, 80):
                told[step] = tm.nowcast(
                    step, model, train, held_out, recipe, optimiser=optimiser, watch=tm.Watch(when=tm.record.every(20))
                )
            optimiser.zero_grad()
            nn.functional.soft_margin_loss(model(x[places].float())[:, 0], y[places].float()).backward()
            optimiser.step()
    run = probe.trajectory()["loss"].sel(time=120)
    for step, one in told.items():
        losses[step] = float(abs(one["loss"].sel(time=120) - run).max())
    assert losses[80] < 1e-5  # with the run's own batches, the rest rehearsed is the rest
    assert losses[0] < 1e-5
    assert told[80].origin.settings["promise"]["sentence"].startswith("The rest rehearsed with the run's own batches")


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_twin_of_full_width_goes_on_exactly_and_narrower_ones_nearly(two_labels, name):
    train, held_out = two_labels
    recipe = replace(SCHEDULES[name], order=0)
    torch.manual_seed(0)
    model = mlp(6, (64, 64))
    start = {key: value.clone() for key, value in model.state_dict().items()}
    watch = tm.Watch(when=tm.record.every(10))
    run = tm.train(model, train, held_out, recipe, watch=watch)
    model.load_state_dict(start)
    optimiser = recipe.make_optimiser(model.parameters())
    scheduling = recipe.scheduling(optimiser)
    x, y = train.tensors()
    told = {}
    for step, places in enumerate(tm.training.BatchOrder(0, train, recipe)):
        if step == 30:
            for share in (1, 1 / 2):
                route = tm.methods.Twin(share, count=4)
                told[share] = tm.nowcast(
                    step, model, train, held_out, recipe, optimiser=optimiser, method=route, watch=watch
                )
            break
        scheduling.before(step)
        optimiser.zero_grad()
        nn.functional.soft_margin_loss(model(x[places].float())[:, 0], y[places].float()).backward()
        if recipe.clip is not None:
            nn.utils.clip_grad_norm_(model.parameters(), recipe.clip)
        optimiser.step()
        scheduling.after()
    rest = run["loss"].sel(time=slice(30, None))
    assert told[1]["loss"].time.values.tolist() == [30, 40, 50, 60]
    assert float(abs(told[1]["loss"] - rest).max()) < 1e-5
    narrow = told[1 / 2]["loss"]
    assert float(abs(narrow.sel(time=30) - rest.sel(time=30)).max()) < 1e-5
    # Nearer to the run than the assumption that all stays as it is.
    assert float(abs(narrow - rest).max()) < 0.5 * float(abs(rest - rest.sel(time=30)).max())
    assert told[1 / 2].origin.settings["calculation"]["from_step"] == 30
    assert told[1 / 2].origin.settings["copies"] == 4


def test_what_an_optimiser_remembers_is_cut_with_the_weights():
    torch.manual_seed(0)
    model = mlp(6, (64, 64))
    narrow = cut(model, torch.randn(100, 6), 0.25, 3)
    places = kept_places(model, torch.zeros(2, 6), narrow.units, None)
    for name, parameter in narrow.model.named_parameters():
        assert torch.equal(model.get_parameter(name).flatten()[places[name]], parameter)
    for make, known in (
        (torch.optim.SGD, {"momentum_buffer": 0}),
        (partial(torch.optim.SGD, momentum=0.9, lr=0.1), {"momentum_buffer": 1}),
        (torch.optim.RMSprop, {"square_avg": 2}),
        (torch.optim.AdamW, {"exp_avg": 1, "exp_avg_sq": 2, "step": 0}),
    ):
        power = powers(make, [torch.zeros(3, 2), torch.zeros(3)])
        assert {key: power(key) for key in known} == known


def test_bad_input(two_labels, tmp_path):
    model = nn.Linear(6, 1)
    recipe = tm.Recipe(torch.optim.Adam, steps=20)
    with pytest.raises(FileNotFoundError, match="holds no checkpoint"):
        tm.nowcast(tmp_path, model, *two_labels, recipe)
    tm.train(model, *two_labels, recipe, to=tmp_path / "run")
    with pytest.raises(ValueError, match=r"should have steps to come. Found 20 of 20 done"):
        tm.nowcast(tmp_path / "run", model, *two_labels, recipe)
    with pytest.raises(ValueError, match="another recipe: `batch` differs"):
        tm.nowcast(tmp_path / "run", model, *two_labels, replace(recipe, steps=40, batch=8))
    with pytest.raises(TypeError, match="`optimiser` should be the one in use"):
        tm.nowcast(5, model, *two_labels, recipe)
    with pytest.raises(ValueError, match="`optimiser` should be that of the recipe"):
        tm.nowcast(5, model, *two_labels, recipe, optimiser=torch.optim.SGD(model.parameters()))
    with pytest.raises(TypeError, match=r"`method` of a nowcast should be Rehearsal"):
        tm.nowcast(tmp_path / "run", model, *two_labels, recipe, method=tm.methods.Kernel())
