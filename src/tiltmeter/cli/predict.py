"""`tiltmeter predict`: exact curves from a problem."""

from __future__ import annotations

import sys
from pathlib import Path

from tiltmeter.cli.fixed_set import FixedOptions
from tiltmeter.cli.options import Problem, SGDOptions, TimeOptions, resolve
from tiltmeter.cli.show import Summary, save_pictures
from tiltmeter.cli.terminal import Curve, Json, Save, To
from tiltmeter.problem.class_mixture import ClassMixture
from tiltmeter.record import save as save_run
from tiltmeter.theory.predict import predict as predict_curves

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
    to: To = None,
    save: Save = (),
    json: Json = False,
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
    if to is not None:
        save_run(trajectory, to)
        print(f"Saved to {to}", file=sys.stderr)
    save_pictures(summary, save)
    summary.print(as_json=json)
