"""ClassMixture: Gaussian groups whose inputs belong to one of several classes, each with its own teacher."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tiltmeter.record.labelled import JSON, label_from_json, label_to_json
from tiltmeter.theory.problem.geometry import factor

#: Rounding that shares, symmetry and a geometry are allowed.
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class ClassMixture:
    """Groups x = mean_g + sqrt(variance_g) z with class y = argmax_c (teacher_gc.x / sqrt(d) + label_bias_gc).

    >>> three = ClassMixture(weight={"a": 0.7, "b": 0.3}, variance={"a": 1.0, "b": 2.0},
    ...     means={"a": [0, 0, 0], "b": [0, 0, 0]},
    ...     teachers={g: {"cat": [1, 0, 0], "dog": [0, 1, 0], "cow": [0, 0, 1]} for g in "ab"})
    >>> three
    ClassMixture of 2 groups, a (weight 0.7, variance 1), b (weight 0.3, variance 2), and 3 classes: cat, dog, cow

    Means and teachers are vectors in any common space, scaled by 1 / sqrt(d) as in `Mixture`; teachers may have any
    length. All groups have the same classes, at least two.

    A value of its own beside `Mixture`: labels of several classes have no sign, no threshold and no positive rate, and
    everything that is about those refuses it by type. `predict`, `simulate`, `samples` and `class_crossings` take it.

    Args:
        weight: Share of each group.
        variance: Variance of the inputs of each group around its mean.
        means: Mean of the inputs of each group, a vector.
        teachers: For every group, the vector of each class.
        label_bias: Added to the score of each class, by group; None: nothing.
    """

    weight: Mapping[Hashable, float]
    variance: Mapping[Hashable, float]
    means: Mapping[Hashable, Any]
    teachers: Mapping[Hashable, Mapping[Hashable, Any]]
    label_bias: Mapping[Hashable, Mapping[Hashable, float]] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.weight, Mapping) or not self.weight:
            raise TypeError("`weight` should map every group to its share, as in {'+': 0.8, '-': 0.2}.")
        groups, put = tuple(self.weight), object.__setattr__
        for name in ("variance", "means", "teachers"):
            _same_keys(getattr(self, name), groups, name, "groups")
        classes = _classes(self.teachers, groups)
        offsets = self.label_bias or {group: dict.fromkeys(classes, 0.0) for group in groups}
        _same_keys(offsets, groups, "label_bias", "groups")
        for group in groups:
            _same_keys(offsets[group], classes, f"label_bias[{group!r}]", "classes")
        put(self, "weight", _numbers(self.weight, "weight"))
        put(self, "variance", _numbers(self.variance, "variance"))
        put(self, "label_bias", {g: _numbers(dict(offsets[g]), f"label_bias[{g!r}]", signed=True) for g in groups})
        total = sum(self.weight.values())
        if abs(total - 1.0) > ROUNDING:
            raise ValueError(f"The weights should sum to one. They sum to {total:g}, off by {total - 1.0:+.3g}.")
        means = {g: _vector(self.means[g], f"means[{g!r}]") for g in groups}
        teachers = {g: {c: _vector(self.teachers[g][c], f"teachers[{g!r}][{c!r}]") for c in classes} for g in groups}
        lengths = {len(v) for v in means.values()} | {len(v) for rows in teachers.values() for v in rows.values()}
        if len(lengths) != 1:
            raise ValueError(f"`means` and `teachers` should be vectors of one common length. Found {sorted(lengths)}.")
        put(self, "means", means)
        put(self, "teachers", teachers)
        _check_distinct(teachers)

    @classmethod
    def from_gram(
        cls,
        weight: Mapping[Hashable, float],
        variance: Mapping[Hashable, float],
        classes: Sequence[Hashable],
        gram: Any,
        label_bias: Mapping[Hashable, Mapping[Hashable, float]] | None = None,
    ) -> ClassMixture:
        """From overlaps: `gram` has a row for the mean of every group, then for every group its teachers by class.

        >>> ClassMixture.from_gram({"a": 1.0}, {"a": 1.0}, (0, 1), [[0, 0, 0], [0, 1, 2], [0, 2, 1]])
        Traceback (most recent call last):
        ...
        ValueError: Impossible geometry: no vectors have these overlaps together. The Gram matrix of means and teachers
        should be positive semi-definite; its smallest eigenvalue is -1.
        """
        matrix, size = np.asarray(gram, dtype=float), len(weight) * (1 + len(classes))
        if matrix.shape != (size, size):
            raise ValueError(
                f"`gram` should be {size} x {size} for {len(weight)} groups and {len(classes)} classes (means, then "
                f"teachers). Found shape {matrix.shape}."
            )
        if not np.isfinite(matrix).all() or np.abs(matrix - matrix.T).max() > ROUNDING:
            raise ValueError("`gram` should be finite and symmetric.")
        lowest = float(np.linalg.eigvalsh(matrix)[0])
        if lowest < -ROUNDING * max(1.0, float(np.abs(matrix).max())):
            raise ValueError(
                "Impossible geometry: no vectors have these overlaps together. The Gram matrix of means and teachers "
                f"should be positive semi-definite; its smallest eigenvalue is {lowest:.3g}."
            )
        rows, groups, count = factor(matrix), list(weight), len(classes)
        start = len(groups)
        teachers = {
            g: dict(zip(classes, rows[start + i * count : start + (i + 1) * count], strict=True))
            for i, g in enumerate(groups)
        }
        return cls(weight, variance, dict(zip(groups, rows[:start], strict=True)), teachers, label_bias)

    @property
    def groups(self) -> tuple[Hashable, ...]:
        return tuple(self.weight)

    @property
    def classes(self) -> tuple[Hashable, ...]:
        return tuple(next(iter(self.teachers.values())))

    def __eq__(self, other: object) -> bool:
        return self.to_json() == other.to_json() if isinstance(other, ClassMixture) else NotImplemented

    def __hash__(self) -> int:
        return hash(repr(self.to_json()))

    def __repr__(self) -> str:
        described = ", ".join(f"{g} (weight {self.weight[g]:g}, variance {self.variance[g]:g})" for g in self.groups)
        count = f"{len(self.groups)} group" + ("s" if len(self.groups) > 1 else "")
        names = ", ".join(map(str, self.classes))
        return f"ClassMixture of {count}, {described}, and {len(self.classes)} classes: {names}"

    def to_json(self) -> dict[str, JSON]:
        bias = self.label_bias or {}
        rows: list[JSON] = [
            {
                "group": label_to_json(g),
                "weight": self.weight[g],
                "variance": self.variance[g],
                "mean": self.means[g].tolist(),
                "teachers": [self.teachers[g][c].tolist() for c in self.classes],
                "label_bias": [bias[g][c] for c in self.classes],
            }
            for g in self.groups
        ]
        return {"class_mixture": 1, "classes": [label_to_json(c) for c in self.classes], "groups": rows}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> ClassMixture:
        """The mixture that `to_json` wrote."""
        if value.get("class_mixture") != 1:
            raise ValueError("This JSON does not describe a ClassMixture.")
        classes = [label_from_json(c) for c in value["classes"]]
        rows = {label_from_json(row["group"]): row for row in value["groups"]}
        return cls(
            {g: row["weight"] for g, row in rows.items()},
            {g: row["variance"] for g, row in rows.items()},
            {g: row["mean"] for g, row in rows.items()},
            {g: dict(zip(classes, row["teachers"], strict=True)) for g, row in rows.items()},
            {g: dict(zip(classes, row["label_bias"], strict=True)) for g, row in rows.items()},
        )


def _same_keys(values: Any, keys: tuple[Hashable, ...], name: str, what: str) -> None:
    if not isinstance(values, Mapping) or set(values) != set(keys):
        found = ", ".join(map(repr, values)) if isinstance(values, Mapping) else type(values).__name__
        raise KeyError(f"`{name}` should name the {what} {', '.join(map(repr, keys))}. Found {found}.")


def _classes(teachers: Mapping[Hashable, Any], groups: tuple[Hashable, ...]) -> tuple[Hashable, ...]:
    for group in groups:
        if not isinstance(teachers[group], Mapping):
            raise TypeError(f"`teachers[{group!r}]` should map every class to its vector.")
    classes = tuple(teachers[groups[0]])
    if len(classes) < 2:
        raise ValueError(f"A ClassMixture should have at least 2 classes. Found {len(classes)}.")
    for group in groups[1:]:
        missing = [c for c in classes if c not in teachers[group]]
        if missing or len(teachers[group]) != len(classes):
            extra = [c for c in teachers[group] if c not in classes]
            lacks = f"lacks the classes {', '.join(map(repr, missing))}" if missing else ""
            more = f"has the further classes {', '.join(map(repr, extra))}" if extra else ""
            raise KeyError(
                f"Every group should have the same classes. {group!r} {' and '.join(filter(None, (lacks, more)))}."
            )
    return classes


def _numbers(values: Mapping[Hashable, Any], name: str, signed: bool = False) -> dict[Hashable, float]:
    found = {key: float(value) for key, value in values.items()}
    for key, value in found.items():
        if not np.isfinite(value) or (not signed and value <= 0):
            kind = "finite" if signed else "positive and finite"
            raise ValueError(f"`{name}` should be {kind}. Found {name}[{key!r}] = {value:g}.")
    return found


def _vector(value: Any, name: str) -> np.ndarray:
    array = np.array(value, dtype=float)
    if array.ndim != 1 or not np.isfinite(array).all():
        raise ValueError(f"`{name}` should be a vector of finite numbers. Found shape {array.shape}.")
    array.flags.writeable = False
    return array


def _check_distinct(teachers: Mapping[Hashable, Mapping[Hashable, np.ndarray]]) -> None:
    for group, rows in teachers.items():
        names = list(rows)
        for i, one in enumerate(names):
            for two in names[:i]:
                if np.abs(rows[one] - rows[two]).max() <= ROUNDING:
                    raise ValueError(
                        f"Impossible geometry: classes {two!r} and {one!r} of group {group!r} have one teacher: one "
                        "of them never occurs. Drop it, or give them different teachers."
                    )


#: The overlaps of so many teachers still fit in memory, twice in each of two groups.
MOST = 1000


def class_mixture(
    classes: int = 3,
    rho: float = 0.5,
    variance: tuple[float, float] = (1.0, 1.0),
    overlap: float = 1.0,
    similarity: float = 0.0,
    swapped: bool = False,
    shift: float = 0.0,
    class_bias: Sequence[float] | None = None,
) -> ClassMixture:
    """Two groups whose classes have unit teachers that are unrelated, but for what these numbers say.

    >>> class_mixture(3, rho=0.8, variance=(0.5, 1.5), overlap=0.5)
    ClassMixture of 2 groups, + (weight 0.8, variance 0.5), - (weight 0.2, variance 1.5), and 3 classes: 0, 1, 2

    The direction of the shift is unrelated to all teachers.

    Args:
        classes: Number of classes.
        rho: Share of group "+".
        variance: Variances of "+" and "-".
        overlap: Overlap of the teachers of one class in the two groups.
        similarity: Overlap of the first two classes within each group.
        swapped: Whether the first two classes of "-" look like the second and the first of "+".
        shift: Squared distance of both means from the origin.
        class_bias: Makes classes more or less frequent, in both groups; None: nothing.
    """
    if isinstance(classes, bool) or not isinstance(classes, (int, np.integer)) or classes < 2:
        raise ValueError(f"`classes` should be an integer of at least 2. Found classes = {classes!r}.")
    if classes > MOST:
        raise ValueError(f"`classes` should be at most {MOST:,}. Found classes = {classes:,}.")
    if not 0.0 < rho < 1.0:
        raise ValueError(f"`rho` should lie strictly between 0 and 1. Found rho = {rho:g}.")
    if not -1.0 <= overlap <= 1.0:
        raise ValueError(f"`overlap` should lie between -1 and 1. Found overlap = {overlap:g}.")
    if not -1.0 < similarity < 1.0:
        raise ValueError(f"`similarity` should lie strictly between -1 and 1. Found similarity = {similarity:g}.")
    if not shift >= 0.0:
        raise ValueError(f"`shift` is a squared length and should not be negative. Found shift = {shift:g}.")
    if class_bias is not None and len(class_bias) != classes:
        raise ValueError(
            f"`class_bias` should have one number for each of the {classes} classes. Found {len(class_bias)}."
        )
    within = np.eye(classes)
    within[0, 1] = within[1, 0] = similarity
    order = [1, 0, *range(2, classes)] if swapped else list(range(classes))
    between = overlap * within[:, order]
    gram = np.zeros((2 + 2 * classes, 2 + 2 * classes))
    gram[:2, :2] = shift * np.array([[1.0, -1.0], [-1.0, 1.0]])
    gram[2:, 2:] = np.block([[within, between], [between.T, within]])
    bias: dict[Hashable, float] = dict(enumerate(class_bias or [0.0] * classes))
    return ClassMixture.from_gram(
        {"+": rho, "-": 1.0 - rho},
        {"+": variance[0], "-": variance[1]},
        tuple(range(classes)),
        gram,
        {"+": bias, "-": dict(bias)},
    )
