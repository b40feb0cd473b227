"""Networks: frozen layers give the features, confirm trains in populations, and neither changes the network."""

import numpy as np
import pytest

import tiltmeter as tm
from two_group_tables import parts

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from tiltmeter.preview.confirm import judged, trained_in  # noqa: E402
from tiltmeter.preview.populations import Population, populations  # noqa: E402


def test_frozen_layers_give_the_features():
    train, held_out = parts(count=900)
    network = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
    network[0].requires_grad_(False)
    before = [weight.clone() for weight in network.parameters()]
    view = tm.preview(train, held_out, network)
    with torch.no_grad():
        inner = network[1](network[0](torch.as_tensor(train.x, dtype=torch.float32))).numpy()
    assert np.abs(view.inputs.train.x - inner).max() < 1e-6
    assert all(torch.equal(one, other) for one, other in zip(before, network.parameters(), strict=True))


def test_a_network_that_learns_everywhere_is_read_by_the_columns():
    train, held_out = parts(count=900)
    network = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
    assert tm.preview(train, held_out, network).run == tm.preview(train, held_out).run
    with pytest.raises(TypeError, match=r"`model` should be a torch.nn.Module"):
        tm.preview(train, held_out, "net")


def test_judging_people_stand_there_once_for_every_label():
    inputs = tm.preview(*parts(count=2000, rate=1.0)).inputs
    world = populations(inputs, ("rule",))["rule"]
    data = judged(inputs, world.held_out, inputs.held_out.x)
    assert len(data) == 2 * len(inputs.held_out.x)
    yes = np.bincount(data.codes[data.y == 1], data.weights[data.y == 1])
    expected = np.bincount(inputs.held_out.codes, world.held_out.mass * world.held_out.labels)
    assert np.allclose(yes, expected)


def test_trainings_of_one_seed_differ_by_the_population_alone():
    inputs = tm.preview(*parts(count=1200, rate=1.0)).inputs
    plain = Population("as it is", inputs.train, inputs.held_out)
    recipe = tm.Recipe(lr=0.1, steps=60, batch=16, loss=tm.Logistic())
    one, other = (trained_in(inputs, plain, 0, recipe=recipe) for _ in range(2))
    assert one == other
    assert one["loss"].values[-1].mean() < one["loss"].values[0].mean()


def test_confirm_prints_what_came_beside_what_was_said():
    view = tm.preview(*parts(count=1500, rate=2.0))
    recipe = tm.Recipe(lr=0.1, steps=60, batch=16, loss=tm.Logistic())
    came = view.confirm(top=1, seeds=2, recipe=recipe)
    assert len(came.rows) == 3
    assert str(came).startswith("Trained 2 networks in each population:")
    assert list(came.to_frame()["phase"]) == ["early", "middle", "late"]
    with pytest.raises(TypeError, match="a function that makes the network"):
        view.confirm(model=nn.Linear(4, 1))


def test_steps_are_those_of_the_training():
    train, held_out = parts(count=4000, rate=1.0)
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 1))
    before = [weight.clone() for weight in network.parameters()]
    recipe = tm.Recipe(lr=0.1, steps=1500, batch=32, loss=tm.Logistic())
    view = tm.preview(train, held_out)
    run = view.on_steps(network, recipe)
    assert all(torch.equal(one, other) for one, other in zip(before, network.parameters(), strict=True))
    assert run.clock == "step"
    assert run.origin.settings["calculation"]["trained_steps"] == 30
    real = tm.train(network, train, held_out, recipe)
    half = float(real["loss"].mean("group").min() + real["loss"].mean("group").max()) / 2
    when = [float(np.interp(-half, -one["loss"].mean("group").values, one["loss"].time.values)) for one in (run, real)]
    assert 1 / 3 < when[0] / when[1] < 3
    with pytest.raises(ValueError, match="did not learn enough to tell its pace"):
        view.on_steps(network, tm.Recipe(lr=1e-9, steps=1500, batch=32, loss=tm.Logistic()))


@pytest.mark.parametrize("bias", [True, False])
def test_the_steps_of_a_linear_model_are_exact(bias):
    train, held_out = parts(count=900)
    torch.manual_seed(0)
    line = nn.Linear(4, 1, bias=bias)
    recipe = tm.Recipe(lr=0.05, steps=200, batch=None, weight_decay=0.01, loss=tm.Square())
    run = tm.preview(train, held_out, recipe=recipe).on_steps(line, recipe)
    real = tm.train(line.double(), train.with_points(train.x.astype(np.float64)), held_out, recipe)
    for name in ("loss", "R", "Q"):
        both = np.intersect1d(run[name].time, real[name].time)
        assert len(both) > 20
        np.testing.assert_allclose(run[name].sel(time=both), real[name].sel(time=both), atol=2e-6)
