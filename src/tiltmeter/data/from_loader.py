"""from_loader: a PyTorch Dataset or DataLoader, read once into grouped data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from tiltmeter.data.grouped import GroupedData

#: What `read` returns: points, labels and groups of one item.
Parts = tuple[Any, Any, Any]


def from_loader(source: Any, *, read: Callable[[Any], Parts] | None = None, group: Any = None) -> GroupedData:
    """See `GroupedData.from_loader`."""
    import torch
    from torch.utils.data import DataLoader

    from tiltmeter.data.grouped import GroupedData

    batched = isinstance(source, DataLoader) and source.batch_size is not None
    if batched and group is not None and isinstance(source.sampler, torch.utils.data.RandomSampler):
        raise ValueError("`group` goes by the order of the points. Found a DataLoader that shuffles: pass its dataset.")
    xs: list[Any] = []
    ys: list[Any] = []
    members: list[Any] = []
    for item in _items(source):
        x, y, g = (read or _parts)(item)
        if group is None and g is None:
            raise TypeError(
                "Every item should name its group. Found none: yield (x, y, group), pass read=, or group= with one "
                "label per point."
            )
        if batched:
            xs.append(torch.as_tensor(x))
            ys += np.asarray(y).tolist()
            members += [] if g is None else _listed(g)
        else:
            xs.append(torch.as_tensor(x)[None])
            ys.append(np.asarray(y).item())
            members += [] if g is None else [_plain(g)]
    if not xs:
        raise ValueError("The loader should yield at least one item. Found none.")
    shapes = sorted({tuple(x.shape[1:]) for x in xs})
    if len(shapes) > 1:
        raise ValueError(f"All points should have one shape. Found {shapes[0]} and {shapes[-1]}: pad them in read=.")
    return GroupedData(torch.cat(xs), np.asarray(ys), members if group is None else group)


def _items(source: Any) -> Iterator[Any]:
    if hasattr(source, "__len__") and hasattr(source, "__getitem__"):
        return (source[place] for place in range(len(source)))
    if not isinstance(source, Iterable):
        raise TypeError(f"`source` should be a Dataset or a DataLoader. Found {type(source).__name__}.")
    return iter(source)


def _parts(item: Any) -> Parts:
    if isinstance(item, Mapping):
        y = next((item[name] for name in ("y", "label", "labels") if name in item), None)
        if "x" not in item or y is None:
            raise KeyError(
                f"An item should have keys 'x', 'y' and 'group'. Found {', '.join(map(repr, item))}: pass read=."
            )
        return item["x"], y, item.get("group")
    if not isinstance(item, (list, tuple)) or len(item) not in (2, 3):
        raise TypeError(f"An item should be (x, y, group), (x, y) or a dict. Found {type(item).__name__}: pass read=.")
    return item[0], item[1], item[2] if len(item) == 3 else None


def _listed(labels: Any) -> list[Any]:
    """The labels of a batch; a collated tuple of columns (intersections) is turned into rows."""
    if hasattr(labels, "tolist"):
        return list(map(_plain, labels.tolist()))
    labels = list[Any](labels)
    if labels and all(hasattr(part, "tolist") or isinstance(part, (list, tuple)) for part in labels):
        columns = [part.tolist() if hasattr(part, "tolist") else list(part) for part in labels]
        return list(zip(*columns, strict=True))
    return list(labels)


def _plain(label: Any) -> Any:
    if hasattr(label, "tolist"):
        label = label.tolist()
    return tuple(label) if isinstance(label, list) else label
