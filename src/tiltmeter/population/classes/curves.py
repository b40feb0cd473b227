"""From students of several classes to labelled curves: which curves exist, and what each is computed from."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import xarray as xr

from tiltmeter.losses import CrossEntropy
from tiltmeter.names import described
from tiltmeter.population.classes.decisions import NODES, confusion
from tiltmeter.population.classes.moments import ClassMoments
from tiltmeter.population.classes.softmax_nodes import SoftmaxNodes, softmax_losses
from tiltmeter.population.classes.students import ClassStudents, square_class_losses, square_losses
from tiltmeter.population.fairness import gap
from tiltmeter.population.quadrature import Sobol
from tiltmeter.record.labelled import labels_array

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
) -> dict[str, xr.DataArray]:
    """The named curves of n students that are laid out over `shape`, dimension -> coordinate, time among them.

    `nodes` are those of a softmax student, whose loss is cross-entropy; without them it is half the squared error.
    """
    found: dict[str, tuple[np.ndarray, tuple[str, ...]]] = {}
    if set(LOSSES) & set(names):
        if nodes is None:
            found["loss"] = (square_losses(data, students), ("group",))
            if "class_loss" in names:
                found["class_loss"] = (square_class_losses(data, students), ("group", "class"))
        else:
            whole, parts = softmax_losses(data, students, nodes)
            found |= {"loss": (whole, ("group",)), "class_loss": (parts, ("group", "class"))}
    if "confusion" in names:
        table = confusion(data, students, quadrature)
        found["confusion"] = (table, ("group", "class", "decision"))
        found["class_accuracy"] = (np.einsum("ngcc->ngc", table), ("group", "class"))
    elif set(DECISIONS) & set(names):
        found["class_accuracy"] = (confusion(data, students, quadrature, diagonal=True), ("group", "class"))
    if "class_accuracy" in found:
        right = np.einsum("ngc,gc->ng", np.nan_to_num(found["class_accuracy"][0]), data.pi)
        unknown = ~np.isfinite(students.Q).all((1, 2))
        found["error"] = (np.where(unknown[:, None], np.nan, 1.0 - right), ("group",))
    found |= {
        "M": (np.einsum("nor,gr->ngo", students.W, data.mu), ("group", "output")),
        "R": (np.einsum("nor,gcr->ngco", students.W, data.teachers), ("group", "class", "output")),
        "Q": (students.Q, ("output", "other_output")),
        "student_bias": (students.bias, ("output",)),
    }

    def labelled(name: str) -> xr.DataArray:
        if name.endswith("_gap"):
            return gap(labelled(name.removesuffix("_gap")))
        if name == "risk":
            return _layout(found["loss"][0] @ data.p, (), shape, data)
        values, dims = found[name]
        return _layout(values, dims, shape, data)

    curves = {name: described(name, labelled(name)) for name in names}
    if nodes is not None:
        said = CrossEntropy.definition
        for name in ("loss", "class_loss", "risk"):
            if name in curves:
                curves[name] = curves[name].assign_attrs(long_name=said, definition=said)
    return curves


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
