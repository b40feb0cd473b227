"""Datasets and loaders as grouped data: every kind of item gives the same points."""

import numpy as np
import pytest

from tiltmeter import GroupedData

torch = pytest.importorskip("torch")
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset  # noqa: E402

X = torch.arange(160.0).reshape(80, 2)
Y = torch.arange(80) % 2
G = ["a", "b"] * 40


class Points(Dataset):
    def __init__(self, make):
        self.make = make

    def __len__(self):
        return 80

    def __getitem__(self, i):
        return self.make(i)


class Stream(IterableDataset):
    def __iter__(self):
        return ((X[i], int(Y[i]), G[i]) for i in range(80))


WAYS = {
    "triples": Points(lambda i: (X[i], Y[i], G[i])),
    "arrays": Points(lambda i: (X[i].numpy(), int(Y[i]), G[i])),
    "dicts": Points(lambda i: {"x": X[i], "label": Y[i], "group": G[i]}),
    "batches": DataLoader(Points(lambda i: (X[i], Y[i], G[i])), batch_size=7),
    "batches of dicts": DataLoader(Points(lambda i: {"x": X[i], "y": Y[i], "group": G[i]}), batch_size=7),
    "a stream": Stream(),
    "a loader of a stream": DataLoader(Stream(), batch_size=7),
    "unbatched": DataLoader(Points(lambda i: (X[i], Y[i], G[i])), batch_size=None),
}


@pytest.mark.parametrize("way", WAYS)
def test_every_kind_of_item(way):
    data = GroupedData.from_loader(WAYS[way])
    assert data.sizes == {"a": 40, "b": 40}
    torch.testing.assert_close(torch.as_tensor(data.x), X)
    np.testing.assert_array_equal(data.y, Y)


def test_pairs_with_a_group_vector_and_a_reader():
    pairs = TensorDataset(X, Y)
    for source in (pairs, DataLoader(pairs, batch_size=9)):
        assert GroupedData.from_loader(source, group=G).sizes == {"a": 40, "b": 40}
    data = GroupedData.from_loader(pairs, read=lambda item: (item[0] * 2, item[1], int(item[1])))
    assert data.groups == (0, 1)
    torch.testing.assert_close(torch.as_tensor(data.x), 2 * X)


def test_intersections_survive_collation():
    loader = DataLoader(Points(lambda i: (X[i], Y[i], (G[i], i % 4 < 2))), batch_size=8)
    assert GroupedData.from_loader(loader).groups == (("a", False), ("a", True), ("b", False), ("b", True))


@pytest.mark.parametrize(
    ("make", "kind", "sentence"),
    [
        (lambda: GroupedData.from_loader(TensorDataset(X, Y)), TypeError, "Every item should name its group. Found none"),
        (lambda: GroupedData.from_loader(3), TypeError, "`source` should be a Dataset or a DataLoader. Found int."),
        (lambda: GroupedData.from_loader(TensorDataset(X[:0], Y[:0])), ValueError, "should yield at least one item. Found none."),
        (lambda: GroupedData.from_loader(Points(lambda i: X[i])), TypeError, "An item should be (x, y, group), (x, y) or a dict. Found Tensor"),
        (lambda: GroupedData.from_loader(Points(lambda i: {"a": 1})), KeyError, "An item should have keys 'x', 'y' and 'group'. Found 'a'"),
        (lambda: GroupedData.from_loader(Points(lambda i: (X[i, : 1 + i % 2], 0, "a"))), ValueError, "All points should have one shape. Found (1,) and (2,)"),
        (lambda: GroupedData.from_loader(DataLoader(TensorDataset(X, Y), batch_size=4, shuffle=True), group=G), ValueError, "Found a DataLoader that shuffles"),
    ],
)  # fmt: skip
def test_sentences(make, kind, sentence):
    with pytest.raises(kind) as error:
        make()
    assert sentence in str(error.value.args[0])
