"""gradient-pull: how much each group contributes to the gradient, and whether the gradients of groups agree."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
import torch
import xarray as xr

from tiltmeter.measures.default_curves import MOST
from tiltmeter.measures.snapshot import Snapshot
from tiltmeter.modules.tangent.gradient import gradient, trained
from tiltmeter_lab.measures.shared.risk import point_losses


@dataclass(frozen=True)
class GradientPull:
    """Gradients of the mean loss of every group and every class: their lengths and directions.

    >>> import tiltmeter as tm, torch
    >>> import tiltmeter_lab as lab
    >>> model = torch.nn.Linear(1, 1, bias=False)
    >>> model.weight.data = torch.zeros(1, 1)
    >>> data = tm.GroupedData([[1.0]] * 120, [1] * 80 + [-1] * 40, ["a"] * 80 + ["b"] * 40)  # opposite labels
    >>> lab.measure(GradientPull(), model, data, tm.Square())["gradient_pull"].values  # the next step harms "b"
    array([ 2., -1.])

    With g_a the gradient of group a, p_a its share of the points and G = sum p_a g_a the gradient of all points:

    - `gradient_norm` is the length of g_a, `class_gradient_norm` that of a class;
    - `gradient_pull` is p_a g_a . G / G . G, the group's part of the common step. The parts add up to 1. If the part of
      a group is negative, a small step along -G increases its loss;
    - `gradient_cosine` of a pair is the cosine between their gradients, `class_gradient_cosine` that between a class
      and G.

    The null value is the same for points that are assigned to groups (or classes) of the same sizes at random: a small
    group has a long gradient because of noise alone. For `gradient_pull` it is the group's share.

    What it does not mean: the gradients are those of the held-out points, in the plain geometry of the parameters. They
    say what plain gradient descent would do next, not what Adam does or where training ends.

    Args:
        seed: Seed of the random groups of the null values.
    """

    seed: int = 0

    title: ClassVar[str] = "Lengths and angles of the gradients of groups and classes"
    takes: ClassVar[str] = "a loss of each point; any model with trainable parameters"
    exact: ClassVar[str] = "always, for the held-out points"
    absent: ClassVar[str] = "groups from one distribution: lengths, cosines and parts are those of random groups"

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
        """Forward and backward, for the groups and for random groups."""
        return 6.0


@dataclass(frozen=True, eq=False)
class _Gradients:
    """Gradients of all points, of each group (rows; NaN if it has no points) and of each class."""

    whole: np.ndarray
    group: np.ndarray
    kind: np.ndarray


def _gradients(snapshot: Snapshot, codes: np.ndarray, classes: np.ndarray | None) -> _Gradients:
    """Gradients of (group, class) cells, using every point once, then their weighted means."""
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
    """The class of each point as an index into the labels; None if there are no classes, or too many to be readable."""
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
