"""Plain Python state that a forward pass changes: what hangs on the model is as it was after an evaluation, and a
warning names everything else."""

import random
from collections import deque

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

import tiltmeter as tm  # noqa: E402

X = torch.randn(80, 3, generator=torch.Generator().manual_seed(0))
HELD_OUT = tm.GroupedData(X, np.arange(80) % 2, ["a", "b"] * 40)


class Tally:
    def __init__(self):
        self.count, self.log = 0, {"seen": []}


class Stateful(nn.Module):
    calls = 0
    shared = []  # noqa: RUF012

    def __init__(self):
        super().__init__()
        self.line = nn.Linear(3, 1)
        self.count, self.seen, self.recent, self.labels = 0, [], deque(maxlen=5), set()
        self.generator = torch.Generator().manual_seed(0)
        self.numpy, self.python = np.random.default_rng(0), random.Random(0)
        self.tally, self.kept, self.array = Tally(), torch.zeros(2), np.zeros(2)

    def forward(self, x):
        type(self).calls += 1
        self.shared.append(1)
        self.count += 1
        self.seen.append(len(x))
        self.recent.append(len(x))
        self.labels.add(len(self.labels))
        self.tally.count += 1
        self.tally.log["seen"].append(len(x))
        self.kept += 1
        self.array += 1
        self.new = self.count
        noise = torch.rand(1, generator=self.generator) + float(self.numpy.random()) + self.python.random()
        return self.line(x) + 0 * noise + 0.01 * self.count


def state(model):
    return (
        model.count, model.generator.get_state().tolist(), model.numpy.bit_generator.state, model.python.getstate(),
        model.kept.tolist(), hasattr(model, "new"),
    )  # fmt: skip


def test_a_look_leaves_what_hangs_on_the_model_as_it_was_and_names_the_rest():
    model = Stateful()
    before = state(model)
    with pytest.warns(UserWarning, match="which is not put back") as said:
        probe = tm.Probe(model, HELD_OUT, budget=None)
    for name in ("Stateful.array", "Stateful.calls", "Stateful.labels", "Stateful.recent", "Stateful.seen"):
        assert name in str(said[0].message)
    assert state(model) == before
    probe(0)
    assert state(model) == before
    model(X[:4])
    after = state(model)
    probe(1)
    assert state(model) == after
    probe.close()
    assert state(model) == after


def train(model, watched):
    torch.manual_seed(0)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    probe = tm.Probe(model, HELD_OUT, tm.Watch(when=tm.record.every(1)), budget=None) if watched else None
    for step in range(6):
        if probe is not None:
            probe(step)
        optimiser.zero_grad()
        (model(X[:16]) ** 2).mean().backward()
        optimiser.step()
    return [p.detach().clone() for p in model.parameters()]


@pytest.mark.filterwarnings("ignore:While the model was evaluated")
def test_training_whose_forward_counts_is_bit_identical():
    torch.manual_seed(1)
    first = Stateful()
    torch.manual_seed(1)
    second = Stateful()
    Stateful.calls = 0
    for plain, evaluated in zip(train(first, False), train(second, True), strict=True):
        assert torch.equal(plain, evaluated)


def test_what_a_hook_remembers_is_named():
    model, counted = nn.Linear(3, 1), 0
    seen = []

    def hook(module, inputs, output):
        nonlocal counted
        counted += 1
        seen.append(counted)

    model.register_forward_hook(hook)
    with pytest.warns(UserWarning, match=r"While the model was evaluated, a hook of Linear changed"):
        tm.Probe(model, HELD_OUT)


def test_a_generator_is_named():
    class Drawn(nn.Module):
        def __init__(self):
            super().__init__()
            self.line, self.numbers = nn.Linear(3, 1), (i for i in range(1000))

        def forward(self, x):
            next(self.numbers)
            return self.line(x)

    with pytest.warns(UserWarning, match=r"While the model was evaluated, Drawn.numbers changed"):
        tm.Probe(Drawn(), HELD_OUT)
