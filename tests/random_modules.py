"""Small random networks of many kinds: norms, dropouts, attention, recurrence, tuple outputs, sigmoid ends."""

import random

import torch
from torch import nn

WIDTH = 6


class Attention(nn.Module):
    """Self-attention over pieces of the point."""

    def __init__(self):
        super().__init__()
        self.inner = nn.MultiheadAttention(2, 1, dropout=0.1, batch_first=True)

    def forward(self, x):
        pieces = x.reshape(len(x), -1, 2)
        return self.inner(pieces, pieces, pieces, need_weights=False)[0].reshape(len(x), -1)


class Recurrent(nn.Module):
    """The last state of a recurrent network that reads the point number by number."""

    def __init__(self, kind):
        super().__init__()
        self.inner = kind(1, WIDTH, batch_first=True)

    def forward(self, x):
        return self.inner(x[:, :, None])[0][:, -1]


class Noisy(nn.Module):
    """Draws random numbers in every mode, counts its calls in plain Python, and keeps a buffer."""

    def __init__(self):
        super().__init__()
        self.calls = 0
        self.register_buffer("last", torch.zeros(WIDTH))

    def forward(self, x):
        self.calls += 1
        self.last = x.detach().mean(0)
        return x + 0.01 * torch.randn_like(x)


class Several(nn.Module):
    """Returns its scores in a tuple or a dict, beside something else."""

    def __init__(self, inner, kind):
        super().__init__()
        self.inner, self.kind = inner, kind

    def forward(self, x):
        score = self.inner(x)
        return (score, x) if self.kind == "tuple" else {"score": score, "features": x}


class Functional(nn.Module):
    """Ends in a function instead of a module."""

    def __init__(self, inner, end):
        super().__init__()
        self.inner, self.end = inner, end

    def forward(self, x):
        return self.end(self.inner(x))


BODY = [
    lambda: nn.LayerNorm(WIDTH),
    lambda: nn.BatchNorm1d(WIDTH),
    lambda: nn.GroupNorm(2, WIDTH),
    lambda: nn.utils.parametrizations.weight_norm(nn.Linear(WIDTH, WIDTH)),
    lambda: nn.utils.parametrizations.spectral_norm(nn.Linear(WIDTH, WIDTH)),
    lambda: nn.Dropout(0.3),
    lambda: nn.AlphaDropout(0.1),
    Attention,
    lambda: Recurrent(nn.LSTM),
    lambda: Recurrent(nn.GRU),
    Noisy,
    lambda: nn.Linear(WIDTH, WIDTH),
    nn.ReLU,
    nn.Sigmoid,  # inside the network, not at its end
    lambda: nn.Softmax(1),
    nn.Tanh,
]
#: End -> whether the scores are probabilities.
ENDS = {
    "scores": False,
    "LayerNorm of scores": False,
    "sigmoid module": True,
    "sigmoid function": True,
    "sigmoid clamped": True,
    "twice a sigmoid": False,
    "tanh": False,
    "softmax": True,
    "several scores": False,
}


def random_module(number, seed):
    """A network, the `read` that it needs, and whether it gives probabilities."""
    draw = random.Random(number)
    torch.manual_seed(1000 * number + seed)
    body = [draw.choice(BODY)() for _ in range(draw.randint(1, 4))]
    end = draw.choice(list(ENDS))
    several = end in ("softmax", "several scores")
    head = nn.Linear(WIDTH, 2 if several else 1)
    layers = [*body, head]
    if end == "LayerNorm of scores":
        layers = [*body, nn.LayerNorm(WIDTH), head]
    net = nn.Sequential(*layers)
    if end == "sigmoid module":
        net.append(nn.Sigmoid())
    elif end == "softmax":
        net.append(nn.Softmax(1))
    elif end == "sigmoid function":
        net = Functional(net, lambda score: torch.sigmoid(score).squeeze(1))
    elif end == "sigmoid clamped":
        net = Functional(net, lambda score: score.sigmoid().clamp(1e-6, 1 - 1e-6))
    elif end == "twice a sigmoid":
        net = Functional(net, lambda score: 2 * torch.sigmoid(score))
    elif end == "tanh":
        net.append(nn.Tanh())
    kind = draw.choice(["plain", "plain", "tuple", "dict"])
    read = {"plain": None, "tuple": lambda out: out[0], "dict": lambda out: out["score"]}[kind]
    return (net if kind == "plain" else Several(net, kind)), read, ENDS[end]
