"""From students of several classes to labelled curves: which curves exist, and what each is computed from."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property, partial
from typing import Any

import numpy as np
import xarray as xr

from tiltmeter.losses import CrossEntropy
from tiltmeter.names import described
from tiltmeter.record.labelled import labels_array
from tiltmeter.record.trajectory import LazyCurves
from tiltmeter.theory.population.classes.decisions import NODES, confusion
from tiltmeter.theory.population.classes.moments import ClassMoments, ClassStudents, square_class_losses, square_losses
from tiltmeter.theory.population.classes.softmax_nodes import SoftmaxNodes, softmax_losses
from tiltmeter.theory.population.fairness import gap
from tiltmeter.theory.population.quadrature import Sobol

LOSSES = ("loss", "class_loss", "risk", "loss_gap")
DECISIONS = ("error", "class_accuracy", "error_gap")
EVERY = (*LOSSES, *DECISIONS, "confusion", "M", "R", "Q")


def chosen_class_curves(curves: Iterable[str] | None, train_bias: bool) -> tuple[str, ...]:
    """The names asked for, checked; None means all."""
    every = (*EVERY, *(("student_bias",) if train_bias else ()))
    if curves is None:
        return every
    wanted = tuple(dict.fromkeys((curves,) if isinstance(curves, str) else curves))
    for name in wanted:
        if name not in every:
            raise KeyError(f"With several classes there is no curve {name!r}. There are: {', '.join(every)}.")
    return wanted


def class_curves(
    data: ClassMoments,
    students: ClassStudents,
    shape: dict[str, np.ndarray],
    names: tuple[str, ...],
    nodes: SoftmaxNodes | None = None,
    quadrature: Sobol = NODES,
) -> LazyCurves:
    """The named curves of n students that are laid out over `shape`, dimension -> coordinate, time among them.

    `nodes` are those of a softmax student, whose loss is cross-entropy; without them it is half the squared error.
    Nothing is computed before it is asked for.
    """
    arrays = _ClassArrays(data, students, nodes, quadrature, "confusion" in names)

    def labelled(name: str) -> xr.DataArray:
        if name.endswith("_gap"):
            return gap(labelled(name.removesuffix("_gap")))
        values, dims = arrays.find(name)
        return _layout(values, dims, shape, data)

    def make(name: str) -> xr.DataArray:
        curve = described(name, labelled(name))
        if nodes is not None and name in ("loss", "class_loss", "risk"):
            said = CrossEntropy.definition
            return curve.assign_attrs(long_name=said, definition=said)
        return curve

    return LazyCurves({name: partial(make, name) for name in names})


class _ClassArrays:
    """Values of every curve with their own dimensions; what several curves share is computed once."""

    def __init__(
        self, data: ClassMoments, students: ClassStudents, nodes: SoftmaxNodes | None, quadrature: Sobol, table: bool
    ) -> None:
        self._data, self._students, self._nodes, self._quadrature, self._wants_table = (
            data,
            students,
            nodes,
            quadrature,
            table,
        )

    @cached_property
    def _softmax(self) -> tuple[np.ndarray, np.ndarray]:
        assert self._nodes is not None
        return softmax_losses(self._data, self._students, self._nodes)

    @cached_property
    def _table(self) -> np.ndarray:
        return confusion(self._data, self._students, self._quadrature)

    @cached_property
    def _right(self) -> np.ndarray:
        """Share of every class decided right."""
        if self._wants_table:
            return np.asarray(np.einsum("ngcc->ngc", self._table))
        return confusion(self._data, self._students, self._quadrature, diagonal=True)

    def _loss(self) -> np.ndarray:
        return square_losses(self._data, self._students) if self._nodes is None else self._softmax[0]

    def find(self, name: str) -> tuple[np.ndarray, tuple[str, ...]]:
        """Values (n, ...) and the names of the dimensions after n."""
        data, students = self._data, self._students
        match name:
            case "loss":
                return self._loss(), ("group",)
            case "risk":
                return self._loss() @ data.p, ()
            case "class_loss":
                values = square_class_losses(data, students) if self._nodes is None else self._softmax[1]
                return values, ("group", "class")
            case "class_accuracy":
                return self._right, ("group", "class")
            case "confusion":
                return self._table, ("group", "class", "decision")
            case "error":
                right = np.einsum("ngc,gc->ng", np.nan_to_num(self._right), data.pi)
                unknown = ~np.isfinite(students.Q).all((1, 2))
                return np.where(unknown[:, None], np.nan, 1.0 - right), ("group",)
            case "M":
                return np.einsum("nor,gr->ngo", students.W, data.mu), ("group", "output")
            case "R":
                return np.einsum("nor,gcr->ngco", students.W, data.teachers), ("group", "class", "output")
            case "Q":
                return students.Q, ("output", "other_output")
        return students.bias, ("output",)


def _layout(
    values: np.ndarray, dims: tuple[str, ...], shape: dict[str, np.ndarray], data: ClassMoments
) -> xr.DataArray:
    """Time first, then the curve's own dimensions, then the others."""
    labels = {"group": labels_array(data.groups)}
    labels |= dict.fromkeys(("class", "decision", "output", "other_output"), labels_array(data.classes))
    whole = values.reshape(*(len(c) for c in shape.values()), *values.shape[1:])
    coords: dict[Any, Any] = {**shape, **{dim: labels[dim] for dim in dims}}
    array = xr.DataArray(whole, dims=(*shape, *dims), coords=coords)
    return array.transpose("time", *dims, ...)
