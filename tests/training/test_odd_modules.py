"""Sixty modules that keep state in odd places, in six loops: a probe changes nothing about their training, or says so
before its first step. Nothing that others write meanwhile is lost, and points and arrays of the user stay as they are."""

import functools
import itertools
import os
import random
import threading
import time
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
    "an array of the standard library": (lambda: array("d", [0.0]), lambda a: a.__setitem__(0, a[0] + 1) or a[0]),
    "a variable of the environment": (int, lambda held: environment(held)),
    "how NumPy treats errors": (int, lambda held: error_settings(held)),
    "an iterator that counts": (lambda: itertools.count(1), next),
    "an iterator in a circle": (lambda: itertools.cycle(range(7)), next),
    "an iterator of a list": (lambda: iter(list(range(1000))), next),
    "an iterator of Python": (lambda: (n for n in range(1000)), next),
}  # fmt: skip


def environment(_):
    os.environ["TILTMETER_TEST"] = str(int(os.environ.get("TILTMETER_TEST", "0")) + 1)
    return int(os.environ["TILTMETER_TEST"])


def error_settings(_):
    kind = "ignore" if np.geterr()["over"] == "warn" else "warn"
    np.seterr(over=kind)
    return kind == "warn"


class Odd(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.line = nn.Linear(3, 1)
        make, self.use = ODD[kind]
        self.held = make()

    def forward(self, x):
        return self.line(x) * (1 + 1e-3 * float(self.use(self.held)))


class Own(nn.Module):
    """A module whose forward pass changes itself, its points, or what it holds: `act` takes both."""

    def __init__(self, kind):
        super().__init__()
        self.line = nn.Linear(3, 1)
        self.n, self.state, self.hidden = 0, torch.zeros(3), (torch.zeros(1), 0)
        self.made: dict = {}
        self.seen = torch.zeros(0, 3)
        self.array = np.zeros(2)
        self.register_buffer("mean", torch.zeros(3))
        self.act = OWN[kind]

    def forward(self, x):
        return self.line(self.act(self, x))


def counts(own, x):
    own.n += 1
    return x * (1 + 1e-3 * own.n)


def rebinds(own, x):
    own.state = 0.9 * own.state + 0.1 * x.detach().mean(0)
    return x - own.state


def accumulates(own, x):
    own.state += x.detach().mean(0)
    return x - 1e-3 * own.state


def carries(own, x):
    own.hidden = (own.hidden[0] + 1, own.hidden[1] + 1)
    return x * (1 + 1e-3 * own.hidden[0])


def moves_its_buffer(own, x):
    own.mean = 0.9 * own.mean + 0.1 * x.detach().mean(0)
    return x - own.mean


def remembers_the_first_points(own, x):
    if not hasattr(own, "first"):
        own.first = x.detach().mean(0)
    return x - own.first


def makes_a_buffer(own, x):
    if not hasattr(own, "scale"):
        own.register_buffer("scale", x.detach().abs().mean(0))
    return x / own.scale


def makes_a_parameter(own, x):
    if not hasattr(own, "shift"):
        own.register_parameter("shift", nn.Parameter(x.detach().mean(0)))
    return x - own.shift


def makes_a_module(own, x):
    if not hasattr(own, "inner"):
        own.inner = nn.Linear(3, 3)
    return own.inner(x)


def normalises_in_place(own, x):
    x -= x.mean(0)
    x /= x.std(0) + 1e-6
    return x


def masks_in_place(own, x):
    return x.masked_fill_(x < -0.5, 0.0)


def fills_in_place(own, x):
    return x.nan_to_num_(0.0).clamp_(-1.0, 1.0).mul_(0.5)


def zeroes_the_points(own, x):
    out = x * 2
    x.zero_()
    return out


def keeps_the_points(own, x):
    own.seen = x
    return x


def fills_a_dict(own, x):
    own.made.setdefault("mean", x.detach().mean(0))
    return x - own.made["mean"]


def writes_into_its_array(own, x):
    own.array += 1
    return x * (1 + 1e-3 * float(own.array[0]))


def draws(own, x):
    return x * (1 + 0.01 * float(torch.rand(1)) + 0.01 * random.random() + 0.01 * np.random.rand())  # noqa: NPY002


def trains_itself(own, x):
    own.train()
    return x


OWN = {
    act.__name__: act
    for act in (
        counts, rebinds, accumulates, carries, moves_its_buffer, remembers_the_first_points, makes_a_buffer,
        makes_a_parameter, makes_a_module, normalises_in_place, masks_in_place, fills_in_place, zeroes_the_points,
        keeps_the_points, fills_a_dict, writes_into_its_array, draws, trains_itself,
    )
}  # fmt: skip
#: What a forward pass makes of held-out points, a training would keep: refused.
REFUSED = ("makes_a_buffer", "makes_a_parameter", "makes_a_module")


def reset():
    global COUNT
    COUNT, BANK[:] = 0, [0.0]
    LATER["n"] = torch.zeros(MANY)
    remembered.__defaults__[0].clear()
    vars(marked).clear()
    os.environ.pop("TILTMETER_TEST", None)
    np.seterr(divide="warn", over="warn", under="ignore", invalid="warn")  # as numpy begins
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002


def plain(model, optimiser, step):
    optimiser.zero_grad()
    model(X.clone()).square().mean().backward()
    optimiser.step()


def twice(model, optimiser, step):
    """Two passes for one update, as in accumulation."""
    optimiser.zero_grad()
    for part in (X[::2].clone(), X[1::2].clone()):
        (model(part).square().mean() / 2).backward()
    optimiser.step()


def shuffled(model, optimiser, step):
    optimiser.zero_grad()
    model(X[torch.randperm(len(X))[:16]]).square().mean().backward()
    optimiser.step()


def clipped(model, optimiser, step):
    model(X.clone() + 0.1 * torch.randn_like(X)).square().mean().backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimiser.step()
    optimiser.zero_grad(set_to_none=False)


def with_validation(model, optimiser, step):
    plain(model, optimiser, step)
    model.eval()
    with torch.no_grad():
        model(X[:5].clone())
    model.train()


def in_half_precision(model, optimiser, step):
    optimiser.zero_grad()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = model(X.clone()).float().square().mean()
    loss.backward()
    optimiser.step()


LOOPS = [plain, twice, shuffled, clipped, with_validation, in_half_precision]
MAKE = {**dict.fromkeys(ODD, Odd), **dict.fromkeys(OWN, Own)}


def train(kind, watched, loop=plain, held_out=HELD_OUT):
    """The weights after six steps, and what was said before the first."""
    reset()
    torch.manual_seed(0)
    model = MAKE[kind](kind)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.5)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        when = tm.Watch(when=tm.record.every(2))
        probe = tm.Probe(model, held_out, when, loss=tm.Square(), budget=None) if watched else None
        early = 0
        for step in range(6):
            if probe is not None:
                probe(step)
                early = early if step else len(said)
            loop(model, optimiser, step)
        if probe is not None:
            assert not probe.failures, probe.failures
    return [p.detach().clone() for p in model.parameters()], [str(one.message) for one in said[:early]]


def same(one, other):
    return len(one) == len(other) and all(map(torch.equal, one, other))


def changes_nothing_or_says_so(kind, loop):
    """Whether the training is the same; it may only differ where that was said."""
    points = X.clone()
    alone, _ = train(kind, watched=False, loop=loop)
    try:
        watched, said = train(kind, watched=True, loop=loop)
    except RuntimeError as error:
        assert kind in REFUSED
        assert "run one batch of the training data through it before it is evaluated" in str(error)  # noqa: PT017
        return "refused"
    assert torch.equal(X, points), "the points of the user were changed"
    assert kind not in REFUSED
    if same(alone, watched):
        return "identical"
    assert any("which is not put back" in sentence for sentence in said), kind
    return "said"


def test_there_are_sixty():
    assert len(MAKE) >= 60


@pytest.mark.parametrize("kind", MAKE)
def test_a_probe_changes_nothing_or_says_so_before_the_first_step(kind):
    found = changes_nothing_or_says_so(kind, plain)
    if kind in OWN and kind not in (*REFUSED, "fills_a_dict", "writes_into_its_array"):
        assert found == "identical", "what hangs on the model itself is put back"


@pytest.mark.slow
def test_sixty_modules_in_six_loops():
    found = Counter(changes_nothing_or_says_so(kind, loop) for kind in MAKE for loop in LOOPS)
    print(f"{len(MAKE)} modules in {len(LOOPS)} loops: {dict(found)}")
    assert found.total() == len(MAKE) * len(LOOPS)


@pytest.mark.parametrize("kind", ["normalises_in_place", "masks_in_place", "fills_in_place", "zeroes_the_points"])
def test_points_stay_as_they_are_and_evaluations_of_one_model_agree(kind):
    """A forward pass that works in place has a copy of its own, in a probe, in `train`, in parts and in streams."""
    x = np.random.default_rng(0).normal(size=(60, 3)).astype("float32")
    x[0, 0] = 0.25
    kept = x.copy()
    held_out = tm.GroupedData(x, np.arange(60) % 2, ["a", "b"] * 30)
    model = Own(kind)
    with tm.Probe(model, held_out, tm.Watch(when=tm.record.every(1)), loss=tm.Square(), budget=None) as probe:
        for step in range(5):
            probe(step)
    losses = probe.trajectory()["loss"].values
    assert (losses == losses[0]).all()
    tm.train(Own(kind), held_out, held_out, tm.Recipe(lr=0.01, steps=20, batch=8, loss=tm.Square()))
    tm.ensemble(
        lambda: nn.Sequential(nn.ReLU(inplace=True), nn.Linear(3, 1)), held_out, held_out, tm.Recipe(lr=0.01, steps=5)
    )
    assert (x == kept).all()


SHARED: list = []


@pytest.mark.parametrize("place", ["global", "attribute", "closure"])
def test_what_other_threads_append_meanwhile_is_not_lost(place):
    """The probe has no business with lists that a forward pass can reach, but which others fill."""
    SHARED.clear()
    closed: list = []

    class Watched(nn.Module):
        def __init__(self):
            super().__init__()
            self.line, self.log = nn.Linear(3, 1), []

        def forward(self, x):
            len(SHARED), len(self.log), len(closed)
            return self.line(x)

    model = Watched()
    target = {"global": SHARED, "attribute": model.log, "closure": closed}[place]
    appended, stop = [0], threading.Event()

    def append():
        while not stop.is_set():
            target.append(appended[0])
            appended[0] += 1
            time.sleep(1e-4)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        thread = threading.Thread(target=append)
        thread.start()
        try:
            with tm.Probe(model, HELD_OUT, tm.Watch(when=tm.record.every(1)), budget=None) as probe:
                for step in range(10):
                    probe(step)
        finally:
            stop.set()
            thread.join()
    assert target == list(range(appended[0]))


@pytest.mark.parametrize("kind", ["a list", "variables of the file", "an iterator of Python", "a number"])
def test_warnings_that_are_errors_end_no_training(kind, capfd):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        reset()
        model = Odd(kind)
        optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
        with tm.Probe(model, HELD_OUT, tm.Watch(when=tm.record.every(1)), loss=tm.Square()) as probe:
            for step in range(6):
                probe(step)
                plain(model, optimiser, step)
    assert not probe.failures
    assert "which is not put back" in capfd.readouterr().err


def test_a_probe_that_fails_ends_no_training_where_warnings_are_errors(capfd):
    def broken(snapshot):
        raise ValueError("no spectrum")

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with tm.Probe(nn.Linear(3, 1), HELD_OUT, tm.Watch(measures=[broken])) as probe:
            probe(0)
    assert probe.failures
    assert "The measure 'broken' failed at step 0" in capfd.readouterr().err


def test_more_objects_than_are_followed_are_said(monkeypatch):
    monkeypatch.setattr(python_state, "OBJECTS", 100)
    _, said = train("three hundred levels down", watched=True)
    assert any("reaches more than" in sentence for sentence in said)
