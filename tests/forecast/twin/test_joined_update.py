"""Steps of stacked twins in one pass are those of torch's optimiser, up to rounding."""

from functools import partial

import pytest
import torch
from torch import nn

import tiltmeter as tm
from tiltmeter.forecast.twin.joined_update import JoinedUpdate, Rates
from tiltmeter.forecast.twin.side_by_side import chain
from tiltmeter.forecast.twin.twins import scaled_twin
from tiltmeter.modules.networks import mlp
from tiltmeter.training.stacked import Stacked

STEPS = 6
KINDS = {
    "Adam": partial(torch.optim.Adam, lr=1e-2, weight_decay=0.1),
    "AdamW": partial(torch.optim.AdamW, lr=1e-2, betas=(0.8, 0.95)),
    "momentum": partial(torch.optim.SGD, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
    "SGD": partial(torch.optim.SGD, lr=0.1),
}


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("clip", [None, 0.1])
def test_one_pass_is_the_optimiser_of_every_twin(name, clip):
    recipe = tm.Recipe(KINDS[name], steps=STEPS, clip=clip, schedule=tm.schedules.Cosine(0.05, STEPS))
    wide, draw = mlp(5, (64, 64)), torch.Generator().manual_seed(0)
    twins = [scaled_twin(wide, torch.zeros(2, 5), 0.25, seed, 1, None) for seed in range(2)]
    stack = Stacked([chain(twin.network) for twin in twins])
    update = JoinedUpdate(twins[0], Rates(twins[0], recipe, twins[0].kind(recipe), STEPS), clip)
    batches = torch.randn(STEPS, 20, 5, generator=draw)
    for step, x in enumerate(batches):
        gradients = stack.differentiate(x[None], lambda outputs: nn.functional.softplus(outputs).mean((1, 2)))[1]
        update(stack.parameters, gradients, float(step))
    for run, twin in enumerate(twins):
        own = twin.recipe(recipe, STEPS)
        optimiser = own.make_optimiser(twin.network.parameters())
        scheduling = own.scheduling(optimiser)
        for step, x in enumerate(batches):
            scheduling.before(step)
            optimiser.zero_grad()
            nn.functional.softplus(twin.network(x)).mean().backward()
            optimiser.step()
            scheduling.after()
        for key, parameter in twin.network.named_parameters():
            torch.testing.assert_close(stack.parameters[key][run], parameter.detach(), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", KINDS)
def test_a_step_does_not_depend_on_the_size_of_the_stack(name):
    recipe = tm.Recipe(KINDS[name], steps=STEPS)
    twin = scaled_twin(mlp(5, (45,)), torch.zeros(2, 5), 0.25, 0, 1, None)  # sizes that fill no whole vector
    draw = torch.Generator().manual_seed(0)
    slopes = [{key: torch.randn(p.shape, generator=draw) for key, p in chain_of(twin)} for _ in range(STEPS)]

    def moved(runs):
        stack = Stacked([chain(twin.network)] * runs)
        update = JoinedUpdate(twin, Rates(twin, recipe, twin.kind(recipe), STEPS), None)
        for step, given in enumerate(slopes):
            gradients = {key: torch.empty_like(p).copy_(given[key]) for key, p in stack.parameters.items()}
            update(stack.parameters, gradients, float(step))
        return stack.parameters

    alone = moved(1)
    for runs in (2, 7, 16):
        for key, stacked in moved(runs).items():
            assert all(torch.equal(one, alone[key][0]) for one in stacked), (key, runs)


def chain_of(twin):
    return chain(twin.network).named_parameters()
