"""A stack is its models: outputs, gradients and updates of every run are those of the run alone."""

from functools import partial

import pytest
import torch
from torch import nn

from tiltmeter.training.stacked import Stacked
from tiltmeter.training.stacked_linear_layers import linear_layers
from tiltmeter.training.stacked_updates import stacked_update

RUNS, BATCH, STEPS = 3, 5, 8


class Tied(nn.Module):
    """Two layers that share their weights, one that is frozen and one that is never used."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.frozen, self.unused = (nn.Linear(6, 6) for _ in range(4))
        self.b.weight = self.a.weight
        self.frozen.requires_grad_(False)

    def forward(self, x):
        return self.b(self.frozen(self.a(x).tanh()))


class Convolutional(nn.Module):
    def __init__(self):
        super().__init__()
        self.convolution, self.norm, self.out = nn.Conv1d(1, 4, 3, bias=False), nn.BatchNorm1d(4), nn.Linear(16, 2)

    def forward(self, x):
        return self.out(self.norm(self.convolution(x[:, None])).relu().flatten(1))


class TwoHeads(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(6, 2), nn.Linear(6, 2)

    def forward(self, x):
        return self.one(x) + self.two(x)  # one gradient serves both biases


ARCHITECTURES = {
    "linear": lambda: nn.Linear(6, 1),
    "no bias": lambda: nn.Sequential(nn.Linear(6, 4, bias=False), nn.Tanh(), nn.Linear(4, 1, bias=False)),
    "chain": lambda: nn.Sequential(
        nn.Linear(6, 5), nn.ReLU(inplace=True), nn.Sequential(nn.Linear(5, 4), nn.GELU()), nn.Linear(4, 3)
    ),
    "starts with an activation": lambda: nn.Sequential(nn.ReLU(inplace=True), nn.Linear(6, 1)),
    "layer norm": lambda: nn.Sequential(nn.Linear(6, 5), nn.LayerNorm(5), nn.ReLU(), nn.Linear(5, 1)),
    "tied": Tied,
    "convolutional": Convolutional,
    "two heads": TwoHeads,
}
QUICK = {"linear", "no bias", "chain", "starts with an activation"}
OPTIMIZERS = {
    "sgd": partial(torch.optim.SGD, lr=0.1),
    "decay": partial(torch.optim.SGD, lr=0.1, weight_decay=0.05),
    "momentum": partial(torch.optim.SGD, lr=0.05, momentum=0.9, dampening=0.1, weight_decay=0.01),
    "nesterov": partial(torch.optim.SGD, lr=0.05, momentum=0.8, nesterov=True),
    "adam": partial(torch.optim.Adam, lr=0.01, betas=(0.8, 0.99), weight_decay=0.1),
    "adamw": partial(torch.optim.AdamW, lr=0.01, weight_decay=0.2),
}


def models_of(architecture):
    models = []
    for seed in range(RUNS):
        torch.manual_seed(seed)
        models.append(ARCHITECTURES[architecture]().double())
    return models


def assert_same(stacked, models):
    for run, model in enumerate(models):
        state = stacked.model(run).state_dict()
        for name, value in model.state_dict().items():
            torch.testing.assert_close(state[name], value, rtol=1e-9, atol=1e-11, msg=f"{name} of run {run}")


def losses_of(outputs):
    return (outputs - 0.3).pow(2).sum(-1).mean(-1)


@pytest.mark.parametrize("rates", ["one", "own"])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_run_is_the_run_alone(architecture, optimizer, rates):
    models, make = models_of(architecture), OPTIMIZERS[optimizer]
    stacked = Stacked(models)
    settings = make(list(models[0].parameters()))
    lr, decay = (torch.full((RUNS,), settings.defaults[name]) for name in ("lr", "weight_decay"))
    if rates == "own":
        lr, decay = lr * torch.tensor([1.0, 0.5, 2.0]), decay + torch.tensor([0.0, 0.1, 0.3])
        rate, update = lr.double(), stacked_update(settings, decay.double())
    else:
        rate, update = (
            float(settings.defaults["lr"]),
            stacked_update(settings, float(settings.defaults["weight_decay"])),
        )
    alone = [
        make(model.parameters(), lr=float(lr[r]), weight_decay=float(decay[r]))
        if rates == "own"
        else make(model.parameters())
        for r, model in enumerate(models)
    ]
    generator = torch.Generator().manual_seed(9)
    for _ in range(STEPS):
        x = torch.randn(RUNS, BATCH, 6, generator=generator, dtype=torch.float64)
        losses, gradients = stacked.differentiate(x.clone(), losses_of)
        update(stacked.parameters, gradients, rate)
        for run, (model, own) in enumerate(zip(models, alone, strict=True)):
            own.zero_grad()
            loss = losses_of(model(x[run].clone())[None])[0]
            torch.testing.assert_close(losses[run], loss.detach(), rtol=1e-9, atol=1e-11)
            loss.backward()
            own.step()
    assert_same(stacked, models)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_evaluation_is_that_of_each_model_and_leaves_points_alone(architecture):
    models = models_of(architecture)
    stacked, x = Stacked(models), torch.randn(7, 6, dtype=torch.float64)
    before = x.clone()
    outputs = stacked.evaluate(x)
    assert torch.equal(x, before)
    for run, model in enumerate(models):
        torch.testing.assert_close(outputs[run], model.eval()(x.clone()).detach())
    assert_same(stacked, models)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_only_stacks_of_linear_layers_take_the_short_way(architecture):
    assert Stacked(models_of(architecture)).quick == (architecture in QUICK)


@pytest.mark.parametrize("architecture", sorted(QUICK))
def test_both_ways_agree(architecture):
    models = models_of(architecture)
    x = torch.randn(RUNS, BATCH, 6, dtype=torch.float64)
    short, long = Stacked(models), Stacked(models, quick=False)
    assert not long.quick
    torch.testing.assert_close(short(x.clone()), long(x.clone()).detach())


def test_hooks_and_shared_layers_are_not_passed_over():
    model = nn.Sequential(nn.Linear(3, 3))
    assert linear_layers(model) is not None
    model[0].register_forward_hook(lambda *_: None)
    assert linear_layers(model) is None
    shared = nn.Linear(3, 3)
    assert linear_layers(nn.Sequential(shared, nn.ReLU(), shared)) is None


def test_the_models_are_not_changed():
    models = models_of("chain")
    before = [parameter.clone() for model in models for parameter in model.parameters()]
    stacked = Stacked(models)
    update = stacked_update(torch.optim.SGD(models[0].parameters(), lr=0.1), 0.0)
    update(stacked.parameters, stacked.differentiate(torch.ones(RUNS, 2, 6, dtype=torch.float64), losses_of)[1], 0.1)
    after = [parameter for model in models for parameter in model.parameters()]
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))


def test_what_cannot_be_stacked_says_so():
    class Branches(nn.Linear):
        def forward(self, x):
            return super().forward(x) if x.sum() > 0 else x

    with pytest.raises(ValueError, match=r"`make` should make models that torch.func can stack. Found: .*stack`."):
        Stacked([Branches(3, 3)] * 2)(torch.zeros(2, 4, 3))
    with pytest.raises(ValueError, match=r"should make models that torch.func can stack"):
        Stacked([nn.Linear(3, 1), nn.Linear(4, 1)])


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (torch.optim.RMSprop, "`optimiser` should make an SGD, Adam or AdamW of torch.optim. Found RMSprop."),
        (
            partial(torch.optim.Adam, amsgrad=True),
            "`optimiser` should not set amsgrad: stacked runs cannot. Found amsgrad = True.",
        ),
        (
            partial(torch.optim.SGD, maximize=True),
            "`optimiser` should not set maximize: stacked runs cannot. Found maximize = True.",
        ),
        (
            lambda parameters: torch.optim.SGD([{"params": [p]} for p in parameters]),
            "`optimiser` should treat all parameters alike. Found 2 parameter groups.",
        ),
    ],
    ids=["kind", "amsgrad", "maximize", "groups"],
)
def test_optimizers_that_do_not_stack(make, sentence):
    with pytest.raises((TypeError, ValueError)) as error:
        stacked_update(make(nn.Linear(2, 2).parameters()), 0.0)
    assert str(error.value) == sentence
