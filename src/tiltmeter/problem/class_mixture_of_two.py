"""class_mixture: two groups "+" and "-" with several classes, from a few named numbers."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from tiltmeter.problem.class_mixture import ClassMixture

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

    `overlap` is that of the teachers of one class in the two groups, `similarity` that of the first two classes within
    each group. With `swapped` the first two classes of "-" look like the second and the first of "+": a conflict.
    `shift` is the squared distance of both means from the origin, in a direction unrelated to all teachers;
    `class_bias` makes classes more or less frequent, in both groups.
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
