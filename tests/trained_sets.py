"""Trained sets: the finite-size experiment that the theory of `equilibrium` describes, its second route in the tests."""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from scipy.linalg import cho_factor, cho_solve

from tiltmeter.arguments import checked_seeds
from tiltmeter.losses import Hinge, Loss
from tiltmeter.record.labelled import Number
from tiltmeter.record.origin import Origin
from tiltmeter.theory.population.trained_students import (
    TrainedStudents,
    between_students,
    by_formula,
    labelled_observables,
)
from tiltmeter.theory.problem.geometry import factor
from tiltmeter.theory.problem.mixture import Mixture
from tiltmeter.theory.problem.objective import Flattened, Objective, ProblemArrays, flatten


@dataclass(frozen=True)
class TrainingSet:
    """n inputs x / sqrt(d) of shape (n, d), their labels -1/+1, groups (by number) and loss weights."""

    inputs: np.ndarray
    y: np.ndarray
    group: np.ndarray
    weight: np.ndarray


def draw(point: ProblemArrays, d: int, n: int, generator: np.random.Generator) -> TrainingSet:
    """Draw n examples; without loss of generality, means and teachers lie along the first axes."""
    place = factor(point.gram)
    rank = place.shape[1]
    group = generator.choice(point.groups, size=n, p=point.p / point.p.sum())
    x = generator.standard_normal((n, d)) * np.sqrt(point.D)[group, None]
    x[:, :rank] += place[group]
    field = (x[:, :rank] * place[point.groups + group]).sum(1) + point.offset[group]
    y = np.where(field > 0, 1.0, -1.0)
    weight = np.where(y > 0, point.s[group, 0], point.s[group, 1])
    return TrainingSet(x / np.sqrt(d), y, group, weight)


def minimise(loss: Loss, point: ProblemArrays, data: TrainingSet) -> tuple[np.ndarray, np.ndarray]:
    """Return weights W (K, d) and biases (K,) of the students of a problem."""
    if isinstance(loss, Hinge):
        return _hinge(point, data)
    if loss.kinks:
        raise ValueError(
            f"There is no finite-size solver for {type(loss).__name__}, whose slope or curvature jumps: "
            "only for smooth losses and Hinge()."
        )
    return _newton(loss, point, data)


def _newton(loss: Loss, point: ProblemArrays, data: TrainingSet) -> tuple[np.ndarray, np.ndarray]:
    """Take Newton steps on all students at once, halved until the objective falls."""
    count, width = point.students, data.inputs.shape[1] + 1
    design = np.column_stack([data.inputs, np.full(len(data.y), 1.0 if point.bias else 0.0)])
    own = point.student[data.group]
    parts = [np.flatnonzero(own == k) for k in range(count)]
    penalty = np.ones(width)
    penalty[-1] = 0.0 if point.bias else 1.0
    pull = point.precision.copy() if point.bias else point.precision + 0.0
    theta = np.zeros((count, width))

    def scores(at: np.ndarray) -> np.ndarray:
        return np.asarray((design * at[own]).sum(1)) if count > 1 else design @ at[0]

    def objective(at: np.ndarray, u: np.ndarray) -> float:
        return float(data.weight @ loss.value(u, data.y) + 0.5 * ((pull @ at) * at * penalty).sum())

    u = scores(theta)
    value = objective(theta, u)
    for _ in range(200):
        force = data.weight * loss.gradient(u, data.y)
        bend = data.weight * loss.curvature(u, data.y)
        gradient = (pull @ theta) * penalty
        hessian = np.zeros((count, width, count, width))
        diagonal = np.arange(width)
        for k, rows in enumerate(parts):
            block = design[rows]
            gradient[k] += block.T @ force[rows]
            hessian[k, :, k, :] = (block * bend[rows, None]).T @ block
            for other in range(count):
                hessian[k, diagonal, other, diagonal] += pull[k, other] * penalty
        size = float(np.abs(gradient).max())
        if size < 1e-10 * (1.0 + float(np.abs(data.weight).sum())):
            break
        flat = hessian.reshape(count * width, count * width)
        flat[np.diag_indices_from(flat)] += 1e-12
        step = cho_solve(cho_factor(flat), gradient.ravel()).reshape(count, width)
        scale = 1.0
        while scale > 1e-8:
            new = theta - scale * step
            moved = scores(new)
            lower = objective(new, moved)
            if lower <= value - 1e-4 * scale * float((gradient * step).sum()) or scale < 1e-7:
                break
            scale *= 0.5
        if abs(lower - value) <= 1e-14 * (1.0 + abs(value)):
            theta, u = new, moved
            break
        theta, u, value = new, moved, lower
    else:
        raise ValueError(f"Newton's method did not find the minimiser: the gradient is still {size:.2g}.")
    bias = theta[:, -1] if point.bias else np.zeros(count)
    return theta[:, :-1], bias


def _hinge(point: ProblemArrays, data: TrainingSet) -> tuple[np.ndarray, np.ndarray]:
    """scikit-learn's support vector machine with C = 1 / ridge; its bias is not penalised."""
    if point.students > 1:
        raise ValueError(
            "There is no finite-size solver for coupled students with Hinge(). Take Logistic() or Square()."
        )
    ridge = float(point.precision[0, 0])
    if ridge == 0:
        raise ValueError("The finite-size solver for Hinge() needs a positive ridge. Found ridge = 0.")
    kept = data.weight > 0
    inputs, y, weight = data.inputs[kept], data.y[kept], data.weight[kept]
    if point.bias:
        from sklearn.svm import SVC

        machine = SVC(C=1.0 / ridge, kernel="linear", tol=1e-7, cache_size=500)
    else:
        from sklearn.svm import LinearSVC

        machine = LinearSVC(
            C=1.0 / ridge, loss="hinge", fit_intercept=False, tol=1e-9, max_iter=1_000_000, random_state=0
        )
    machine.fit(inputs, y, sample_weight=weight)
    bias = machine.intercept_ if point.bias else np.zeros(1)
    return np.atleast_2d(machine.coef_), np.asarray(bias, dtype=float)


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

    Arguments and results are those of `equilibrium`, with a dimension `seed`. The rates are
    computed exactly from the measured overlaps, without test data.

    Args:
        problem: Groups with their shares, variances, means and labelling rules.
        loss: Loss to minimise, such as `tm.Logistic()`.
        samples: Training examples per dimension, n / d.
        ridge: Strength of the penalty ridge / 2 times the squared weights.
        d: Number of dimensions of an input.
        seeds: How many runs (seeds 0, 1, 2, ...), or which seeds.
        weights: Factor on the loss of each group, or of each (group, label); None: all 1.
        bias: Whether a bias is trained beside the weights.
        coupling: Elastic coupling of one student per group, see `equilibrium`; None: one student for all.
        test: Fresh examples per group on which rates are counted; 0: computed exactly instead.
    """
    objective = Objective(loss, samples, ridge, weights, bias, coupling)
    flat = flatten(problem, objective)
    chosen = checked_seeds(seeds)
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


def _check_size(flat: Flattened, d: int) -> None:
    if isinstance(d, bool) or not isinstance(d, (int, np.integer)):
        raise TypeError(f"`d` should be a whole number of dimensions. Found d = {d!r}.")
    least = max(factor(point.gram).shape[1] for point in flat.points) + 1
    if d < least:
        raise ValueError(f"`d` should be at least {least}, to hold all means and teachers. Found d = {d}.")
    fewest = min(point.samples for point in flat.points)
    if round(fewest * d) < 2:
        raise ValueError(f"`samples` * d should be at least 2 examples. Found samples = {fewest:g} with d = {d}.")


def counted_rates(
    loss: Loss, point: ProblemArrays, w: np.ndarray, offsets: np.ndarray, test: int, generator: np.random.Generator
) -> dict[str, np.ndarray]:
    """Count loss, error, positive rate, tpr, fpr and ppv per group; NaN for an empty denominator."""
    place = factor(point.gram)
    rank = place.shape[1]
    rows = []
    for g in range(point.groups):
        student = w[point.student[g]]
        x = place[g] + np.sqrt(point.D[g]) * generator.standard_normal((test, rank))
        # Outside the span of means and teachers only the length of the student matters.
        outside = np.sqrt(point.D[g]) * np.linalg.norm(student[rank:]) * generator.standard_normal(test)
        score = x @ student[:rank] + outside + offsets[point.student[g]]
        y = np.where(x @ place[point.groups + g] + point.offset[g] > 0, 1.0, -1.0)
        decided, positive = score > 0, y > 0
        rows.append(
            [
                loss.value(score, y).mean(),
                np.mean(decided != positive),
                np.mean(decided),
                _share(decided, positive),
                _share(decided, ~positive),
                _share(positive, decided),
            ]
        )
    return dict(zip(("loss", "error", "positive_rate", "tpr", "fpr", "ppv"), np.array(rows).T, strict=True))


def _share(what: np.ndarray, among: np.ndarray) -> float:
    return float(what[among].mean()) if among.any() else float("nan")
