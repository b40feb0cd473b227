"""Forty modules that keep state in odd places: a probe changes nothing about their training, or says so before its
first step."""

import functools
import itertools
import random
import types
import warnings
from array import array
from collections import Counter, OrderedDict, defaultdict, deque
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch import nn

import tiltmeter as tm
from tiltmeter.modules import python_state

X = torch.randn(60, 3, generator=torch.Generator().manual_seed(0))
HELD_OUT = tm.GroupedData(X, np.arange(60) % 2, ["a", "b"] * 30)
MANY = 20_000
BANK, COUNT, LATER = [0.0], 0, {"n": torch.zeros(MANY)}


class Slotted:
    __slots__ = ("__hidden", "more", "n")

    def __init__(self):
        self.n, self.__hidden = 0, [0]

    def step(self):
        self.n += 1
        self.__hidden.append(1)
        self.more = self.n
        return self.n + len(self.__hidden)


class Node:
    def __init__(self, depth):
        self.n, self.next = 0, Node(depth - 1) if depth else None

    def last(self):
        return self if self.next is None else self.next.last()


@dataclass(slots=True)
class Record:
    n: int = 0


class Named(list):
    n = 0


def in_place(tensor):
    tensor += 1
    return float(tensor.ravel()[-1])


def behind_the_back(tensor):
    tensor.data.add_(1)
    return float(tensor.ravel()[-1])


def appended(values):
    values.append(len(values))
    return len(values)


def counted(mapping, key=0):
    mapping[key] = mapping.get(key, 0) + 1
    return mapping[key]


def remembered(value, memory=[]):  # noqa: B006
    memory.append(value)
    return len(memory)


def marked():
    marked.n = getattr(marked, "n", 0) + 1
    return marked.n


def of_the_file():
    global COUNT
    COUNT += 1
    BANK[0] += 1
    LATER["n"] += 1
    return COUNT + BANK[0] + float(LATER["n"][0])


def attribute(owner, name="n"):
    setattr(owner, name, getattr(owner, name) + 1)
    return getattr(owner, name)


def queue(state):
    state.bank[:, state.n % 1000] = state.n
    state.n += 1
    return float(state.bank.mean())


def counting_closure():
    n = 0

    def count():
        nonlocal n
        n += 1
        return n

    return count


#: What the module keeps, and what a forward pass does with it.
ODD = {
    "a number": (lambda: types.SimpleNamespace(n=0), attribute),
    "a large tensor": (lambda: torch.zeros(MANY), in_place),
    "a tensor behind autograd's back": (lambda: torch.zeros(5), behind_the_back),
    "a large tensor behind autograd's back": (lambda: torch.zeros(MANY), behind_the_back),
    "a tensor of NaN": (lambda: torch.full((MANY,), 0.5).index_fill(0, torch.tensor(0), torch.nan), in_place),
    "a MoCo queue": (lambda: types.SimpleNamespace(bank=torch.zeros(64, 1000), n=0), queue),
    "a small array": (lambda: np.zeros(3), in_place),
    "a large array": (lambda: np.zeros((MANY, 2)), in_place),
    "an array of objects": (lambda: np.array([None, [0]], dtype=object), lambda a: appended(a[1])),
    "a list": (lambda: [0], appended),
    "a long list": (lambda: list(range(MANY)), appended),
    "a long list of tensors": (lambda: [torch.zeros(1) for _ in range(MANY)], lambda held: in_place(held[-1])),
    "a dict": (dict, counted),
    "a large dict": (lambda: dict.fromkeys(range(MANY), 0), counted),
    "an ordered dict": (lambda: OrderedDict(a=1), counted),
    "a default dict": (lambda: defaultdict(list), lambda d: appended(d["k"])),
    "a counter": (Counter, counted),
    "a set": (set, lambda s: s.add(len(s)) or len(s)),
    "a large set": (lambda: set(range(MANY)), lambda s: s.add(len(s)) or len(s)),
    "a deque": (lambda: deque([0], maxlen=3), lambda d: d.append(d[-1] + 1) or d[-1]),
    "a long deque": (lambda: deque(range(MANY)), lambda d: d.append(d[-1] + 1) or d[-1]),
    "bytes that change": (lambda: bytearray(3), lambda b: b.__setitem__(0, b[0] + 1) or b[0]),
    "slots": (Slotted, Slotted.step),
    "a record with slots": (Record, attribute),
    "five levels down": (lambda: Node(5), lambda node: attribute(node.last())),
    "three hundred levels down": (lambda: Node(300), lambda node: attribute(node.last())),
    "lists in lists": (lambda: [[[[[[0]]]]]], lambda held: appended(held[0][0][0][0][0])),
    "a tuple of lists": (lambda: ([0], [1]), lambda held: appended(held[1])),
    "a list with attributes": (Named, attribute),
    "a module in a plain list": (lambda: [nn.BatchNorm1d(1)], lambda held: float(held[0](X[:9, :1]).sum()) + 1e3 * float(held[0].running_mean)),
    "a closure": (counting_closure, lambda count: count()),
    "a partial": (lambda: functools.partial(appended, [0]), lambda made: made()),
    "a default argument": (lambda: remembered, lambda function: function(1)),
    "an attribute of a function": (lambda: marked, lambda function: function()),
    "variables of the file": (lambda: of_the_file, lambda function: function()),
    "a generator of torch": (lambda: torch.Generator().manual_seed(0), lambda g: float(torch.rand(1, generator=g))),
    "a generator of numpy": (lambda: np.random.default_rng(0), lambda g: g.random()),
    "a generator of the old numpy": (lambda: np.random.RandomState(0), lambda g: g.rand()),
    "a generator of python": (lambda: random.Random(0), lambda g: g.random()),
    "an iterator that counts": (lambda: itertools.count(1), next),
    "an iterator in a circle": (lambda: itertools.cycle(range(7)), next),
    "an iterator of a list": (lambda: iter(list(range(1000))), next),
    "an iterator of Python": (lambda: (n for n in range(1000)), next),
}  # fmt: skip


class Odd(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.line = nn.Linear(3, 1)
        make, self.use = ODD[kind]
        self.held = make()

    def forward(self, x):
        return self.line(x) * (1 + 1e-3 * float(self.use(self.held)))


def reset():
    global COUNT
    COUNT, BANK[:] = 0, [0.0]
    LATER["n"] = torch.zeros(MANY)
    remembered.__defaults__[0].clear()
    vars(marked).clear()


def train(kind, watched):
    """The weights after six steps, and what was said before the first."""
    reset()
    torch.manual_seed(0)
    model = Odd(kind)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        probe = tm.Probe(model, HELD_OUT, tm.Watch(when=tm.record.every(2)), loss=tm.Square()) if watched else None
        early = 0
        for step in range(6):
            if probe is not None:
                probe(step)
                early = early if step else len(said)
            optimiser.zero_grad()
            model(X).square().mean().backward()
            optimiser.step()
    return model.line.weight.detach().clone(), [str(one.message) for one in said[:early]]


def test_there_are_forty():
    assert len(ODD) >= 40


@pytest.mark.parametrize("kind", ODD)
def test_a_probe_changes_nothing_or_says_so_before_the_first_step(kind):
    alone, _ = train(kind, watched=False)
    watched, said = train(kind, watched=True)
    identical = torch.equal(alone, watched)
    assert identical or any("cannot be put back" in sentence for sentence in said)
    assert identical or "iterator" in kind  # everything else is put back


def test_what_is_too_large_to_be_copied_is_noticed(monkeypatch):
    monkeypatch.setattr(python_state, "BYTES", 1000)
    for kind in ("a large tensor", "a large array", "a long list"):
        _, said = train(kind, watched=True)
        assert any("Looking at the model changed Odd.held, which cannot be put back" in sentence for sentence in said)


def test_more_objects_than_are_followed_are_said(monkeypatch):
    monkeypatch.setattr(python_state, "OBJECTS", 100)
    _, said = train("three hundred levels down", watched=True)
    assert any("holds more than 100 objects" in sentence for sentence in said)


def test_arrays_of_the_standard_library_are_not_followed():
    """The limit of what is promised: state inside objects of other packages."""
    assert not python_state._has_state(array("d", [0.0]))
