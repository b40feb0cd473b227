"""The coordinate check: activations and their changes keep their size, whatever share of the units stays."""

from functools import partial

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.conv import _ConvNd

import tiltmeter as tm
from networks import plain_cnn, resnet18, small_cnn, transformer
from tiltmeter.forecast.twin.rule import kind_of
from tiltmeter.forecast.twin.twins import ScaledTwin, scaled_twin
from tiltmeter.modules.networks import deep_linear, mlp

LAYERS = (nn.Linear, _ConvNd, nn.Embedding, nn.LayerNorm, nn.GroupNorm, _BatchNorm)
STEPS = 5
ADAM = tm.Recipe(partial(torch.optim.Adam, lr=1e-3), steps=STEPS)
DESCENT = tm.Recipe(lr=0.05, steps=STEPS)

QUICK = {
    "mlp": (lambda: mlp(20, (128, 128), 1), (32, 20)),
    "deep linear": (lambda: deep_linear(8, 128, 3), (16, 8)),
    "plain cnn": (lambda: plain_cnn((1, 8, 8), 1, 32), (16, 64)),
    "small cnn": (lambda: small_cnn(3, 1, 32, True), (16, 3, 8, 8)),
    "transformer": (lambda: transformer(6, features=4, width=64, heads=8, layers=1), (16, 6, 4)),
}
ALL = {
    **QUICK,
    "tokens": (lambda: transformer(6, vocabulary=5, width=64, heads=8), (16, 6)),
    "resnet": (lambda: resnet18(3, 1, 32), (8, 3, 8, 8)),
}


def activations(model, x):
    seen = {}
    layers = [(name, m) for name, m in model.named_modules() if isinstance(m, LAYERS) and "out_proj" not in name]
    hooks = [m.register_forward_hook(lambda _, __, y, name=name: seen.update({name: y})) for name, m in layers]
    with torch.no_grad():
        model(x)
    for hook in hooks:
        hook.remove()
    return seen


def sizes(twin, recipe, x):
    """Root mean square of every layer's activations, and of their change over a few steps."""
    y = torch.where(torch.arange(len(x)) % 2 == 0, 1.0, -1.0)
    model = twin.network.train()
    before = activations(model, x)
    optimiser = twin.recipe(recipe, STEPS).make_optimiser(model.parameters())
    for _ in range(STEPS):
        optimiser.zero_grad()
        nn.functional.soft_margin_loss(model(x)[:, 0], y).backward()
        optimiser.step()
    after = activations(model, x)
    return np.asarray([[float(part.pow(2).mean().sqrt()) for part in (a, after[n] - a)] for n, a in before.items()])


def ratios(make, shape, recipe, ruled=True, seeds=2):
    """The sizes of twins of a quarter over those of the networks, geometric mean over layers: activations, changes.

    The outputs themselves are left out of the first: the untrained twin is taken off in a forecast.
    """
    draw = torch.Generator().manual_seed(0)
    x = torch.randint(0, 5, shape, generator=draw) if shape == (16, 6) else torch.randn(shape, generator=draw)
    found = []
    for share in (1.0, 0.25):
        total = []
        for seed in range(seeds):
            torch.manual_seed(seed)
            twin = scaled_twin(make(), x, share, seed, 1, None)
            total.append(sizes(twin if ruled else as_usual(twin), recipe, x))
        found.append(np.mean(total, 0))
    whole, part = found
    return np.exp(np.log(part[:-1, 0] / whole[:-1, 0]).mean()), np.exp(np.log(part[:, 1] / whole[:, 1]).mean())


def as_usual(twin):
    """The same cut with the scales that torch would give a network of this width, and unchanged rates."""
    with torch.no_grad():
        for name, shares in twin.cut.shares.items():
            twin.network.get_parameter(name).mul_(shares.into**-0.5 / twin.scale(name).weight)
    return ScaledTwin(twin.network, {}, twin.cut)


@pytest.mark.parametrize("name", QUICK)
def test_coordinate_check(name):
    size, moved = ratios(*QUICK[name], ADAM)
    assert 0.85 < size < 1.15
    assert 0.75 < moved < 1.35


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("recipe", [ADAM, DESCENT], ids=["Adam", "SGD"])
def test_coordinate_check_everywhere(name, recipe):
    # What a linear chain learns under SGD scatters by half from seed to seed: two seeds say nothing.
    size, moved = ratios(*ALL[name], recipe, seeds=30 if name == "deep linear" else 2)
    assert 0.85 < size < 1.15
    assert 0.6 < moved < 1.7


def test_without_the_rule_widths_learn_differently():
    assert ratios(*QUICK["mlp"], ADAM, ruled=False)[1] < 0.6


@pytest.mark.parametrize(
    ("make", "normalised", "decoupled"),
    [
        (partial(torch.optim.SGD, lr=0.0, momentum=0.9, weight_decay=0.1), False, True),
        (partial(torch.optim.Adam, weight_decay=0.1), True, False),
        (partial(torch.optim.AdamW, weight_decay=0.1), True, True),
        (torch.optim.AdamW, True, True),
        (partial(torch.optim.AdamW, weight_decay=0.0), True, False),
        (partial(torch.optim.Adam, weight_decay=0.1, decoupled_weight_decay=True), True, True),
        (partial(torch.optim.Adam, eps=0.01), True, False),
        (torch.optim.RMSprop, True, False),
        (torch.optim.RAdam, True, False),
        (torch.optim.Rprop, True, False),
        (torch.optim.ASGD, False, True),
    ],
)
def test_the_kind_of_an_optimiser_is_seen_from_its_steps(make, normalised, decoupled):
    assert kind_of(make, [torch.zeros(3, 4), torch.zeros(3)], "A twin") == (normalised, decoupled)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (torch.optim.Muon, "Found Muon, which mixes the gradients of different weights"),
        (torch.optim.Adafactor, "Found Adafactor, which mixes the gradients of different weights"),
        (torch.optim.LBFGS, "Found LBFGS, which evaluates the loss several times a step"),
        (torch.optim.SparseAdam, "Found that SparseAdam needs more"),
    ],
)
def test_optimisers_without_a_rule_are_refused(make, said):
    with pytest.raises(ValueError, match=said):
        kind_of(make, [torch.zeros(3, 4)], "A twin")


def test_what_hooks_into_the_steps_of_an_optimiser_is_seen():
    def joined(given):
        made = torch.optim.SGD(given, lr=0.1)

        def shared(optimiser, *_):
            parts = [one for group in optimiser.param_groups for one in group["params"]]
            length = torch.stack([one.grad.norm() for one in parts]).norm()
            for one in parts:
                one.grad /= length

        made.register_step_pre_hook(shared)
        return made

    with pytest.raises(ValueError, match="Found SGD, which mixes the gradients of different weights"):
        kind_of(joined, [torch.zeros(3, 4)], "A twin")
