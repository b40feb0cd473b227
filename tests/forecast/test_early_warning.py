"""The early warning: what it says, that it changes nothing, and how often it is wrong on tasks drawn beforehand."""

import copy
from functools import partial

import numpy as np
import pytest
import torch
import xarray as xr
from torch import nn

import tiltmeter as tm
from tiltmeter.forecast.nowcast import DATED, NAMED, WRONGLY, outlook_of
from tiltmeter.modules.networks import mlp

#: Tasks of the study, drawn by their number alone; the bound was set before any of them was run.
TASKS, BOUND = 24, 0.1


def told(losses, errors=0.0, steps=(10, 20, 40)):
    """A nowcast of two or more groups."""
    coords = {"time": list(steps), "group": list("abc")[: len(losses[0])]}
    loss = xr.DataArray(losses, dims=("time", "group"), coords=coords)
    return tm.Trajectory({"loss": loss, "loss_se": xr.full_like(loss, errors)}, "step", tm.record.Origin("forecast"))


def test_what_is_said():
    unsure = outlook_of(told([[0.30, 0.40], [0.25, 0.24], [0.25, 0.22]]))
    assert (unsure.leader, unsure.leader_at_end, unsure.decided) == ("a", "b", False)  # its lead is all to come
    assert str(unsure) == "Step 10: nothing seen now decides who leads at the end, step 40."
    stays = outlook_of(told([[0.3, 0.5], [0.2, 0.41], [0.1, 0.32]]))
    rate = "In a study 0 of 64 leaders named so were wrong."
    assert str(stays) == f"Step 10: a leads and is forecast to lead at the end, step 40. {rate}"
    assert stays.change is None
    noisy = outlook_of(told([[0.3, 0.5], [0.2, 0.41], [0.1, 0.32]], errors=0.2))
    assert not noisy.decided
    assert noisy.leader is None
    three = outlook_of(told([[0.3, 0.5, 0.4], [0.2, 0.41, 0.2], [0.1, 0.32, 0.15]]))
    assert three.lead == pytest.approx(0.05)  # to the next group


def test_a_change_of_the_lead_is_dated():
    found = outlook_of(told([[0.30, 0.32], [0.30, 0.26], [0.30, 0.26]]))
    assert found.change == pytest.approx(10 + 10 * 0.02 / 0.06)
    assert str(found) == (
        "Step 10: a's lead will end near step 13.3; b is forecast to lead at the end, step 40. "
        "In a study 0 of 64 leaders named so were wrong, and 2 of 3 dates were within a factor 1.5."
    )
    curve = told([[0.30, 0.5], [0.3, 0.5], [0.3, 0.5]])["loss"].copy()
    curve.attrs["better"] = "higher"
    errors = xr.full_like(curve, 0.01)
    both = tm.Trajectory({"accuracy": curve, "accuracy_se": errors}, "step", tm.record.Origin("forecast"))
    assert outlook_of(both, "accuracy").leader == "b"


def test_a_leader_is_said_only_where_one_is_shown():
    losses = [[0.30, 0.32], [0.30, 0.22], [0.30, 0.10]]
    rest = told(losses, errors=0.015)  # the lead now is 0.02 and its standard error 0.021
    found = outlook_of(rest)
    assert (found.leader, found.leader_at_end, found.change) == (None, "b", None)
    assert str(found) == (
        "Step 10: no leader is shown now; b is forecast to lead at the end, step 40. "
        "In a study 0 of 64 leaders named so were wrong."
    )
    assert outlook_of(told(losses, errors=0.005)).leader == "a"
    # Of three groups all pairs are looked at: 2.2 standard errors are no longer enough.
    assert outlook_of(told([[0.3, 0.331], [0.3, 0.331], [0.3, 0.331]], errors=0.01)).leader == "a"
    assert outlook_of(told([[0.3, 0.331, 0.5], [0.3, 0.331, 0.5], [0.3, 0.331, 0.5]], errors=0.01)).leader is None
    without = tm.Trajectory({"loss": rest["loss"]}, "step", tm.record.Origin("forecast"))
    assert outlook_of(without).leader is None  # errors that nobody knows show nothing


def test_no_leader_is_said_where_the_networks_of_a_nowcast_disagree():
    rest = told([[0.3, 0.5], [0.2, 0.41], [0.1, 0.32]])

    def spread(width):
        factors = xr.DataArray(1.0 + width * np.array([-1.0, 1.0]), dims="seed", coords={"seed": [0, 1]})
        loss = rest["loss"] * xr.where(rest["loss"]["group"] == "b", factors, 1.0)
        return outlook_of(
            tm.Trajectory({"loss": loss, "loss_se": rest["loss_se"]}, "step", tm.record.Origin("forecast"))
        )

    assert spread(0.1).decided
    apart = spread(0.8)  # the losses of b at the end: 0.06 and 0.58, of a: 0.1
    assert not apart.decided
    assert str(apart) == "Step 10: nothing seen now decides who leads at the end, step 40."


def watched(model, train, held_out, recipe, **more):
    """A training in a loop of one's own, with an early warning if it is asked for."""
    optimiser = recipe.make_optimiser(model.parameters())
    x, y = train.tensors()
    probe = tm.Probe(model, held_out, tm.Watch(when=tm.record.every(10)), budget=None)
    asked = tm.EarlyWarning(probe, model, train, held_out, recipe, optimiser, **more) if more else probe
    with asked:
        for step, places in enumerate(tm.training.BatchOrder(0, train, recipe)):
            asked(step)
            optimiser.zero_grad()
            value = nn.functional.soft_margin_loss(model(x[places].float())[:, 0], 2.0 * y[places].float() - 1.0)
            value.backward()
            optimiser.step()
    return probe.trajectory(), asked


def task(number):
    """Groups of four digits each, two labelled 1, at a share, width and learning rate that the number draws."""
    rng = np.random.default_rng((17, number))
    digits = rng.permutation(10)[:8]
    from sklearn.datasets import load_digits

    found = load_digits()
    share = float(rng.choice([0.5, 0.7, 0.9]))
    parts = []
    for own, part in ((digits[:4], share), (digits[4:], 1 - share)):
        places = rng.permutation(np.flatnonzero(np.isin(found.target, own)))
        parts.append(places[: int(700 * part) + 60])
    places = np.concatenate(parts)
    group = np.repeat(["a", "b"], [len(part) for part in parts])
    label = np.isin(found.target[places], [*digits[:2], *digits[4:6]]).astype(int)
    data = tm.GroupedData((found.data[places] / 16.0).astype("float32"), label, group)
    make = partial(torch.optim.AdamW, lr=float(rng.choice([3e-4, 1e-3, 3e-3])))
    torch.manual_seed(number)
    model = mlp(64, (int(rng.choice([64, 128])),))
    return model, *data.split(0.4, seed=number), tm.Recipe(make, steps=200, batch=16, order=0)


def test_the_training_is_the_same_to_the_bit():
    model, train, held_out, recipe = task(0)
    other = copy.deepcopy(model)
    said = []
    recipe = tm.Recipe(recipe.optimiser, steps=40, batch=16, order=0)
    run, warning = watched(model, train, held_out, recipe, say=said.append, when=tm.record.at([5, 20]))
    plain, _ = watched(other, train, held_out, recipe)
    assert float(abs(run["loss"] - plain["loss"]).max()) == 0.0
    assert [one.step for one in warning.outlooks] == [5, 20]
    assert tuple(said) == warning.outlooks


def test_bad_input():
    model, train, held_out, recipe = task(0)
    with pytest.raises(TypeError, match=r"`probe` should be the Probe of the training. Found Linear."):
        tm.EarlyWarning(nn.Linear(2, 1), model, train, held_out, recipe, recipe.make_optimiser(model.parameters()))


@pytest.mark.slow
@pytest.mark.parametrize("route", [tm.methods.Twin(1 / 4)], ids=["twins"])
def test_how_often_it_is_wrong(route):
    """Of the final leaders that are named, at most one in ten is the wrong one, where the end shows a leader."""
    named, silent, dates = [], 0, []
    for number in range(TASKS):
        run, warning = watched(*task(number), method=route)
        end = run["loss"].isel(time=-1)
        lead = float(end.sel(group="b") - end.sel(group="a"))
        noise = float(np.hypot(*run["loss_se"].isel(time=-1).values))
        gaps = (run["loss"].sel(group="b") - run["loss"].sel(group="a")).values
        for outlook in warning.outlooks:
            silent += not outlook.decided
            if outlook.decided and abs(lead) > 2 * noise:
                right = outlook.leader_at_end == ("a" if lead > 0 else "b")
                named.append(right)
                if right and outlook.leader != outlook.leader_at_end and outlook.change is not None:
                    times = run["loss"]["time"].values
                    real = times[np.flatnonzero(np.sign(gaps) != np.sign(lead)).max(initial=0)]
                    dates.append(max(outlook.change, 1) / max(real, 1))
    wrong = 1 - np.mean(named)
    within = np.mean([1 / 1.5 <= one <= 1.5 for one in dates]) if dates else np.nan
    print(
        f"{type(route).__name__}: wrong {len(named) - sum(named)} of {len(named)}, undecided {silent} of {5 * TASKS}; "
        f"{len(dates)} changes dated, {within:.2f} within x1.5"
    )
    # What its sentences say.
    assert len(named) - sum(named) == WRONGLY
    assert abs(len(named) - NAMED) <= 3
    assert abs(len(dates) - DATED) <= 1
    assert wrong <= BOUND + 2 * np.sqrt(BOUND * (1 - BOUND) / len(named))
