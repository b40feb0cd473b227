"""One door: the route by a rule, its cost in advance, and an order that makes it a forecast of this run."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

import tiltmeter as tm
from tiltmeter.forecast.choice import Choice
from tiltmeter.forecast.kernel.forecast_by_kernel import shown
from tiltmeter.networks.mlp import mlp
from tiltmeter.networks.small_cnn import small_cnn
from tiltmeter.networks.two_layer import two_layer

ADAM = tm.Recipe(partial(torch.optim.Adam, lr=1e-3), steps=2000, batch=64)


@pytest.mark.parametrize(
    ("model", "recipe", "route"),
    [
        (lambda: mlp(6, (256,)), tm.Recipe(lr=0.1, steps=100), tm.routes.Kernel()),
        (lambda: mlp(6, (256,)), tm.Recipe(lr=0.1, steps=100, order=0), tm.routes.Twin(count=1)),
        (lambda: mlp(6, (1024,)), ADAM, tm.routes.Twin()),
        (lambda: mlp(6, (256, 256, 256)), ADAM, tm.routes.Twin(share=1 / 2)),
        (lambda: nn.Linear(6, 1), ADAM, tm.routes.Coordinates(replicas=2)),
        (lambda: nn.Linear(6, 1), replace(ADAM, order=0), tm.routes.Coordinates()),
        (lambda: two_layer(6, 60, dtype=torch.float32), ADAM, tm.routes.Coordinates(replicas=2)),
    ],
)
def test_the_rule(two_labels, model, recipe, route):
    choice = tm.routes.chosen(model(), *two_labels, recipe)
    assert choice.route == route
    assert choice.seconds > 0
    assert str(choice).startswith(type(route).__name__)


def frozen(outputs=1):
    torch.manual_seed(3)
    net = mlp(6, (64, 32), outputs)
    for weight in list(net.parameters())[:-2]:
        weight.requires_grad_(False)
    return net


@pytest.mark.parametrize("optimiser", [partial(torch.optim.AdamW, lr=0.01), partial(torch.optim.SGD, lr=0.1)])
def test_a_linear_head_on_a_frozen_backbone_is_told_exactly(two_labels, optimiser):
    recipe = tm.Recipe(optimiser, steps=60, batch=16, order=0, loss=tm.Logistic())
    choice = tm.routes.chosen(frozen(), *two_labels, recipe)
    assert choice.route == tm.routes.Coordinates()
    assert "exact" in choice.why
    told = tm.forecast(frozen(), *two_labels, recipe)
    real = tm.train(frozen(), *two_labels, recipe)
    np.testing.assert_allclose(told["loss"].values.squeeze(), real["loss"].values, rtol=1e-5)
    # The control: with the layer before it free, the head is not all that learns.
    free = frozen()
    list(free.parameters())[2].requires_grad_(True)
    assert "exact" not in tm.routes.chosen(free, *two_labels, recipe).why


def test_a_head_behind_dropout_is_not_called_exact(two_labels):
    net = nn.Sequential(frozen()[:-1], nn.Dropout(0.5), frozen()[-1])
    choice = tm.routes.chosen(net, *two_labels, replace(ADAM, order=0))
    assert choice.route == tm.routes.Coordinates()
    assert "exact" not in choice.why


def test_convolutions_keep_a_quarter_and_have_one_twin():
    rng = np.random.default_rng(0)
    data = tm.GroupedData(rng.normal(size=(120, 3, 8, 8)), rng.integers(0, 2, 120), ["a", "b"] * 60).split(0.5)
    assert tm.routes.chosen(small_cnn(3, 1, 32), *data, ADAM).route == tm.routes.Twin(share=1 / 4, count=1)


def test_the_origin_says_which_route_and_why(two_labels):
    recipe = replace(ADAM, steps=20)
    told = tm.forecast(nn.Linear(6, 1), *two_labels, recipe)
    route = told.origin.settings["route"]
    assert route["name"] == "Coordinates"
    assert "optimiser" in route["why"]
    assert route["of_training"] > 0
    given = tm.forecast(nn.Linear(6, 1), *two_labels, tm.Recipe(lr=0.1, steps=20), route=tm.routes.Kernel())
    assert given.origin.settings["route"]["sample"] == 2500


def test_no_route_for_what_none_knows(two_labels):
    with pytest.raises(TypeError, match=r"`route` should say how to calculate, as Kernel\(\), Coordinates\(\) or Twin"):
        tm.forecast(nn.Linear(6, 1), *two_labels, ADAM, route="twin")
    with pytest.raises(ValueError, match="Found LBFGS, which evaluates"):
        tm.forecast(nn.Linear(6, 1), *two_labels, tm.Recipe(torch.optim.LBFGS, steps=5))


def test_the_kernel_takes_the_points_that_an_order_shows(two_labels):
    train, look = two_labels
    torch.manual_seed(0)
    model = nn.Linear(6, 1).double()
    order = np.stack([np.r_[0:20, 0:10, 40:60]] * 30)  # the same batch again and again, ten of its points twice
    recipe = tm.Recipe(lr=0.1, steps=30, order=order, loss=tm.Square())
    told = tm.forecast(model, train, look, recipe, route=tm.routes.Kernel())
    assert float(abs(told["loss"] - tm.train(model, train, look, recipe)["loss"]).max()) < 1e-9
    with pytest.raises(ValueError, match="pass the recipe to `forecast`"):
        tm.tangent(model, train, look).forecast(recipe)


def test_a_seed_that_shows_all_points_changes_nothing_of_the_kernel(two_labels):
    train, _ = two_labels
    assert shown(train, tm.Recipe(lr=0.1, epochs=2, order=3))[0] is train
    part, free = shown(train, tm.Recipe(lr=0.1, steps=2, batch=40, order=3))
    assert len(part) == 80
    assert free.order is None


@pytest.mark.parametrize(
    "recipe", [tm.Recipe(lr=0.1, epochs=2, batch=50), tm.Recipe(lr=0.1, steps=5, proportions={"a": 1, "b": 1})]
)
def test_a_loader_of_one_s_own_takes_the_batches_of_train(two_labels, recipe):
    train, look = two_labels
    order = tm.BatchOrder(4, train, recipe)
    x, y = train.tensors()
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_sampler=order)
    model, own = nn.Linear(6, 1), nn.Linear(6, 1)
    own.load_state_dict(model.state_dict())
    optimiser = torch.optim.SGD(own.parameters(), lr=0.1)
    for _ in range(recipe.epochs or 1):
        for points, labels in loader:
            optimiser.zero_grad()
            nn.functional.soft_margin_loss(own(points)[:, 0], labels.float()).backward()
            optimiser.step()
    tm.train(model, train, look, replace(recipe, order=4))
    assert torch.allclose(model.weight, own.weight, atol=1e-6)
    again = list(tm.BatchOrder(4, train, recipe))
    order.begin(0)
    assert list(order) == again


@pytest.mark.parametrize(
    ("seed", "recipe", "said"),
    [
        (-1, tm.Recipe(lr=0.1, steps=2), "`seed` should be an integer from 0. Found seed = -1."),
        (1, tm.Recipe(lr=0.1, steps=2, order=0), "`seed` should be the order of the recipe, 0. Found seed = 1."),
        (0, tm.Recipe(lr=0.1, steps=1, order=[[0, 1]]), "The recipe already says every batch"),
    ],
)
def test_bad_orders_for_a_loader(two_labels, seed, recipe, said):
    with pytest.raises(ValueError, match=said):
        tm.BatchOrder(seed, two_labels[0], recipe)


def test_a_forecast_that_costs_more_than_the_training_says_so():
    dear = Choice(tm.routes.Twin(), "features", 2.0, 1.5)
    assert str(dear).endswith("About 2 s, 150% of the training: the training itself costs less.")
    assert str(replace(dear, of_training=0.2)).endswith("20% of the training.")


def test_an_order_needs_its_own_held_out_points(two_labels):
    train, _ = two_labels
    with pytest.raises(
        ValueError, match=r"`order` fixes the batches of a training on all of `train`. Found look = None"
    ):
        tm.forecast(mlp(6, (64,)), train, None, tm.Recipe(torch.optim.Adam, steps=10, order=0))


def test_an_optimiser_that_refuses_its_parameters_names_their_real_shapes(two_labels):
    recipe = tm.Recipe(partial(torch.optim.Muon, lr=0.01), steps=10)
    with pytest.raises(ValueError, match=r"torch.Size\(\[64\]\)"):
        tm.routes.chosen(mlp(6, (64,)), *two_labels, recipe)


def test_lbfgs_is_refused_in_a_sentence(two_labels):
    recipe = tm.Recipe(partial(torch.optim.LBFGS, lr=0.01), steps=10)
    with pytest.raises(ValueError, match="evaluates the loss several times a step"):
        tm.routes.chosen(mlp(6, (64,)), *two_labels, recipe)
    with pytest.raises(ValueError, match="train in a loop of your own, with a Probe"):
        tm.train(mlp(6, (64,)), *two_labels, recipe)
