"""Setting: one problem, its training and its student as plain arrays in the span of all means and teachers."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import xarray as xr

from tiltmeter.interventions.group_intervention import GroupIntervention
from tiltmeter.schedules import value_at
from tiltmeter.theory.problem.applied_interventions import lowered
from tiltmeter.theory.problem.fixed import Fixed
from tiltmeter.theory.problem.geometry import factor, place
from tiltmeter.theory.problem.mixture import Mixture
from tiltmeter.theory.problem.optimisers import StudentOptimiser, plain_sgd
from tiltmeter.theory.problem.sgd import SGD
from tiltmeter.theory.problem.sgd_arrays import Parameters, parameters, shares_at
from tiltmeter.theory.problem.starts import Random
from tiltmeter.theory.problem.students import Network, Student
from tiltmeter.threads import check_fits


@dataclass(frozen=True)
class StepSettings:
    """Arrays with one entry per step if something changes, else with a single entry."""

    sgd: SGD
    groups: tuple[Hashable, ...]
    d: int

    def __post_init__(self) -> None:
        for key, value in (self.sgd.weights or {}).items():
            _places(key, self.groups)
            _single(value, f"weights[{key!r}]")
        _single(self.sgd.lr, "lr")

    def rates(self, first: int, stop: int) -> np.ndarray:
        """lr / d at the steps first..stop."""
        lr = self.sgd.lr
        if not callable(lr):
            return np.array([float(lr) / self.d])  # type: ignore[arg-type]
        return np.array([value_at(lr, step / self.d, "lr") for step in range(first, stop)]) / self.d

    def weights(self, first: int, stop: int) -> np.ndarray:
        """Weights of shape (steps or 1, G, 2): what multiplies the loss of a group and label (-1, +1)."""
        given = self.sgd.weights or {}
        changing = any(callable(value) for value in given.values())
        steps = range(first, stop) if changing else range(1)
        table = np.ones((len(steps), len(self.groups), 2))
        for key, value in given.items():
            group, labels = _places(key, self.groups)
            for row, step in enumerate(steps):
                t = step / self.d
                now = value_at(value, t, f"weights[{key!r}]") if callable(value) else float(value)  # type: ignore[arg-type]
                table[row, group, labels] *= now
        return table

    def pulls(self, shares: np.ndarray) -> np.ndarray:
        """Return the pull of every group at the start, if no weight depends on the label."""
        return np.asarray(shares * self.weights(0, 1)[0].mean(1))


def _places(key: Hashable, groups: tuple[Hashable, ...]) -> tuple[int, slice]:
    """Return the place in the table of the weight of a group, or of a (group, label) pair."""
    if key in groups:
        return groups.index(key), slice(None)
    if isinstance(key, tuple) and len(key) == 2 and key[0] in groups:
        if key[1] not in (-1, 1):
            raise KeyError(f"`weights` names the label {key[1]!r} of group {key[0]!r}. Labels are -1 and 1.")
        place = 0 if key[1] == -1 else 1
        return groups.index(key[0]), slice(place, place + 1)
    raise KeyError(f"`weights` names the unknown group {key!r}. There are: {', '.join(map(repr, groups))}.")


def _single(value: Any, name: str) -> None:
    if isinstance(value, xr.DataArray) and value.ndim:
        raise ValueError(f"`{name}` should be one number here, not a grid over {', '.join(map(str, value.dims))}.")


#: A step of one seed takes at least this many seconds; more than a year in all is refused.
STEP_SECONDS, YEAR = 1e-8, 3.15e7


def check_size(d: int, seeds: int, steps: np.ndarray, numbers: int, vectors: int) -> None:
    """Refuse a simulation that does not fit in memory, or that would take longer than a year.

    `numbers` is how many are kept per seed and evaluation; `vectors` is how many of length d are held per seed (chain:
    0)."""
    check_fits("seeds", seeds, 8.0 * numbers * len(steps), f"seeds of {len(steps):,} looks at {numbers} numbers")
    if vectors:
        check_fits("d", d, 8.0 * vectors * seeds, f"dimensions in {vectors} vectors of each of {seeds:,} seeds")
    seconds = float(steps[-1]) * seeds * STEP_SECONDS
    if seconds > YEAR:
        raise ValueError(
            f"A simulation should end within a year. Found {float(steps[-1]):.2g} steps of {seeds:,} seeds, which take "
            f"at least {seconds / YEAR:,.0f} years: look at earlier times, or lower d or seeds."
        )


@dataclass(frozen=True)
class Setting:
    """Everything that a run needs. Vectors are coordinates in an orthonormal basis of the span, over sqrt(d).

    `means` and `teachers` have shape (G, rank); `shares` say how often a group is drawn. `sgd` has no interventions: a
    constant intervention becomes its weights or proportions, any other group intervention is `law`. Learning rates and
    loss weights, which may change from step to step, are in `StepSettings`."""

    par: Parameters
    optimiser: StudentOptimiser
    sgd: SGD
    student: Student
    data: Fixed | None
    d: int
    means: np.ndarray
    teachers: np.ndarray
    label_bias: np.ndarray
    deviation: np.ndarray
    shares: np.ndarray
    law: GroupIntervention | None = None

    @property
    def rank(self) -> int:
        return int(self.means.shape[1])

    @property
    def units(self) -> int:
        return self.student.units if isinstance(self.student, Network) else 1

    @property
    def batch(self) -> int:
        return int(self.sgd.batch)  # type: ignore[arg-type]

    @property
    def second_layer(self) -> np.ndarray:
        return np.array(self.student.weights if isinstance(self.student, Network) else (1.0,))

    def cumulative(self, first: int, stop: int) -> np.ndarray:
        """Return the cumulative shares of the groups at the steps first..stop; one row if they do not change."""
        if not self.sgd.curriculum:
            return np.cumsum(self.shares)[None]
        times = (step / self.d for step in range(first, stop))
        return np.cumsum(
            [shares_at(self.sgd.proportions, self.par.groups, t) or () for t in times], axis=1, dtype=float
        )

    @property
    def vectors(self) -> int:
        """How many vectors move: the units' weights and, with momentum, their velocities."""
        return self.units * (2 if self.sgd.momentum > 0 else 1)


def setting(problem: Mixture, optimiser: StudentOptimiser, student: Student, data: Fixed | None, d: int) -> Setting:
    """Write a problem in coordinates; it must be a single one, not a grid."""
    sgd = lowered(problem, plain_sgd(optimiser))
    law = sgd.law
    for other in sgd.interventions:
        if other is not law:
            raise ValueError(
                f"`simulate` cannot apply {type(other).__name__}, which changes {other.changes}. "
                f"Use `{other.applied_by}`."
            )
    sgd = replace(sgd, interventions=())
    # Weights may depend on the label here; what is drawn or observed does not depend on them. The
    # start of a network is not that of a linear student either.
    par = parameters(problem, _without_weights(sgd, isinstance(student, Network)))
    if par.grid.sizes:
        raise ValueError(
            f"`simulate` is for one problem; this one has a grid over {', '.join(map(str, par.grid.sizes))}. "
            "Select one point."
        )
    number = len(par.groups)
    coordinates = factor(problem.gram.values)
    return Setting(
        par=par,
        optimiser=optimiser,
        sgd=sgd,
        student=student,
        data=data,
        d=d,
        means=np.ascontiguousarray(coordinates[:number]),
        teachers=np.ascontiguousarray(coordinates[number:]),
        label_bias=np.ascontiguousarray(problem.label_bias.values),
        deviation=np.sqrt(par.D[0]),
        shares=par.p[0],
        law=law,
    )


def start_coordinates(chosen: Setting) -> tuple[np.ndarray, np.ndarray, float]:
    """Return a start that is not random: its part in the span (K, rank), the factor of the rest, the bias."""
    visible, hidden, bias = place(chosen.sgd.start, chosen.par.groups, chosen.means, chosen.teachers, chosen.units)
    return np.ascontiguousarray(visible), np.ascontiguousarray(np.linalg.qr(hidden.T)[1].T), bias


def random_scale(chosen: Setting) -> float:
    """The standard deviation of random starting weights; 0 for a start that is not random."""
    start = chosen.sgd.start
    return float(start.scale) if isinstance(start, Random) else 0.0


def _without_weights(sgd: SGD, network: bool) -> SGD:
    return replace(sgd, weights=None, start=Random(0.0) if network else sgd.start)


def seed_grid(seeds: tuple[int, ...]) -> xr.Dataset:
    """The dimension `seed` as a grid, so that runs are labelled like any other grid."""
    return xr.Dataset(coords={"seed": np.asarray(seeds, dtype=np.int64)})
