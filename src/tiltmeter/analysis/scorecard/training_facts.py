"""Training facts: the shares of groups in training and the cost in gradient evaluations, from a run's origin."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from tiltmeter.interventions.cost_of_laws import cost_of
from tiltmeter.interventions.stored import intervention_from_json
from tiltmeter.problem.mixture import Mixture
from tiltmeter.record.labelled import label_from_json
from tiltmeter.record.trajectory import Trajectory


def training_shares(
    trajectory: Trajectory, groups: Sequence[Hashable], given: Mapping[Any, float] | None = None
) -> tuple[np.ndarray, bool]:
    """The share of each group among the training points, and whether it is known; equal shares if it is not.

    >>> import tiltmeter as tm
    >>> run = tm.predict(tm.teacher_mixture(rho=0.75), tm.SGD(lr=0.2), [0.0, 1.0])
    >>> training_shares(run, ["+", "-"])
    (array([0.75, 0.25]), True)
    """
    known = dict(given) if given is not None else _recorded(trajectory)
    if known is None:
        return np.full(len(groups), 1.0 / len(groups)), False
    missing = [group for group in groups if group not in known]
    if missing:
        raise ValueError(f"`shares` should name every group. Missing: {', '.join(map(repr, missing))}.")
    values = np.array([float(known[group]) for group in groups])
    if not (np.isfinite(values).all() and (values >= 0).all() and values.sum() > 0):
        raise ValueError(f"`shares` should be non-negative numbers that do not all vanish. Found {known!r}.")
    return values / values.sum(), True


def _recorded(trajectory: Trajectory) -> dict[Any, float] | None:
    train = trajectory.origin.settings.get("train")
    if isinstance(train, dict) and "sizes" in train:
        sizes: Any = train["sizes"]
        return {label_from_json(label): float(size) for label, size in sizes}
    problem = trajectory.origin.problem
    if isinstance(problem, dict) and "mixture" in problem:
        weight = Mixture.from_json(problem).weight
        if weight.dims == ("group",):
            return dict(zip(weight.coords["group"].values.tolist(), weight.values.tolist(), strict=True))
    return None


def gradient_evaluations(trajectory: Trajectory, end: float, groups: int) -> float:
    """Gradients of single points that the run took up to a time, interventions included; NaN if it does not tell.

    Theory counts in units of the dimension, as its time does.
    """
    settings: Mapping[str, Any] = trajectory.origin.settings
    described: Any = trajectory.origin.recipe or settings.get("sgd")
    if not isinstance(described, dict) or not isinstance(described.get("batch"), int):
        return float("nan")
    try:
        laws = [intervention_from_json(law) for law in described.get("interventions") or ()]
    except ValueError:  # a law of one's own: its cost is not in the file
        return float("nan")
    return float(end * described["batch"] * cost_of(tuple(laws), groups, max(1, round(end))))
