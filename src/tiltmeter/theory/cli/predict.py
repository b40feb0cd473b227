"""`tiltmeter predict`: exact curves from a problem, on fresh examples or a fixed training set."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from cyclopts import Parameter

from tiltmeter.cli.show import Summary, save_pictures
from tiltmeter.cli.terminal import Curve, Output, Switch
from tiltmeter.record import save as save_run
from tiltmeter.theory.cli.options import Chosen, Problem, SGDOptions, TimeOptions, resolve
from tiltmeter.theory.dynamics.predict import predict as predict_curves
from tiltmeter.theory.problem.class_mixture import ClassMixture
from tiltmeter.theory.problem.fixed import Fixed
from tiltmeter.theory.problem.full_batch import Descent, Flow
from tiltmeter.theory.problem.sgd import SGD

METHODS = ("flow", "descent", "sgd", "shuffle")


@Parameter(name="*", negative_iterable=())
@dataclass(frozen=True, kw_only=True)
class FixedOptions:
    """A fixed training set, and how it is used."""

    samples: float | None = None
    "Train on a fixed set of this many examples per dimension, with one of the methods below."
    flips: tuple[float, float] | None = None
    "Share of wrong labels of + and - in the training set."
    flow: Switch = False
    "Gradient flow (the limit of small steps); without --samples, on the whole population."
    descent: Switch = False
    "Full-batch gradient descent, with --momentum if given; times are steps."
    sgd: Switch = False
    "SGD whose batches are drawn with replacement."
    shuffle: Switch = False
    "SGD that shuffles the set in every epoch, as data loaders do."

    def build(self, case: Chosen) -> tuple[SGD | Flow | Descent, Any, Fixed | None]:
        """The training method, the times and the data, from these options and a case."""
        chosen = [name for name in METHODS if getattr(self, name)]
        flags = ", ".join(f"--{name}" for name in METHODS)
        if len(chosen) > 1:
            raise ValueError(f"Give one of {flags}. Found {' and '.join('--' + name for name in chosen)}.")
        if self.samples is None:
            if self.flips is not None:
                raise ValueError("--flips is about a fixed training set: give --samples, too.")
            if chosen and chosen != ["flow"]:
                raise ValueError(f"--{chosen[0]} is about a fixed training set: give --samples, too.")
            return (_flow(case.sgd) if chosen else case.sgd), case.times, None
        if not chosen:
            raise ValueError(f"With --samples, choose a training method: give one of {flags}.")
        flips = None
        if self.flips is not None:
            if len(case.problem.groups) != 2:
                raise ValueError("--flips is for two groups; this problem has more.")
            flips = dict(zip(case.problem.groups, self.flips, strict=True))
        data = Fixed(self.samples, flips, replace=chosen == ["sgd"])
        if chosen == ["flow"]:
            return _flow(case.sgd), case.times, data
        if chosen == ["descent"]:
            return _descent(case.sgd), np.unique(np.maximum(1.0, np.rint(case.times))), data
        return case.sgd, case.times, data


def _flow(sgd: SGD) -> Flow:
    _refuse(sgd, "--flow", "momentum", "batch", "clip", "nesterov")
    return Flow(**_shared(sgd))


def _descent(sgd: SGD) -> Descent:
    _refuse(sgd, "--descent", "batch", "clip", "nesterov")
    return Descent(**_shared(sgd), momentum=sgd.momentum)


def _refuse(sgd: SGD, flag: str, *names: str) -> None:
    plain = SGD(lr=1.0)
    for name in names:
        if getattr(sgd, name) != getattr(plain, name):
            raise ValueError(f"{flag} uses all examples at once and has no --{name}: drop one of them.")


def _shared(sgd: SGD) -> dict[str, Any]:
    return {n: getattr(sgd, n) for n in ("lr", "weight_decay", "weights", "proportions", "train_bias", "start")}


#: Curves of several classes that the command shows and keeps.
CLASS_CURVES = ("loss", "class_loss", "error", "class_accuracy")


def predict(
    problem: Problem = None,
    sgd: SGDOptions | None = None,
    times: TimeOptions | None = None,
    data: FixedOptions | None = None,
    *,
    config: Path | None = None,
    curve: Curve = "loss",
    output: Output = Output(),
) -> None:
    """Exact learning curves of every group: who leads, when that changes, and why.

    Parameters
    ----------
    config
        A TOML file with tables [problem], [sgd], [times]; options given here override it.
    """
    case = resolve(problem, sgd, times, config)
    training, evaluations, fixed = (data or FixedOptions()).build(case)
    curves = CLASS_CURVES if isinstance(case.problem, ClassMixture) else None
    trajectory = predict_curves(case.problem, training, evaluations, curves, case.student, data=fixed)
    summary = Summary(trajectory, curve)
    if output.to is not None:
        save_run(trajectory, output.to)
    output.say_saved()
    save_pictures(summary, output.save)
    summary.print(as_json=output.json)
