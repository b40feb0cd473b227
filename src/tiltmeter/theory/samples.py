"""samples: points of a mixture in d dimensions, to train networks on the problems of the theory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tiltmeter.data.grouped import GroupedData
from tiltmeter.theory.population.classes.moments import coordinates
from tiltmeter.theory.problem.class_mixture import ClassMixture
from tiltmeter.theory.problem.geometry import factor
from tiltmeter.theory.problem.mixture import Mixture


def samples(
    problem: Mixture | ClassMixture,
    d: int,
    points: int,
    seed: int = 0,
    world: int = 0,
    proportions: Mapping[Any, float] | None = None,
    paired: bool = False,
) -> GroupedData:
    """Points of the mixture with labels -1 and +1; groups as frequent as in the mixture or in these `proportions`.

    >>> from tiltmeter import teacher_mixture
    >>> problem = teacher_mixture(rho=0.8, variance=(0.5, 1.5), overlap=0.5)
    >>> data = samples(problem, d=50, points=1000)
    >>> data.x.shape, data.sizes
    ((1000, 50), {'+': 800, '-': 200})

    Training and held-out data should have the same world and different seeds. A module w.x trained on them with
    `SGD(lr).to_torch(d)` is the student of `predict` and `simulate` in d dimensions, as long as no point is used twice.
    With `paired`, groups of equal size have the same noise z. This makes their *difference* more precise; the precision
    of each value is unchanged. A `ClassMixture` has labels 0, 1, 2, ... in the order of its classes.

    Args:
        problem: Mixture from which points are drawn.
        d: Number of dimensions.
        points: Number of points.
        seed: Seed of the points.
        world: Seed of the directions of means and labelling rules: the same for training and held-out points.
        proportions: Share of each group; None: as in the mixture.
        paired: Whether groups of equal size have the same noise, for a more precise difference.
    """
    means, teachers, offset = _vectors(problem)
    rank, groups = means.shape[1], problem.groups
    if isinstance(d, bool) or not isinstance(d, (int, np.integer)) or d < rank:
        raise ValueError(f"`d` should be an integer of at least {rank}, to hold means and teachers. Found d = {d!r}.")
    if isinstance(points, bool) or not isinstance(points, (int, np.integer)) or points < len(groups):
        raise ValueError(f"`points` should be an integer of at least one per group. Found points = {points!r}.")
    frame = np.linalg.qr(np.random.default_rng((world, 0)).normal(size=(d, rank)))[0]
    means, teachers = means @ frame.T, teachers @ frame.T
    sizes = _sizes(problem, int(points), proportions)
    if paired and len(set(sizes)) > 1:
        raise ValueError(f"`paired` needs groups of equal size. Found {', '.join(map(str, sizes))} points.")
    rng = np.random.default_rng((seed, 1))
    noise = rng.normal(size=(sizes[0], d)) if paired else None
    several = isinstance(problem, ClassMixture)
    x, y = np.empty((sum(sizes), d), dtype=np.float32), np.empty(sum(sizes), dtype=np.int64 if several else float)
    spread = np.sqrt(per_group(problem, "variance"))
    start = 0
    for g, size in enumerate(sizes):
        z = rng.normal(size=(size, d)) if noise is None else noise
        mine = means[g] + spread[g] * z
        x[start : start + size] = mine
        fields = mine @ teachers[g].T + offset[g]
        y[start : start + size] = fields.argmax(1) if several else np.where(fields[:, 0] > 0, 1.0, -1.0)
        start += size
    members = [group for group, size in zip(groups, sizes, strict=True) for _ in range(size)]
    return GroupedData(x, y, members, groups=groups)


def _vectors(problem: Mixture | ClassMixture) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Means (G, r), teachers (G, C, r) and offsets (G, C) in as few coordinates as possible; C is 1 for two labels."""
    if isinstance(problem, ClassMixture):
        return coordinates(problem)
    if problem.grid().sizes:
        raise ValueError(
            f"`samples` is for one problem. Found a grid over {', '.join(map(str, problem.grid().sizes))}."
        )
    means, teachers = np.split(factor(problem.gram.values), 2)
    return means, teachers[:, None, :], problem.label_bias.values[:, None]


def per_group(problem: Mixture | ClassMixture, name: str) -> np.ndarray:
    """Weights or variances in the order of the groups."""
    values: Any = getattr(problem, name)
    if isinstance(problem, Mixture):
        return np.asarray(values.values)
    return np.array([float(values[group]) for group in problem.groups])


def _sizes(problem: Mixture | ClassMixture, points: int, proportions: Mapping[Any, float] | None) -> list[int]:
    """Integer numbers of points per group, with the right sum."""
    shares = per_group(problem, "weight")
    if proportions is not None:
        for group in proportions:
            if group not in problem.groups:
                found = ", ".join(map(repr, problem.groups))
                raise KeyError(f"`proportions`: no group {group!r}. There are: {found}.")
        shares = np.asarray([float(proportions.get(group, 0.0)) for group in problem.groups])
        if not np.isfinite(shares).all() or (shares < 0).any() or shares.sum() <= 0:
            raise ValueError(
                f"`proportions` should be shares, not negative and not all zero. Found {dict(proportions)}."
            )
    edges = np.rint(points * np.cumsum(shares) / shares.sum()).astype(int)
    return [int(size) for size in np.diff(edges, prepend=0)]
