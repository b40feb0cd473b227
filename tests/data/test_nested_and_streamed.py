"""Points in parts and points that are streamed: the same curves as from one array in memory."""

import numpy as np
import pytest

import tiltmeter as tm

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.utils.data import DataLoader, Dataset, IterableDataset  # noqa: E402

RNG = np.random.default_rng(0)
TOKENS = RNG.integers(0, 7, (120, 5))
MASK = RNG.random((120, 5)) < 0.7
MASK[:, 0] = True
Y = (TOKENS * MASK).sum(1) % 2
GROUP = np.where(np.arange(120) % 3 == 0, "b", "a")


class Reader(nn.Module):
    """Takes tokens with their mask, by name or in order."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.table, self.head = nn.Embedding(7, 4), nn.Linear(4, 2)

    def forward(self, tokens, mask=None):
        mask = torch.ones_like(tokens) if mask is None else mask
        weights = mask.to(self.head.weight.dtype)[..., None]
        return self.head((self.table(tokens) * weights).sum(1) / weights.sum(1))


class Whole(Reader):
    """Takes everything as one argument."""

    def forward(self, batch):
        tokens, mask = batch.values() if isinstance(batch, dict) else batch
        return super().forward(tokens, mask)


class Joined(Reader):
    """The same from one array: the second route."""

    def forward(self, x):
        return super().forward(x[:, :5], x[:, 5:].bool())


ONE = tm.GroupedData(np.concatenate([TOKENS, MASK.astype(int)], 1), Y, GROUP)
WAYS = {
    "by name": (Reader, {"tokens": TOKENS, "mask": MASK}),
    "by name, another order": (Reader, {"mask": MASK, "tokens": TOKENS}),
    "in order": (Reader, (TOKENS, MASK)),
    "tensors": (Reader, (torch.as_tensor(TOKENS), torch.as_tensor(MASK))),
    "a dict as one argument": (Whole, {"tokens": TOKENS, "mask": MASK}),
    "a tuple as one argument": (Whole, (TOKENS, MASK)),
}


def evaluate_at(model, data, **settings):
    with tm.Probe(model, data, **settings, budget=None) as probe:
        pass
    return probe.trajectory()


def assert_same(one, other):
    assert set(one) == set(other)
    for name in one:
        np.testing.assert_allclose(one[name].values, other[name].values, rtol=1e-6, atol=1e-7, err_msg=name)


@pytest.mark.parametrize("way", WAYS)
def test_a_model_gets_the_parts_as_they_are(way):
    kind, x = WAYS[way]
    data = tm.GroupedData(x, Y, GROUP)
    assert_same(evaluate_at(kind(), data, chunk=50), evaluate_at(Joined(), ONE, chunk=50))


def test_training_with_parts_is_that_with_one_array():
    recipe = tm.Recipe(lr=0.5, steps=20, batch=16)
    parts = tm.GroupedData({"tokens": TOKENS, "mask": MASK}, Y, GROUP)
    assert_same(tm.train(Reader(), *parts.split(0.5), recipe), tm.train(Joined(), *ONE.split(0.5), recipe))


def test_parts_are_shown_and_what_needs_one_array_says_so():
    data = tm.GroupedData({"tokens": TOKENS, "mask": MASK}, Y, GROUP)
    assert "120 points of tokens, mask" in repr(data)
    assert data.to_json()["shape"] == [{"tokens": [5], "mask": [5]}]
    assert len(data.take([0, 3]).x.parts["mask"]) == 2
    recipe = tm.Recipe(lr=0.1, steps=5)
    assert "loss" in tm.forecast(Reader(), *data.split(0.5), recipe, method=tm.methods.Rehearsal(1), progress=False)
    with pytest.raises(TypeError, match=r"needs points that are one tensor\. Found points in parts"):
        tm.ensemble(Reader, *data.split(0.5), recipe, seeds=2)
    with pytest.raises(ValueError, match=r"Found 120 in tokens, 119 in mask\."):
        tm.GroupedData({"tokens": TOKENS, "mask": MASK[1:]}, Y, GROUP)
    with pytest.raises(ValueError, match=r"`x`, part a, should be finite"):
        tm.GroupedData({"a": np.full((120, 1), np.nan)}, Y, GROUP)


class Points(Dataset):
    """Tokens, masks, labels and groups as a dict for each point."""

    def __len__(self):
        return 120

    def __getitem__(self, i):
        return {"tokens": TOKENS[i], "mask": MASK[i], "labels": int(Y[i]), "group": str(GROUP[i])}


class Stream(IterableDataset):
    def __iter__(self):
        return (Points()[i] for i in range(120))


SOURCES = {
    "a dataset": Points,
    "a loader": lambda: DataLoader(Points(), batch_size=7),
    "a loader with a generator": lambda: DataLoader(Points(), batch_size=7, generator=torch.Generator()),
    "a stream": lambda: DataLoader(Stream(), batch_size=9),
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("source", SOURCES)
def test_streamed_points_give_the_curves_of_those_in_memory(source, stream):
    data = tm.GroupedData.from_loader(SOURCES[source](), stream=stream)
    one, other = Reader(), Joined()
    before = torch.get_rng_state()
    assert_same(evaluate_at(one, data, chunk=32), evaluate_at(other, ONE, chunk=32))
    assert torch.equal(before, torch.get_rng_state()), "iterating a loader draws a seed"
    assert_same(evaluate_at(Reader(), data.split(0.5)[1]), evaluate_at(Joined(), ONE.split(0.5)[1]))


def test_a_dataset_is_streamed_while_training_too():
    recipe = tm.Recipe(lr=0.5, steps=10, batch=16)
    streamed = tm.GroupedData.from_loader(Points(), stream=True)
    assert_same(tm.train(Reader(), *streamed.split(0.5), recipe), tm.train(Joined(), *ONE.split(0.5), recipe))


def test_a_stream_that_changes_its_order_is_refused():
    class Moving(Points):
        first = True

        def __getitem__(self, i):
            return super().__getitem__(i if Moving.first else (i * 7 + 1) % 120)

    data = tm.GroupedData.from_loader(Moving(), stream=True)
    Moving.first = False
    with pytest.raises(ValueError, match="Found other labels than at first: do not shuffle it"):
        evaluate_at(Reader(), data)
    with pytest.raises(ValueError, match="A stream goes by the order of the points"):
        tm.GroupedData.from_loader(DataLoader(Points(), batch_size=4, shuffle=True), stream=True)
    loaded = tm.GroupedData.from_loader(DataLoader(Points(), batch_size=4), stream=True)
    with pytest.raises(ValueError, match="Found another order: stream its dataset"):
        loaded.take([3, 1])


def test_inputs_have_the_structure_that_was_given():
    parts = {"tokens": np.zeros((60, 2), dtype=int), "mask": np.ones((60, 2), dtype=np.float32)}
    named = tm.GroupedData(parts, [0, 1] * 30, ["a"] * 30 + ["b"] * 30)
    x, y = named.inputs()
    assert isinstance(x, dict)
    assert {name: tuple(part.shape) for name, part in x.items()} == {"tokens": (60, 2), "mask": (60, 2)}
    x, y = tm.GroupedData(tuple(parts.values()), [0, 1] * 30, ["a"] * 30 + ["b"] * 30).inputs()
    assert isinstance(x, tuple)
    assert len(y) == 60
