"""Mixture: any number of Gaussian groups, each labelled by its own teacher."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from tiltmeter.record.labelled import (
    JSON,
    RESERVED,
    Number,
    aligned,
    array_from_json,
    array_to_json,
    label_from_json,
    label_to_json,
    labelled,
    labels_array,
)

#: Rounding error that is allowed before a geometry counts as impossible.
ROUNDING = 1e-9
#: Squares and cubes of larger numbers do not fit into a float.
LARGEST = 1e100


class Mixture:
    """Groups of inputs x = mean_g + sqrt(variance_g) z, labelled y = sign(teacher_g.x / sqrt(d) + label_bias_g).

    >>> two = Mixture(weight={"a": 0.7, "b": 0.3}, variance={"a": 1.0, "b": 2.0},
    ...               gram=[[0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 1, 0.5], [0, 0, 0.5, 1]])
    >>> two
    Mixture of 2 groups: a (weight 0.7, variance 1), b (weight 0.3, variance 2)

    Only the geometry matters, so means and teachers are given by their Gram matrix: all means, then all teachers, in
    the order of the groups. Teachers have unit length (teacher.teacher / d = 1) and means are scaled in the same way
    (the mean of the scores of a teacher is mean.teacher / sqrt(d)).

    Every number may be a labelled grid: an `xarray.DataArray`, or `("name", values)`. One call of `predict` then
    evaluates the whole grid, and its result has those dimensions.

    Args:
        weight: Share of each group.
        variance: Variance of the inputs of each group around its mean.
        gram: Inner products of all means, then all teachers, in the order of the groups.
        label_bias: Added to the score of the labelling rule of each group; None: nothing.
    """

    __slots__ = ("_grid", "gram", "groups", "label_bias", "variance", "weight")
    groups: tuple[Hashable, ...]
    weight: xr.DataArray
    variance: xr.DataArray
    gram: xr.DataArray
    label_bias: xr.DataArray
    _grid: xr.Dataset

    def __init__(
        self,
        weight: Mapping[Hashable, Number],
        variance: Mapping[Hashable, Number],
        gram: xr.DataArray | Sequence[Sequence[Number]] | np.ndarray,
        label_bias: Mapping[Hashable, Number] | None = None,
    ) -> None:
        if not isinstance(weight, Mapping) or not weight:
            raise TypeError("`weight` should map every group to its share, as in {'+': 0.8, '-': 0.2}.")
        groups = tuple(weight)
        put = object.__setattr__
        put(self, "groups", groups)
        put(self, "weight", _per_group(weight, "weight", groups))
        put(self, "variance", _per_group(variance, "variance", groups))
        put(self, "label_bias", _per_group(label_bias or dict.fromkeys(groups, 0.0), "label_bias", groups))
        put(self, "gram", _gram(gram, groups))
        _check_weights(self.weight)
        _check_sizes(variance=self.variance, gram=self.gram, label_bias=self.label_bias)
        _check_variances(self.variance)
        _check_geometry(self.gram, groups)
        put(self, "_grid", _common_grid(self.weight, self.variance, self.label_bias, self.gram))

    @classmethod
    def from_vectors(
        cls,
        weight: Mapping[Hashable, Number],
        variance: Mapping[Hashable, Number],
        means: Mapping[Hashable, Sequence[float]],
        teachers: Mapping[Hashable, Sequence[float]],
        label_bias: Mapping[Hashable, Number] | None = None,
    ) -> Mixture:
        """From vectors in any common space: teachers are scaled to unit length, means are used unchanged.

        >>> two = Mixture.from_vectors({"a": 0.5, "b": 0.5}, {"a": 1, "b": 1}, means={"a": [1, 0], "b": [-1, 0]},
        ...                            teachers={"a": [0, 3], "b": [1, 1]})
        >>> two.gram.sel(vector="teacher a", other="teacher b").item()
        0.7071067811865475
        """
        rows = []
        for kind, vectors in (("means", means), ("teachers", teachers)):
            for group in weight:
                if group not in vectors:
                    raise KeyError(f"`{kind}` has no vector for group {group!r}.")
                row = np.asarray(vectors[group], dtype=float)
                if kind == "teachers":
                    if not np.linalg.norm(row) > 0:
                        raise ValueError(f"The teacher of group {group!r} should not be zero.")
                    row = row / np.linalg.norm(row)
                rows.append(row)
        if len({row.shape for row in rows}) != 1 or rows[0].ndim != 1:
            raise ValueError("`means` and `teachers` should be vectors of one common length.")
        stacked = np.stack(rows)
        gram = stacked @ stacked.T
        np.fill_diagonal(gram[len(weight) :, len(weight) :], 1.0)
        return cls(weight, variance, gram, label_bias)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("A Mixture is immutable: build a new one, or use `replace`.")

    def __reduce__(self) -> tuple[Any, ...]:
        return (Mixture.from_json, (self.to_json(),))

    def replace(self, **changes: Any) -> Mixture:
        """The same mixture with some of weight, variance, gram, label_bias changed.

        >>> two = Mixture({"a": 0.5, "b": 0.5}, {"a": 1, "b": 2}, np.diag([0, 0, 1, 1]))
        >>> two.replace(weight={"a": 0.9, "b": 0.1}).weight.sel(group="a").item()
        0.9
        """
        unknown = set(changes) - {"weight", "variance", "gram", "label_bias"}
        if unknown:
            raise KeyError(f"A Mixture has no {', '.join(sorted(unknown))}. It has weight, variance, gram, label_bias.")
        given: dict[str, Any] = {
            name: {g: getattr(self, name).sel(group=g, drop=True) for g in self.groups}
            for name in ("weight", "variance", "label_bias")
        }
        return Mixture(**{**given, "gram": self.gram, **changes})

    def grid(self) -> xr.Dataset:
        """The grid over which the numbers vary, as a Dataset with only its coordinates; empty for a single problem."""
        return self._grid

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mixture):
            return NotImplemented
        return self.groups == other.groups and all(
            getattr(self, name).equals(getattr(other, name)) for name in ("weight", "variance", "gram", "label_bias")
        )

    def __hash__(self) -> int:
        if self.grid().sizes:
            raise TypeError("A Mixture over a grid of values is unhashable: it compares by value.")
        numbers = (getattr(self, n).values.tobytes() for n in ("weight", "variance", "gram", "label_bias"))
        return hash((self.groups, *numbers))

    def __repr__(self) -> str:
        sizes = self.grid().sizes
        over = f" over {', '.join(f'{name}: {size}' for name, size in sizes.items())}" if sizes else ""
        described = ", ".join(
            f"{group} (weight {_brief(self.weight, group)}, variance {_brief(self.variance, group)})"
            for group in self.groups
        )
        count = f"{len(self.groups)} group" + ("s" if len(self.groups) > 1 else "")
        return f"Mixture of {count}{over}: {described}"

    def to_json(self) -> dict[str, JSON]:
        arrays: dict[str, JSON] = {
            name: array_to_json(getattr(self, name).drop_vars(["group", "vector", "other"], errors="ignore"))
            for name in ("weight", "variance", "gram", "label_bias")
        }
        return {"mixture": 1, "groups": [label_to_json(group) for group in self.groups], **arrays}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Mixture:
        """The mixture written by `to_json`."""
        if value.get("mixture") != 1:
            raise ValueError("This JSON does not describe a Mixture.")
        groups = [label_from_json(group) for group in value["groups"]]
        arrays = {name: array_from_json(value[name]) for name in ("weight", "variance", "gram", "label_bias")}
        per_group = {
            name: {group: arrays[name].isel(group=i) for i, group in enumerate(groups)}
            for name in ("weight", "variance", "label_bias")
        }
        return cls(gram=arrays["gram"], **per_group)


def _common_grid(*parts: xr.DataArray) -> xr.Dataset:
    if not any(set(part.dims) - {"group", "vector", "other"} for part in parts):
        return xr.Dataset()
    bare = [part.isel({d: 0 for d in ("group", "vector", "other") if d in part.dims}, drop=True) for part in parts]
    whole = aligned(bare, "the numbers")[0]
    # Dimensions without labels get 0, 1, 2, ..., so that results can still be selected by label.
    return xr.Dataset(coords={d: whole.coords.get(d, np.arange(n)) for d, n in whole.sizes.items()})


def _per_group(values: Mapping[Hashable, Number], name: str, groups: tuple[Hashable, ...]) -> xr.DataArray:
    if not isinstance(values, Mapping) or set(values) != set(groups):
        found = ", ".join(map(repr, values)) if isinstance(values, Mapping) else type(values).__name__
        raise KeyError(f"`{name}` should name the groups {', '.join(map(repr, groups))}. Found {found}.")
    stacked, grid, coords = _stacked([labelled(values[group], f"{name}[{group!r}]") for group in groups])
    return xr.DataArray(stacked, dims=("group", *grid), coords={**coords, "group": labels_array(groups)})


def _gram(gram: Any, groups: tuple[Hashable, ...]) -> xr.DataArray:
    size = 2 * len(groups)
    names = [f"mean {group}" for group in groups] + [f"teacher {group}" for group in groups]
    if isinstance(gram, xr.DataArray):
        if "vector" not in gram.dims or "other" not in gram.dims:
            raise ValueError(f"`gram` should have dimensions `vector` and `other`. Found {gram.dims}.")
        grid = tuple(dim for dim in gram.dims if dim not in ("vector", "other"))
        array = gram.transpose("vector", "other", *grid)
        allowed = tuple(name for name in RESERVED if name not in ("vector", "other"))
        array = labelled(array, "gram", allowed).drop_vars(["vector", "other"], errors="ignore")
        values = array.values
        coords: dict[Hashable, xr.DataArray] = {dim: array.coords[dim] for dim in grid if dim in array.coords}
    else:
        rows = [list(row) for row in gram]
        if len(rows) != size or any(len(row) != size for row in rows):
            raise ValueError(
                f"`gram` should be {size} x {size} for {len(groups)} groups (means, then teachers). "
                f"Found {len(rows)} rows of lengths {sorted({len(row) for row in rows})}."
            )
        entries = [labelled(entry, f"gram[{i}][{j}]") for i, row in enumerate(rows) for j, entry in enumerate(row)]
        values, grid, coords = _stacked(entries)
        values = values.reshape(size, size, *values.shape[1:])
    if values.shape[:2] != (size, size):
        raise ValueError(f"`gram` should be {size} x {size} for {len(groups)} groups. Found {values.shape[:2]}.")
    return xr.DataArray(values, dims=("vector", "other", *grid), coords={"vector": names, "other": names, **coords})


def _stacked(arrays: list[xr.DataArray]) -> tuple[np.ndarray, tuple[Hashable, ...], dict[Hashable, xr.DataArray]]:
    """Labelled numbers along a new first axis, the dimensions of their common grid, and its coordinates."""
    if all(array.ndim == 0 for array in arrays):
        return np.array([array.values.item() for array in arrays]), (), {}
    whole = aligned(arrays, "the numbers")
    grid = whole[0].dims
    return np.stack([array.transpose(*grid).values for array in whole]), grid, dict(whole[0].coords)


def _check_weights(weight: xr.DataArray) -> None:
    if not (weight.values > 0).all():
        raise ValueError(f"`weight` should be positive for every group. Found {weight.values.min():g}.")
    excess = (weight.sum("group") - 1.0).values
    worst = excess.flat[np.abs(excess).argmax()]
    if abs(worst) > ROUNDING:
        raise ValueError(f"The weights should sum to one. They sum to {1.0 + worst:g}, off by {worst:+.3g}.")


def _check_variances(variance: xr.DataArray) -> None:
    if not (variance.values > 0).all():
        raise ValueError(f"`variance` should be positive for every group. Found {variance.values.min():g}.")


def _check_sizes(**parts: xr.DataArray) -> None:
    for name, part in parts.items():
        largest = np.abs(part.values).max(initial=0.0)
        if largest > LARGEST:
            raise ValueError(f"`{name}` should have numbers up to {LARGEST:g}, to be squared. Found {largest:g}.")


def _check_geometry(gram: xr.DataArray, groups: tuple[Hashable, ...]) -> None:
    names = [str(name) for name in gram.coords["vector"].values]
    matrices = np.moveaxis(gram.values, (0, 1), (-2, -1)).reshape(-1, len(names), len(names))
    skew = np.abs(matrices - matrices.swapaxes(1, 2))
    if skew.max() > ROUNDING:
        _, i, j = np.unravel_index(skew.argmax(), skew.shape)
        raise ValueError(
            f"`gram` should be symmetric. The overlaps of {names[i]} with {names[j]} and back "
            f"differ by {skew.max():.3g}."
        )
    lengths = np.diagonal(matrices, axis1=1, axis2=2)
    off = np.abs(lengths[:, len(groups) :] - 1.0)
    if off.max() > ROUNDING:
        k, i = np.unravel_index(off.argmax(), off.shape)
        found = lengths[k, len(groups) + i]
        raise ValueError(f"Teachers should have unit length. {names[len(groups) + i]} has squared length {found:g}.")
    if lengths.min() < -ROUNDING:
        k, i = np.unravel_index(lengths.argmin(), lengths.shape)
        raise ValueError(f"A squared length cannot be negative. {names[i]} has {lengths[k, i]:g}.")
    bound = np.sqrt(np.maximum(lengths[:, :, None] * lengths[:, None, :], 0.0))
    over = np.abs(matrices) - bound
    if over.max() > ROUNDING:
        k, i, j = np.unravel_index(over.argmax(), over.shape)
        raise ValueError(
            f"Impossible geometry: the overlap of {names[i]} and {names[j]} is {matrices[k, i, j]:g}, but their "
            f"lengths allow at most {bound[k, i, j]:g} (too large by {over.max():.3g})."
        )
    slack = ROUNDING * np.maximum(1.0, lengths.max())
    try:  # a Cholesky factor of the slackened matrix proves positivity several times faster than eigenvalues
        np.linalg.cholesky(matrices + 2.0 * slack * np.eye(len(names)))
    except np.linalg.LinAlgError:
        lowest = np.linalg.eigvalsh(matrices)[:, 0].min()
        raise ValueError(
            "Impossible geometry: no vectors have these overlaps together. The Gram matrix of means and teachers "
            f"should be positive semi-definite; its smallest eigenvalue is {lowest:.3g}."
        ) from None


def _brief(array: xr.DataArray, group: Hashable) -> str:
    values = array.values[list(array.coords["group"].values).index(group)]
    low, high = float(np.min(values)), float(np.max(values))
    return f"{low:g}" if low == high else f"{low:g} .. {high:g}"
