"""train_to_equilibrium: the finite-size experiment that the theory of `equilibrium` describes."""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import xarray as xr

from tiltmeter.losses import Loss
from tiltmeter.population.trained_students import TrainedStudents, between_students, by_formula, labelled_observables
from tiltmeter.problem.geometry import factor
from tiltmeter.problem.mixture import Mixture
from tiltmeter.problem.objective import Objective
from tiltmeter.problem.objective_arrays import Flattened, ProblemArrays, flatten
from tiltmeter.record.labelled import Number
from tiltmeter.record.origin import Origin
from tiltmeter.simulation.counted_rates import counted_rates
from tiltmeter.simulation.minimisers import minimise
from tiltmeter.simulation.training_set import TrainingSet, draw


def train_to_equilibrium(
    problem: Mixture,
    loss: Loss,
    samples: Number,
    ridge: Number,
    d: int,
    seeds: int | Sequence[int],
    weights: Mapping[Hashable, Number] | None = None,
    bias: bool = True,
    coupling: Number | None = None,
    test: int = 0,
) -> xr.Dataset:
    """Draw a training set of samples * d examples per seed, minimise loss plus ridge, and measure the student.

    >>> from tiltmeter import Square, teacher_mixture
    >>> problem = teacher_mixture(rho=0.8, variance=(0.5, 1.5), overlap=0.5)
    >>> run = train_to_equilibrium(problem, Square(), samples=2.0, ridge=0.3, d=50, seeds=4)
    >>> dict(run.error.sizes)
    {'group': 2, 'seed': 4}

    Arguments and results are those of `equilibrium` and `coupled_equilibrium`, with a dimension `seed`. The rates are
    computed exactly from the measured overlaps, without test data. With `test` > 0 they are counted on that many fresh
    examples per group instead.
    """
    objective = Objective(loss, samples, ridge, weights, bias, coupling)
    flat = flatten(problem, objective)
    chosen = _seeds(seeds)
    _check_size(flat, d)
    if isinstance(test, bool) or test != int(test) or test < 0:
        raise ValueError(f"`test` should be a number of examples, or 0 for none. Found test = {test}.")
    found = _all(flat, loss, d, chosen, int(test))

    def label(values: np.ndarray, *dims: str, **coords: Any) -> xr.DataArray:
        per_seed = values.reshape(len(flat.points), len(chosen), *values.shape[1:])
        return flat.label(np.moveaxis(per_seed, 1, -1), *dims, "seed", seed=np.array(chosen), **coords)

    def repeated(name: str) -> np.ndarray:
        return np.repeat([getattr(point, name) for point in flat.points], len(chosen), axis=0)

    def column(name: str) -> np.ndarray:
        return np.stack([one[name] for one in found])

    rest = TrainedStudents(
        repeated("p"), repeated("D"), repeated("a"), column("M"), column("R"), column("Q"), column("bias")
    )  # fmt: skip
    per_group = by_formula(rest, loss)
    if test:
        per_group.update({name: column(name) for name in per_group})
    per_group["training_loss"] = column("training_loss")
    shared = objective.coupling is None
    curves = labelled_observables(rest, per_group, loss, label, shared, bias)
    if not shared:
        curves["student_overlap"] = between_students(column("students"), flat.groups, label)
    settings: dict[str, Any] = {"objective": objective.to_json(), "d": int(d), "test": int(test)}
    origin = Origin("train_to_equilibrium", problem.to_json(), settings, chosen)
    return xr.Dataset(curves, attrs={"origin": origin.to_json()})


def _all(flat: Flattened, loss: Loss, d: int, seeds: tuple[int, ...], test: int) -> list[dict[str, np.ndarray]]:
    """Solve every grid point and seed, one per thread: small problems gain nothing from threads inside each."""
    from threadpoolctl import threadpool_limits

    work = [(n, point, seed) for n, point in enumerate(flat.points) for seed in seeds]
    with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(lambda one: _one(loss, one[1], d, one[2], one[0], test), work))


def _one(loss: Loss, point: ProblemArrays, d: int, seed: int, n: int, test: int) -> dict[str, np.ndarray]:
    """Draw one training set, minimise, and measure the result."""
    generator = np.random.default_rng((seed, n))
    data = draw(point, d, round(point.samples * d), generator)
    W, offsets = minimise(loss, point, data)
    w = W / np.sqrt(d)
    place = factor(point.gram)
    along = w[:, : place.shape[1]] @ place.T
    groups, own = np.arange(point.groups), point.student
    students = w @ w.T
    measured = {
        "M": along[own, groups],
        "R": along[own, point.groups + groups],
        "Q": np.diagonal(students)[own],
        "bias": offsets[own],
        "students": students,
        "training_loss": _training_loss(loss, point, data, W, offsets),
    }
    if test:
        measured.update(counted_rates(loss, point, w, offsets, test, generator))
    return measured


def _training_loss(
    loss: Loss, point: ProblemArrays, data: TrainingSet, W: np.ndarray, offsets: np.ndarray
) -> np.ndarray:
    own = point.student[data.group]
    scores = (data.inputs @ W.T)[np.arange(len(own)), own] + offsets[own]
    values = loss.value(scores, data.y)
    sizes = np.bincount(data.group, minlength=point.groups)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.bincount(data.group, values, minlength=point.groups) / np.where(sizes > 0, sizes, np.nan))


def _seeds(seeds: int | Sequence[int]) -> tuple[int, ...]:
    if isinstance(seeds, (int, np.integer)) and not isinstance(seeds, bool):
        if seeds < 1:
            raise ValueError(f"`seeds` should be positive. Found seeds = {seeds}.")
        return tuple(range(int(seeds)))
    if isinstance(seeds, (bool, float, str)) or len(seeds) == 0:
        raise TypeError(f"`seeds` should be a number of seeds or a list of them. Found seeds = {seeds!r}.")
    return tuple(int(seed) for seed in seeds)


def _check_size(flat: Flattened, d: int) -> None:
    if isinstance(d, bool) or not isinstance(d, (int, np.integer)):
        raise TypeError(f"`d` should be a whole number of dimensions. Found d = {d!r}.")
    least = max(factor(point.gram).shape[1] for point in flat.points) + 1
    if d < least:
        raise ValueError(f"`d` should be at least {least}, to hold all means and teachers. Found d = {d}.")
    fewest = min(point.samples for point in flat.points)
    if round(fewest * d) < 2:
        raise ValueError(f"`samples` * d should be at least 2 examples. Found samples = {fewest:g} with d = {d}.")
