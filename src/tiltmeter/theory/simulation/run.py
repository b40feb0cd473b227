"""Run: the state of all seeds, which `simulate` advances from evaluation to evaluation, whatever the method."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, Protocol

import numpy as np

from tiltmeter.names import described
from tiltmeter.record.labelled import JSON
from tiltmeter.record.trajectory import LazyCurves
from tiltmeter.theory.population.labelled_curves import OverlapCurves, label_curves, losses
from tiltmeter.theory.population.network_curves import NetworkOverlaps, label_network_curves
from tiltmeter.theory.problem.fixed import Fixed
from tiltmeter.theory.problem.full_batch import Descent, Flow
from tiltmeter.theory.problem.optimisers import StudentOptimiser
from tiltmeter.theory.problem.sgd_arrays import Parameters
from tiltmeter.theory.problem.students import Network, Student
from tiltmeter.theory.simulation.setting import Setting, seed_grid


@dataclass(frozen=True)
class Observation:
    """Overlaps of S seeds, G groups and K units: M, R (S, G, K), Q (S, K, K), second layer (S, K), bias (S).

    `training_loss` and `training_error` (S, G) on a finite data set; None with fresh samples. `pull` (S, G) of every
    group under an intervention; None without one.
    """

    M: np.ndarray
    R: np.ndarray
    Q: np.ndarray
    second: np.ndarray
    bias: np.ndarray
    training_loss: np.ndarray | None = None
    training_error: np.ndarray | None = None
    pull: np.ndarray | None = None

    def with_pull(self, pull: np.ndarray) -> Observation:
        """The same evaluation, with the pulls of an intervention."""
        return replace(self, pull=pull.copy())

    def blanked(self, where: np.ndarray) -> Observation:
        """NaN for the seeds `where`: they have diverged."""
        if not where.any():
            return self
        parts = (getattr(self, field.name) for field in fields(self))
        return Observation(*(None if part is None else _blank(part, where) for part in parts))  # type: ignore[arg-type]


def _blank(values: np.ndarray, where: np.ndarray) -> np.ndarray:
    copy = values.copy()
    copy[where] = np.nan
    return copy


def stack_observations(evaluations: list[Observation]) -> Observation:
    """All evaluations with a time axis after the seeds: M (S, T, G, K) and so on."""

    def over(name: str) -> np.ndarray | None:
        parts = [getattr(evaluation, name) for evaluation in evaluations]
        return None if parts[0] is None else np.stack(parts, axis=1)

    return Observation(*(over(field.name) for field in fields(Observation)))  # type: ignore[arg-type]


#: A squared length Q beyond this is divergence; at the start it is of order one.
HUGE = 1e12


class Observed(Protocol):
    """What the seeds show at one time."""

    def blanked(self, where: np.ndarray) -> Any:
        """NaN for the seeds `where`: they have diverged."""


class Run(Protocol):
    """The state of all seeds, changed in place. `stopped` holds the step at which a seed diverged, else -1."""

    stopped: np.ndarray

    @property
    def cost(self) -> float:
        """About how many nanoseconds one step of one seed takes."""

    def advance(self, first: int, stop: int, rates: np.ndarray, weights: np.ndarray, threads: int | None) -> None:
        """Make the updates first..stop of every seed that has not diverged."""

    def evaluate(self) -> Observed:
        """What the seeds show now."""


class Method(Protocol):
    """How to simulate: Chain() or Direct(), on how many threads, and whether progress is shown on stderr."""

    @property
    def threads(self) -> int | None:
        """The number of threads; None: all cores."""

    @property
    def progress(self) -> bool:
        """Whether work of more than a few seconds shows its progress on stderr."""

    def begin(self, setting: Setting, seeds: tuple[int, ...]) -> Run:
        """Check that the method can treat the setting, and place all seeds at their start."""

    def to_json(self) -> dict[str, JSON]:
        """Return what is noted in the origin of a trajectory."""


def generators(seeds: tuple[int, ...], route: int) -> Sequence[np.random.Generator]:
    """Return one independent random generator per seed, so that seed 7 is always the same run.

    The seeds are those that `SeedSequence(0).spawn` gives. `route` makes the generators of different methods
    independent, so that their results can be compared as independent samples. The result is a numba list, for compiled
    loops.
    """
    from numba.typed import List

    streams = (np.random.SeedSequence(0, spawn_key=(seed, route)) for seed in seeds)
    found: Sequence[np.random.Generator] = List(np.random.Generator(np.random.PCG64(stream)) for stream in streams)
    return found


@dataclass(frozen=True)
class SimulationOptions:
    """What `simulate` is given beside the problem, the training and the times; data None: fresh examples."""

    student: Student
    method: Method
    data: Fixed | None
    d: int
    seeds: tuple[int, ...]
    curves: Iterable[str] | None

    def described(self, training: StudentOptimiser | Flow | Descent) -> dict[str, JSON]:
        """The settings of the Origin."""
        return {
            "sgd": training.to_json(),
            "student": self.student.to_json(),
            "d": self.d,
            "method": self.method.to_json(),
            "data": {"data": "fresh"} if self.data is None else self.data.to_json(),
        }


#: Curves that are measured, not computed from overlaps.
OBSERVED = ("training_loss", "training_error", "pull")


def curves_of(
    setting: Setting, seeds: tuple[int, ...], evaluation: Observation, times: np.ndarray, names: tuple[str, ...]
) -> LazyCurves:
    """Return the named curves of evaluations that have a time axis."""
    par = _for_each_seed(setting.par, seeds)
    exact = tuple(name for name in names if name not in OBSERVED)
    student = setting.student
    if isinstance(student, Network):
        overlaps = NetworkOverlaps(evaluation.M, evaluation.R, evaluation.Q, evaluation.second, evaluation.bias)
        curves = label_network_curves(par, overlaps, student.activation, times, exact)
    else:
        M, R, Q = (
            np.ascontiguousarray(x) for x in (evaluation.M[..., 0], evaluation.R[..., 0], evaluation.Q[..., 0, 0])
        )
        linear = OverlapCurves(M, R, Q, evaluation.bias, losses(par, M, R, Q, evaluation.bias))
        curves = label_curves(par, linear, times, exact)
    observed = {
        name: described(name, par.label(getattr(evaluation, name), "group", time=times))
        for name in OBSERVED
        if name in names and getattr(evaluation, name) is not None
    }
    return LazyCurves({name: observed.get(name, partial(curves.__getitem__, name)) for name in names})


def _for_each_seed(par: Parameters, seeds: tuple[int, ...]) -> Parameters:
    prior, D, a, m, g = (np.repeat(x, len(seeds), axis=0) for x in (par.prior, par.D, par.a, par.m, par.g))
    return replace(par, grid=seed_grid(seeds), prior=prior, D=D, a=a, m=m, g=g)
