"""equilibrium: the fully trained student, exactly, by the replica fixed point."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from functools import partial

import numpy as np
import xarray as xr
from scipy.special import ndtr

from tiltmeter.arguments import checked_flag
from tiltmeter.losses import Loss
from tiltmeter.record.labelled import Number
from tiltmeter.record.origin import Origin
from tiltmeter.shown_text import quoted
from tiltmeter.theory.dynamics.fixed_point import TOLERANCE, Solution, solve
from tiltmeter.theory.dynamics.separability import threshold
from tiltmeter.theory.population.trained_students import (
    TrainedStudents,
    between_students,
    by_formula,
    labelled_observables,
)
from tiltmeter.theory.problem.mixture import Mixture
from tiltmeter.theory.problem.objective import Flattened, Objective, ProblemArrays, flatten

#: A fixed point with a residual up to this counts as found: the error of every observable is below 1e-6.
ACCEPTED = 1e-8


def equilibrium(
    problem: Mixture,
    loss: Loss,
    samples: Number,
    ridge: Number,
    weights: Mapping[Hashable, Number] | None = None,
    bias: bool = True,
    coupling: Number | None = None,
) -> xr.Dataset:
    """Return the minimiser of loss plus ridge on n = samples * d examples of the mixture, for d -> infinity.

    >>> from tiltmeter import Logistic, teacher_mixture
    >>> problem = teacher_mixture(rho=0.8, variance=(0.5, 1.5), overlap=0.5)
    >>> equilibrium(problem, Logistic(), samples=2.0, ridge=0.3).error.values.round(4)
    array([0.235 , 0.3236])

    The student has scores W.x / sqrt(d) + bias and minimises the sum over examples of weight * loss, plus (ridge / 2)
    W.W: scikit-learn's C on the inputs x / sqrt(d) is 1 / ridge. Any number may be a labelled grid; the result then has
    its dimensions. The observables are those of `predict`, and `training_loss`, the mean loss of the training examples.

    The theory is that of Sarao Mannelli, Gerace, Rostamzadeh and Saglietti (2022), for any number of groups.

    With `coupling` every group has its own student, and each pair of students adds coupling / 2 times their squared
    distance: at 0 the groups are trained separately, at a strong coupling they share one W, with a bias per group.
    Every group is then measured with its own student, so Q and the bias have a dimension `group`; `student_overlap` is
    W_a.W_b / d.

    These are the values for d -> infinity; those of a training set at finite d scatter around them.

    Args:
        problem: Groups with their shares, variances, means and labelling rules.
        loss: Loss to minimise, such as `tm.Logistic()`.
        samples: Training examples per dimension, n / d.
        ridge: Strength of the penalty ridge / 2 times the squared weights.
        weights: Factor on the loss of each group, or of each (group, label); None: all 1.
        bias: Whether a bias is trained beside the weights.
        coupling: Strength of the elastic coupling of one student per group; None: one student for all groups.
    """
    checked_flag("bias", bias)
    return at_equilibrium(problem, Objective(loss, samples, ridge, weights, bias, coupling))


def at_equilibrium(problem: Mixture, objective: Objective) -> xr.Dataset:
    """Return the Dataset of any objective over its grid."""
    flat = flatten(problem, objective)
    try:
        solutions = walk(objective.loss, flat)
    except np.linalg.LinAlgError:
        raise ValueError(
            "The equations of the equilibrium are singular to the last digit. Found "
            f"coupling = {quoted(objective.coupling)}, ridge = {quoted(objective.ridge)}: choose more moderate ones."
        ) from None
    return labelled_solutions(problem, objective, flat, solutions)


def walk(loss: Loss, flat: Flattened) -> list[Solution]:
    """Solve every grid point, starting from an extrapolation of the solutions before it in its row."""
    found: list[Solution] = []
    for n, point in enumerate(flat.points):
        check_minimiser(loss, point, partial(flat.where, n))
        solution = solve(loss, point, _start(n, flat.shape, found))
        if not solution.residual < ACCEPTED:
            raise ValueError(
                f"The fixed point was not found{flat.where(n)}: the residual is {solution.residual:.2g} after "
                f"{solution.evaluations} evaluations, it should be below {TOLERANCE:g}. Try a larger ridge, or reach "
                "this point along a grid that starts where the problem is easier (more ridge, fewer samples)."
            )
        found.append(solution)
    return found


def check_minimiser(loss: Loss, point: ProblemArrays, where: Callable[[], str] = str) -> None:
    """Refuse problems without ridge that have no minimiser, or more than one."""
    interpolates = bool(loss.gradient(np.array(1e9), np.array(1.0)) > 0)  # scores beyond the label also have a loss
    if point.bias:
        for k in range(point.students):
            if not (point.s[point.student == k] > 0).any(0).all():
                raise ValueError(
                    f"`weights` leave a student examples of one label only{where()}, which its bias alone fits. "
                    "Give both labels a positive weight, or pass bias=False."
                )
    if point.precision[0, 0] > 0:
        return
    if interpolates:
        positive = np.stack([ndtr(point.a), ndtr(-point.a)], axis=1)
        counted = float((point.p[:, None] * positive * (point.s > 0)).sum()) * point.samples
        if counted <= 1.0:
            raise ValueError(
                f"With ridge = 0 and {counted:.4g} examples per dimension{where()} many students fit the data equally "
                "well. Give a small ridge, which selects the shortest, or more than one example per dimension."
            )
        return
    limit = threshold(point)
    if point.samples <= limit:
        upto = "at any number of samples" if np.isinf(limit) else f"up to samples = {limit:.4g}"
        raise ValueError(
            f"With ridge = 0 there is no single minimiser{where()}: the data are linearly separable {upto}, so "
            f"the student grows without bound. Found samples = {point.samples:g}. Give a positive ridge, or "
            "more samples."
        )


def labelled_solutions(problem: Mixture, objective: Objective, flat: Flattened, found: list[Solution]) -> xr.Dataset:
    """Return solutions over a grid as a Dataset of observables, with its Origin in the attributes."""

    def stack(parts: list[np.ndarray]) -> np.ndarray:
        return np.stack(parts)

    rest = TrainedStudents(
        p=stack([point.p for point in flat.points]),
        D=stack([point.D for point in flat.points]),
        a=stack([point.a for point in flat.points]),
        M=stack([one.M for one in found]),
        R=stack([one.R for one in found]),
        Q=stack([one.Q for one in found]),
        bias=stack([one.bias for one in found]),
    )
    shared = objective.coupling is None
    per_group = by_formula(rest, objective.loss)
    per_group["training_loss"] = stack([one.training_loss for one in found])
    curves = labelled_observables(rest, per_group, objective.loss, flat.label, shared, objective.bias)
    if not shared:
        curves["student_overlap"] = between_students(stack([one.students for one in found]), flat.groups, flat.label)
    origin = Origin("equilibrium", problem.to_json(), {"objective": objective.to_json()})
    return xr.Dataset(curves, attrs={"origin": origin.to_json()})


def _start(n: int, shape: tuple[int, ...], found: list[Solution]) -> np.ndarray | None:
    """Return the start of a search: extrapolated from the two points before in the row, or the nearest solved point."""
    stride = 1
    for size in reversed(shape):
        place = (n // stride) % size
        if place > 1:
            return np.asarray(2.0 * found[n - stride].state - found[n - 2 * stride].state)
        if place == 1:
            return found[n - stride].state
        stride *= size
    return None
