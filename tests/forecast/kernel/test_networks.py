"""Networks of many kinds: the forecast is gradient descent on their Jacobians, written out; and they stay as they
were."""

import copy
import warnings
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

import tiltmeter as tm
from tiltmeter.modules.untouched import deep_copy

by_kernel = partial(tm.forecast, method=tm.methods.Kernel(), progress=False)

LR, STEPS, MOMENTUM, DECAY = 0.01, 40, 0.5, 0.02


class Encoder(nn.Module):
    """Tokens through an encoder, in evaluation mode on torch's fast path."""

    def __init__(self, batch_first=True):
        super().__init__()
        self.table = nn.Embedding(9, 8)
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=batch_first)
        self.layers = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.last, self.first = nn.Linear(8, 3), batch_first

    def forward(self, x):
        tokens = self.table(x)
        found = self.layers(tokens if self.first else tokens.transpose(0, 1))
        return self.last(found.mean(1 if self.first else 0))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.cells, self.last = nn.LSTM(2, 4, batch_first=True), nn.Linear(4, 1)

    def forward(self, x):
        return {"logits": self.last(self.cells(x)[0][:, -1]).squeeze(-1), "more": x}


def old_weight_norm():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return nn.Sequential(nn.utils.weight_norm(nn.Linear(6, 5)), nn.Tanh(), nn.Linear(5, 1))


def seen(norm):
    """A normalisation that has seen batches."""
    norm.num_batches_tracked += 1
    return norm


def tokens(*shape):
    return torch.randint(0, 9, shape)


#: how to make the model, its points, how to read its scores
CASES = {
    "encoder": (Encoder, lambda n: tokens(n, 5), None),
    "encoder, sequence first": (lambda: Encoder(False), lambda n: tokens(n, 5), None),
    "bag of embeddings": (lambda: nn.Sequential(nn.EmbeddingBag(9, 4), nn.Linear(4, 2)), lambda n: tokens(n, 5), None),
    "recurrent, a dict": (Recurrent, lambda n: torch.randn(n, 4, 2), lambda found: found["logits"]),
    "batch norm": (
        lambda: nn.Sequential(nn.Conv1d(1, 3, 2), seen(nn.BatchNorm1d(3)), nn.ReLU(), nn.Flatten(), nn.Linear(15, 1)),
        lambda n: torch.randn(n, 1, 6),
        None,
    ),
    "dropout": (
        lambda: nn.Sequential(nn.Linear(6, 5), nn.Dropout(), nn.Tanh(), nn.Linear(5, 1)),
        lambda n: torch.randn(n, 6),
        None,
    ),
    "the older weight norm": (old_weight_norm, lambda n: torch.randn(n, 6), None),
}


def jacobian(model, x, read):
    """Scores and their gradients, one backward pass each, and the weights, all in one vector."""
    weights = [p for p in model.parameters() if p.requires_grad]
    scores, rows = [], []
    for point in x[:, None]:
        found = model(point) if read is None else read(model(point))
        scores.append(found.detach().reshape(-1))
        for score in found.reshape(-1):
            parts = torch.autograd.grad(score, weights, retain_graph=True)
            rows.append(torch.cat([part.flatten() for part in parts]))
    flat = torch.cat([p.detach().flatten() for p in weights])
    return (torch.stack(part).double().numpy() for part in (scores, rows, flat.unbind()))


def descended(model, train, held_out, read, weights):
    """Square losses at `held_out` after gradient descent on the linearised network, weight by weight."""
    start, gradients, first = jacobian(model, train.x, read)
    start_held_out, gradients_held_out, _ = jacobian(model, held_out.x, read)
    aim, aim_held_out = (np.eye(3)[y] if start.shape[1] > 1 else y[:, None] for y in (train.y, held_out.y))
    aim, aim_held_out = aim[:, : start.shape[1]], aim_held_out[:, : start.shape[1]]
    moved, speed = np.zeros_like(first), np.zeros_like(first)
    for _ in range(STEPS):
        off = start + (gradients @ moved).reshape(start.shape) - aim
        speed *= MOMENTUM
        speed += gradients.T @ (weights[:, None] * off).ravel() / len(off) + DECAY * (first + moved)
        moved -= LR * speed
    off = start_held_out + (gradients_held_out @ moved).reshape(start_held_out.shape) - aim_held_out
    return 0.5 * (off**2).sum(1)


@pytest.mark.parametrize("name", CASES)
def test_the_forecast_is_gradient_descent_on_the_jacobian(name):
    make, points, read = CASES[name]
    torch.manual_seed(3)
    model, x = make(), points(90)
    group = np.where(np.arange(90) % 3 == 0, "b", "a")
    data = tm.GroupedData(x, np.arange(90) * 7 % 11 % 2, group)
    train, held_out = data.take(np.arange(25)), data.take(np.arange(25, 40))
    assert model.training
    before, stream = copy.deepcopy(model.state_dict()), torch.get_rng_state()
    settings = {"lr": LR, "steps": STEPS, "momentum": MOMENTUM, "weight_decay": DECAY, "weights": {"b": 2.0}}
    recipe = tm.Recipe(**settings, batch=5, loss=tm.Square())
    told = by_kernel(model, train, held_out, recipe, watch=tm.Watch(read=read))
    ahead = told["loss"].sel(time=STEPS)
    assert all(module.training for module in model.modules())
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())
    assert torch.equal(torch.get_rng_state(), stream)
    losses = descended(deep_copy(model).eval(), train, held_out, read, np.where(train.codes == 1, 2.0, 1.0))
    expected = [losses[held_out.codes == code].mean() for code in (0, 1)]
    np.testing.assert_allclose(ahead, expected, rtol=1e-6)


def test_half_precision_is_forecast_in_single(two_labels):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 50), nn.Tanh(), nn.Linear(50, 1)).bfloat16()
    ahead = by_kernel(model, *two_labels, tm.Recipe(lr=0.05, steps=100, batch=None, loss=tm.Square()))
    assert model[0].weight.dtype == torch.bfloat16
    whole = copy.deepcopy(model).float()
    np.testing.assert_array_equal(
        ahead["loss"],
        by_kernel(whole, *two_labels, tm.Recipe(lr=0.05, steps=100, batch=None, loss=tm.Square()))["loss"],
    )
