"""`tiltmeter simulate`: simulate SGD at finite d, with the exact distribution of runs; or compare with the theory."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from cyclopts import Parameter

from tiltmeter.cli.show import Summary, draw
from tiltmeter.cli.terminal import Curve, Output, Switch, print_json
from tiltmeter.leaders.agreement import Agreement, agreement
from tiltmeter.over_seeds import over_seeds
from tiltmeter.record.trajectory import Trajectory
from tiltmeter.theory.cli.options import Problem, SGDOptions, TimeOptions, resolve
from tiltmeter.theory.dynamics.predict import predict
from tiltmeter.theory.problem.class_mixture import ClassMixture
from tiltmeter.theory.problem.fixed import Fixed
from tiltmeter.theory.problem.students import Activation, Erf, Identity, Network, ReLU, Student, Tanh
from tiltmeter.theory.simulation.chain import Chain
from tiltmeter.theory.simulation.direct_method import Direct
from tiltmeter.theory.simulation.run import Method
from tiltmeter.theory.simulation.simulate import simulate as simulate_runs

_METHODS: dict[str, Callable[[int | None], Method]] = {"chain": Chain, "direct": Direct}
_ACTIVATIONS: dict[str, Activation] = {"erf": Erf(), "relu": ReLU(), "tanh": Tanh(), "identity": Identity()}
#: Curves of several classes in every run; errors and accuracies are expensive and need --curve.
CLASS_CURVES = ("loss", "class_loss")


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class StudentOptions:
    """The model that is trained."""

    units: int | None = None
    "Train a network of this many units instead of a linear student."
    activation: Literal["erf", "relu", "tanh", "identity"] = "erf"
    "Activation of the units."
    train_second_layer: Switch = False
    "Also train the weights of the units in the score."

    def build(self, otherwise: Student) -> Student:
        """The network, or without --units the student of the other options."""
        if self.units is None:
            return otherwise
        return Network(self.units, _ACTIVATIONS[self.activation], self.train_second_layer)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """How many runs are simulated, and how."""

    d: int = 1000
    "Dimension of the inputs."
    seeds: int = 16
    "Number of runs."
    method: Literal["chain", "direct"] = "chain"
    """chain (exact in distribution: its curves have the same distribution as those of SGD in d dimensions, at a cost
    per step that does not depend on d) or direct (all coordinates)."""
    alpha: float | None = None
    "Repeat a finite data set of alpha d samples (needs --method direct)."
    threads: int | None = None
    "Number of threads (default: all cores); results do not depend on it."
    against: Literal["theory"] | None = None
    "Compare with the theory, and draw both."


def simulate(
    problem: Problem = None,
    sgd: SGDOptions | None = None,
    times: TimeOptions | None = None,
    student: StudentOptions | None = None,
    *,
    options: RunOptions = RunOptions(),
    config: Path | None = None,
    curve: Curve = "loss",
    output: Output = Output(),
) -> None:
    """Simulate SGD in d dimensions: who leads, when that changes, and optionally how far the runs are from the theory.

    Runs that are saved are written as they proceed: Ctrl-C keeps what is done.

    Parameters
    ----------
    config
        A TOML file with tables [problem], [sgd], [times]; options given here override it.
    """
    case = resolve(problem, sgd, times, config)
    who = (student or StudentOptions()).build(case.student)
    curves = tuple(dict.fromkeys((*CLASS_CURVES, curve))) if isinstance(case.problem, ClassMixture) else None
    # First, because it may raise an error before anything is simulated.
    data = None if options.alpha is None else Fixed(options.alpha)
    theory = None if options.against is None else predict(case.problem, case.sgd, case.times, curves, who, data=data)
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always", UserWarning)
        runs = simulate_runs(
            *(case.problem, case.sgd, case.times, options.d, options.seeds),
            student=who,
            method=_METHODS[options.method](options.threads),
            data=data,
            curves=curves,
            to=output.to,
        )
    for note in notes:
        print(f"Note: {note.message}", file=sys.stderr)
    output.say_saved()
    summary = Summary(runs, curve)
    distance = None if theory is None else agreement(theory, runs)
    _draw(runs, theory, curve, output.save)
    if output.json:
        found = summary.to_json()
        if distance is not None:
            found["agreement"] = [_finite(asdict(row)) for row in distance.rows]
        print_json(found)
        return
    _print(runs, summary, distance)


def _print(runs: Trajectory, summary: Summary, distance: Agreement | None) -> None:
    print(summary.sentence)
    values = runs[summary.curve].isel(time=-1)
    if "group" in values.dims and values.sizes["seed"] > 1:
        mean, error = over_seeds(values)
        parts = [f"{g} {float(mean.sel(group=g)):.4f} ± {float(error.sel(group=g)):.4f}" for g in mean.group.values]
        time, count = float(values.time), values.sizes["seed"]
        print(f"At t = {time:.4g}, mean {summary.curve} of {count} seeds: {', '.join(parts)}.")
    if distance is not None:
        print(f"Compared with theory: {str(distance)[0].lower()}{str(distance)[1:]}")


def _draw(runs: Trajectory, theory: Trajectory | None, curve: str, paths: tuple[Path, ...]) -> None:
    if not paths:
        return
    from tiltmeter import plot

    draw(plot.curves(*(trajectory for trajectory in (theory, runs) if trajectory is not None), curve=curve), paths)


def _finite(row: dict[str, object]) -> dict[str, object]:
    return {name: None if isinstance(value, float) and not np.isfinite(value) else value for name, value in row.items()}
