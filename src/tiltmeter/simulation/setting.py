"""Setting: one problem, its training and its student as plain arrays in the span of all means and teachers."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import xarray as xr

from tiltmeter.interventions.group_law import GroupLaw
from tiltmeter.problem.geometry import factor, place
from tiltmeter.problem.laws import lowered
from tiltmeter.problem.mixture import Mixture
from tiltmeter.problem.optimisers import StudentOptimiser, plain_sgd
from tiltmeter.problem.sgd import SGD
from tiltmeter.problem.sgd_arrays import Parameters, parameters, shares_at
from tiltmeter.problem.start import Random
from tiltmeter.problem.student import Network, Student
from tiltmeter.simulation.data import Data


@dataclass(frozen=True)
class Setting:
    """Everything that a run needs. Vectors are coordinates in an orthonormal basis of the span, over sqrt(d).

    `means` and `teachers` have shape (G, rank); `shares` say how often a group is drawn. `sgd` has no interventions: a
    constant law becomes its weights or proportions, any other group law is `law`. Learning rates and loss weights,
    which may change from step to step, are in `StepSettings`.
    """

    par: Parameters
    optimiser: StudentOptimiser
    sgd: SGD
    student: Student
    data: Data
    d: int
    means: np.ndarray
    teachers: np.ndarray
    label_bias: np.ndarray
    deviation: np.ndarray
    shares: np.ndarray
    law: GroupLaw | None = None

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


def setting(problem: Mixture, optimiser: StudentOptimiser, student: Student, data: Data, d: int) -> Setting:
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
