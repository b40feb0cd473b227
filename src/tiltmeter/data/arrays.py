"""Arrays: checks of what a user passes as points, labels and groups."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np


def is_tensor(value: object) -> bool:
    return type(value).__module__.split(".")[0] == "torch" and hasattr(value, "detach")


def writable(values: Any) -> Any:
    """An array that torch takes without a warning: a copy of one that is read-only, as the columns of pandas 3 are."""
    return values.copy() if isinstance(values, np.ndarray) and not values.flags.writeable else values


def refuse_masked(name: str, values: Any) -> None:
    """Refuse an array with a mask, which would be dropped without a word."""
    if isinstance(values, np.ma.MaskedArray):
        count = int(np.ma.getmaskarray(values).sum())
        raise TypeError(
            f"`{name}` should be a plain array. Found a masked array with {count:,} masked values: fill them in, or "
            "drop their points."
        )


def points_of(x: Any) -> Any:
    refuse_masked("x", x)
    if is_tensor(x):
        points = _dense("x", x)
    else:
        points = np.asarray(x)
        if points.dtype.kind not in "fiub":
            raise TypeError(f"`x` should hold numbers. Found values of type {points.dtype}.")
    if points.ndim == 0:
        raise ValueError("`x` should have one point per row. Found a single number.")
    return points


def _dense(name: str, tensor: Any) -> Any:
    if tensor.is_meta or str(tensor.layout) != "torch.strided":
        kind = "without values, on the meta device" if tensor.is_meta else f"of layout {tensor.layout}"
        raise TypeError(f"`{name}` should be a dense tensor with values. Found one {kind}.")
    return tensor.detach()


def numbers_of(name: str, values: Any) -> np.ndarray:
    if values is None:
        raise TypeError(f"`{name}` should give one number per point. Found None.")
    refuse_masked(name, values)
    array = _dense(name, values).cpu().numpy() if is_tensor(values) else np.asarray(values)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"`{name}` should hold numbers: encode other labels as 0, 1, 2, ... Found {array.dtype}.")
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ValueError(f"`{name}` should have one number per point. Found shape {array.shape}.")
    return array


def members_of(group: Any) -> Any:
    refuse_masked("group", group)
    if is_tensor(group):
        group = _dense("group", group).cpu().numpy()
    if isinstance(group, np.ndarray) and group.ndim == 2:  # one row of labels per point: intersections of groups
        return [tuple(row) for row in group.tolist()]
    if not isinstance(group, (np.ndarray, list, tuple)) or getattr(group, "ndim", 1) == 0:
        if not isinstance(group, Iterable) or getattr(group, "ndim", 1) == 0:
            raise TypeError(f"`group` should give the group of every point. Found {type(group).__name__}.")
        group = list(group)
    return group


def check_finite(x: Any, y: np.ndarray) -> None:
    if hasattr(type(x), "check_finite"):  # points in parts
        x.check_finite()
    elif not hasattr(type(x), "chunks"):  # streamed points are not read for this
        check_finite_points(x, "`x`")
    if not np.isfinite(y).all():
        raise ValueError(f"`y` should be finite. Found NaN or infinity in {int((~np.isfinite(y)).sum())} labels.")


def check_finite_points(x: Any, name: str) -> None:
    bad = ~x.isfinite() if is_tensor(x) else ~np.isfinite(x)
    if bool(bad.any()):
        per_point = bad.reshape(len(bad), -1).any(1)
        count, first = int(per_point.sum()), int(np.flatnonzero(np.asarray(per_point.tolist()))[0])
        raise ValueError(
            f"{name} should be finite. Found NaN or infinity in {count} of {len(x)} points, first in point {first}."
        )


def read_dataset(dataset: Any) -> tuple[Any, Any, Any]:
    if not hasattr(dataset, "__getitem__") or not hasattr(dataset, "__len__") or isinstance(dataset, np.ndarray):
        raise TypeError(
            f"Without y and group, `x` should be a Dataset that yields (x, y, group). Found {type(dataset).__name__}."
        )
    points = [dataset[i] for i in range(len(dataset))]
    for point in points[:1]:
        if not isinstance(point, Sequence) or len(point) != 3:
            raise TypeError("A Dataset should yield (x, y, group). Found something else in its first point.")
    if points and is_tensor(points[0][0]):
        import torch

        x: Any = torch.stack([point[0] for point in points])
    else:
        x = np.stack([np.asarray(point[0]) for point in points]) if points else np.empty((0, 1))
    y = np.asarray([float(p[1]) if isinstance(p[1], float) else np.asarray(p[1]).item() for p in points])
    return x, y, [_plain(point[2]) for point in points]


def _plain(label: Any) -> Any:
    return label.item() if is_tensor(label) and label.ndim == 0 else label
