"""gradient-pull: whose loss moves the parameters, and whether groups pull the same way."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
import torch
import xarray as xr

from tiltmeter.measures.default_curves import MOST
from tiltmeter.measures.shared.point_losses import point_losses
from tiltmeter.measures.snapshot import Snapshot
from tiltmeter.tangent.gradient import gradient, trained


@dataclass(frozen=True)
class GradientPull:
    """Gradients of the mean loss of every group and every class: how long they are and where they point.

    With g_a the gradient of group a, p_a its share of the points and G = sum p_a g_a that of all:

    - `gradient_norm` is the length of g_a, `class_gradient_norm` that of a class;
    - `gradient_pull` is p_a g_a . G / G . G, the part of the common step that is the group's; the parts add up to 1,
      and a group whose part is negative loses by a small step along -G;
    - `gradient_cosine` of a pair is the cosine of their gradients, `class_gradient_cosine` of a class that with G.

    The null is the same for points dealt out to groups (or classes) at random, as many to each: a small group has a
    long gradient by noise alone. For `gradient_pull` it is the group's share.

    What it does not mean: the gradients are those of the points looked at, in the plain geometry of the parameters, so
    that they say what plain gradient descent would do next, not what Adam does or where training ends.
    """

    seed: int = 0

    title: ClassVar[str] = "Lengths and angles of the gradients of groups and classes: who pulls where"
    takes: ClassVar[str] = "a loss of each point; any model with trained parameters"
    exact: ClassVar[str] = "always, for the points looked at"
    absent: ClassVar[str] = "groups drawn from one distribution: lengths, cosines and parts as those of random groups"

    def __call__(self, snapshot: Snapshot) -> dict[str, xr.DataArray]:
        data, classes = snapshot.data, _classes(snapshot)
        order = np.random.default_rng(self.seed).permutation(len(data))
        real = _gradients(snapshot, data.codes, classes)
        random = _gradients(snapshot, data.codes[order], None if classes is None else classes[order])
        mass = np.bincount(data.codes, minlength=len(data.groups)) / len(data)
        of_group = {"group": data.group_labels}
        pairs = list(combinations(range(len(data.groups)), 2))
        words = np.array([f"{data.groups[a]} vs {data.groups[b]}" for a, b in pairs], dtype=object)
        found: dict[str, xr.DataArray] = {}

        def add(name: str, meaning: str, values: np.ndarray, null: np.ndarray, coords: dict[str, np.ndarray]) -> None:
            found[name] = snapshot.reading(name, values, coords, long_name=meaning, better="neither")
            text = f"{meaning}, by chance"
            found[f"{name}_null"] = snapshot.reading(f"{name}_null", null, coords, long_name=text, better="neither")

        add("gradient_norm", "length of a group's gradient", _norms(real.group), _norms(random.group), of_group)
        whole = real.whole
        part = mass * _divided(real.group @ whole, whole @ whole)
        add("gradient_pull", "a group's part of the common gradient step", part, mass, of_group)
        if pairs:
            turned, null = (np.array([_cosine(one.group[a], one.group[b]) for a, b in pairs]) for one in (real, random))
            add("gradient_cosine", "cosine of the gradients of two groups", turned, null, {"pair": words})
        if classes is not None:
            of_class = {"class": np.asarray(snapshot.task.labels)}
            add("class_gradient_norm", "length of a class's gradient", _norms(real.kind), _norms(random.kind), of_class)
            turned, null = (np.array([_cosine(row, one.whole) for row in one.kind]) for one in (real, random))
            add("class_gradient_cosine", "cosine of a class's gradient with that of all", turned, null, of_class)
        return found

    def passes(self, snapshot: Snapshot) -> float:  # noqa: ARG002
        """Forward and backward, for the groups and for random ones."""
        return 6.0


@dataclass(frozen=True, eq=False)
class _Gradients:
    """Gradients of all points, of each group (rows; NaN: no points) and of each class."""

    whole: np.ndarray
    group: np.ndarray
    kind: np.ndarray


def _gradients(snapshot: Snapshot, codes: np.ndarray, classes: np.ndarray | None) -> _Gradients:
    """Every point once: gradients of (group, class) cells, then their weighted means."""
    seen, groups = snapshot.model, len(snapshot.data.groups)
    kinds = np.zeros(len(codes), dtype=np.int64) if classes is None else classes
    count = 1 if classes is None else len(snapshot.task.labels)
    losses, parameters = point_losses(seen), trained(seen.module)
    total = np.zeros((groups, count, sum(p.numel() for p in parameters)))
    sizes = np.zeros((groups, count))
    for group in range(groups):
        for kind in range(count):
            places = np.flatnonzero((codes == group) & (kinds == kind))
            if len(places):
                mean = gradient(losses, parameters, torch.as_tensor(places), seen.chunk)
                total[group, kind] = len(places) * mean.cpu().double().numpy()
                sizes[group, kind] = len(places)
    return _Gradients(
        whole=total.sum((0, 1)) / sizes.sum(),
        group=_divided(total.sum(1), sizes.sum(1)[:, None]),
        kind=_divided(total.sum(0), sizes.sum(0)[:, None]),
    )


def _classes(snapshot: Snapshot) -> np.ndarray | None:
    """The class of each point as a place among the labels; None where there are no classes, or too many to read."""
    labels = snapshot.task.labels
    if not 2 <= len(labels) <= MOST:
        return None
    return np.searchsorted(np.asarray(labels, dtype=float), snapshot.data.y.astype(float))


def _divided(a: Any, b: Any) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.where(np.asarray(b) == 0, np.nan, a / b)


def _norms(rows: np.ndarray) -> np.ndarray:
    return np.asarray(np.linalg.norm(rows, axis=1))


def _cosine(a: np.ndarray, b: np.ndarray) -> float:
    return float(_divided(a @ b, np.linalg.norm(a) * np.linalg.norm(b)))
