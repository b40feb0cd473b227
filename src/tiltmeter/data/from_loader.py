"""from_loader: a PyTorch Dataset or DataLoader, read once into grouped data, or streamed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tiltmeter.data.nested import Nested, Streamed, joined
from tiltmeter.data.unpacked import refuse_too_large

if TYPE_CHECKING:
    from tiltmeter.data.grouped import GroupedData


def from_npz(
    path: str | os.PathLike[str], *, label: str = "y", group: str = "group", features: str = "x", weights: Any = None
) -> GroupedData:
    """See `GroupedData.from_npz`."""
    from tiltmeter.data.grouped import GroupedData

    place = Path(path)
    if not place.is_file():
        raise FileNotFoundError(f"No file {place}.")
    try:
        with np.load(place, allow_pickle=False) as arrays:
            if not isinstance(arrays, np.lib.npyio.NpzFile):
                raise ValueError("a single array")
            asked = {"label": label, "group": group, "features": features}
            if weights is not None:
                asked["weights"] = weights
            for what, name in asked.items():
                if name not in arrays.files:
                    listed = ", ".join(map(repr, arrays.files))
                    raise KeyError(f"`{what}`: no array {name!r} in {place.name}. There are: {listed}.")
            assert arrays.zip is not None
            size = sum(int(arrays.zip.getinfo(f"{name}.npy").file_size) for name in asked.values())
            refuse_too_large(place, size)
            found = {what: arrays[name] for what, name in asked.items()}
    except KeyError as error:
        if str(place.name) in str(error):
            raise
        raise ValueError(f"{place} should be a whole .npz file. Found: {error}.") from None
    except Exception as error:  # the readers of archives and of arrays raise many kinds for damaged files
        if str(place) in str(error):
            raise
        if "allow_pickle" in str(error):
            raise ValueError(
                f"{place} should hold plain arrays. Found Python objects: they are never loaded."
            ) from None
        raise ValueError(f"{place} should be a whole .npz file. Found: {error}.") from None
    return GroupedData(found["features"], found["label"], found["group"], found.get("weights"))


#: What `read` returns: points, labels and groups of one item.
Parts = tuple[Any, Any, Any]


def from_loader(
    source: Any, *, read: Callable[[Any], Parts] | None = None, group: Any = None, stream: bool = False
) -> GroupedData:
    """See `GroupedData.from_loader`."""
    import torch
    from torch.utils.data import DataLoader

    from tiltmeter.data.grouped import GroupedData

    batched = isinstance(source, DataLoader) and source.batch_size is not None
    shuffles = batched and isinstance(source.sampler, torch.utils.data.RandomSampler)
    if shuffles and (group is not None or stream):
        what = "`group` goes" if group is not None else "A stream goes"
        raise ValueError(f"{what} by the order of the points. Found a DataLoader that shuffles: pass its dataset.")
    parts = read or _parts
    xs: list[Any] = []
    ys: list[Any] = []
    members: list[Any] = []
    shapes: set[str] = set()
    for x, y, g in _blocks(_items(source), parts, batched):
        if group is None and g is None:
            raise TypeError(
                "Every item should name its group. Found none: yield (x, y, group), pass read=, or group= with one "
                "label per point."
            )
        shapes.add(str(tuple(x.shape[1:])))
        ys += y
        members += g or []
        if not stream:
            xs.append(x)
        elif not xs:
            xs.append(x[:1])
    if not xs:
        raise ValueError("The loader should yield at least one item. Found none.")
    if len(shapes) > 1 and not stream:
        least, *_, most = sorted(shapes)
        raise ValueError(f"All points should have one shape. Found {least} and {most}: pad them in read=.")
    labels = np.asarray(ys)
    points = _stream(source, parts, batched, labels, xs[0]) if stream else joined(xs)
    return GroupedData(points, labels, members if group is None else group)


def _blocks(
    items: Iterator[Any], read: Callable[[Any], Parts], batched: bool
) -> Iterator[tuple[Any, list[Any], list[Any] | None]]:
    """Points, labels and groups, item by item: a batch, or one point as a batch of one."""
    for item in items:
        x, y, g = read(item)
        if batched:
            yield _tensors(x, False), np.asarray(y).tolist(), None if g is None else _listed(g)
        else:
            yield _tensors(x, True), [np.asarray(y).item()], None if g is None else [_plain(g)]


def _tensors(x: Any, single: bool) -> Any:
    """Points as one tensor or nested tensors; a single point becomes a batch of one."""
    import torch

    def one(value: Any) -> Any:
        found = torch.as_tensor(value)
        return found[None] if single else found

    if isinstance(x, Mapping):
        return Nested({name: one(value) for name, value in x.items()})
    if isinstance(x, (tuple, list)) and any(hasattr(part, "shape") for part in x):
        return Nested(tuple(one(value) for value in x))
    return one(x)


def _stream(source: Any, read: Callable[[Any], Parts], batched: bool, y: np.ndarray, first: Any) -> Streamed:
    def passed() -> Iterator[tuple[Any, np.ndarray]]:
        generator = getattr(source, "generator", None)
        state = None if generator is None else generator.get_state()
        try:
            for x, labels, _ in _blocks(_items(source), read, batched):
                yield x, np.asarray(labels)
        finally:
            if generator is not None:
                generator.set_state(state)

    def block(places: np.ndarray) -> tuple[Any, np.ndarray]:
        found = list(_blocks((source[int(place)] for place in places), read, False))
        return joined([x for x, _, _ in found]), np.asarray([labels[0] for _, labels, _ in found])

    shape = first.shape[1:]
    if hasattr(source, "__getitem__") and hasattr(source, "__len__"):
        return Streamed(y, shape, block)
    return Streamed(y, shape, None, passed)


def _items(source: Any) -> Iterator[Any]:
    if hasattr(source, "__len__") and hasattr(source, "__getitem__"):
        return (source[place] for place in range(len(source)))
    if not isinstance(source, Iterable):
        raise TypeError(f"`source` should be a Dataset or a DataLoader. Found {type(source).__name__}.")
    return iter(source)


def _parts(item: Any) -> Parts:
    if isinstance(item, Mapping):
        name = next((name for name in ("y", "label", "labels") if name in item), None)
        others = {key: value for key, value in item.items() if key not in (name, "group")}
        if name is None or not others:
            raise KeyError(
                f"An item should have keys 'x', 'y' and 'group'. Found {', '.join(map(repr, item))}: pass read=."
            )
        return item.get("x", others), item[name], item.get("group")
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
