"""Drivers: which property of the data causes the bias, at each time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import xarray as xr

from tiltmeter.arguments import checked_kind
from tiltmeter.names import described
from tiltmeter.pairs import AskedPair, the_pair
from tiltmeter.record.labelled import JSON, label_to_json
from tiltmeter.record.origin import Origin
from tiltmeter.record.trajectory import Clock, Trajectory
from tiltmeter.theory.problem.applied_interventions import refuse_interventions
from tiltmeter.theory.problem.class_mixture import ClassMixture
from tiltmeter.theory.problem.fixed import Fixed
from tiltmeter.theory.problem.full_batch import Descent, Flow, Training
from tiltmeter.theory.problem.geometry import factor
from tiltmeter.theory.problem.mixture import Mixture
from tiltmeter.theory.problem.sgd import SGD

#: The asymmetries of the data that can be switched off.
DRIVERS = ("shift", "variance", "representation")
#: Shapley weight of a coalition of the other drivers, by its size.
_WEIGHT = {0: 1.0 / 3.0, 1: 1.0 / 6.0, 2: 1.0 / 3.0}


def drivers(
    problem: Mixture | ClassMixture,
    sgd: SGD | Flow | Descent,
    times: Any,
    pair: AskedPair | None = None,
    data: Fixed | None = None,
) -> Trajectory:
    """Split the loss gap of two groups into contributions of shift, variance and representation, and a rest.

    >>> from tiltmeter.theory import cases
    >>> problem, sgd, _ = cases.three_phases()
    >>> split = drivers(problem, sgd, [4.0])
    >>> {name: round(split[name].item(), 5) + 0.0 for name in split}
    {'loss_gap': 0.04234, 'shift': -0.02549, 'variance': 0.08355, 'representation': -0.01571, 'rest': 0.0}

    Each asymmetry of the data can be switched off: *shift* (no overlap of means and teachers, no label bias),
    *variance* (all groups get the mean variance), *representation* (all groups get the same share). The exact theory
    gives a gap for each of the eight subsets. The contributions are the Shapley values of these gaps. Together with
    `rest` (the gap with all three off, due to teachers, start or loss weights) they add up to `loss_gap` exactly.

    A `ClassMixture` has the same three: without shift its means overlap with no teacher, and no class is more frequent
    by its bias. A group intervention that changes during training is refused, because it reacts to the gap that would
    be split.

    A contribution says what removing this asymmetry would change on average, not that it alone causes the gap.

    Args:
        problem: Groups with their shares, variances, means and labelling rules.
        sgd: How the student is trained: learning rate, batch, start, weights.
        times: Times of the evaluations, in units of t = steps / d.
        pair: Two groups to compare; None: the only two there are.
        data: A fixed training set; None: every example is fresh.
    """
    from tiltmeter.theory.dynamics.predict import predict

    checked_kind("problem", problem, (Mixture, ClassMixture), "a problem, as of tm.teacher_mixture")
    refuse_interventions(sgd, "drivers")
    gaps: dict[tuple[bool, ...], xr.DataArray] = {}
    for on in product((False, True), repeat=len(DRIVERS)):
        switches = dict(zip(DRIVERS, on, strict=True))
        variant, training = switched(problem, sgd, **switches)
        try:
            loss = predict(variant, training, times, curves=("loss",), data=data)["loss"]
        except ValueError as error:
            if "stability limit" not in str(error) or all(on):
                raise
            off = " and ".join(name for name, is_on in switches.items() if not is_on)
            raise ValueError(f"The problem with {off} switched off has no value to compare with: {error}") from None
        a, b = the_pair(loss, pair)
        gaps[on] = loss.sel(group=a, drop=True) - loss.sel(group=b, drop=True)
    parts = {"loss_gap": gaps[(True,) * len(DRIVERS)]}
    for i, name in enumerate(DRIVERS):
        total = xr.zeros_like(parts["loss_gap"])
        for on in gaps:
            if not on[i]:
                joined = (*on[:i], True, *on[i + 1 :])
                total = total + _WEIGHT[sum(on)] * (gaps[joined] - gaps[on])
        parts[name] = total
    parts["rest"] = gaps[(False,) * len(DRIVERS)]

    def again(times: Any, curves: Iterable[str] | None = None) -> Trajectory:
        every = drivers(problem, sgd, times, pair, data)
        return every if curves is None else every.replace({name: every[name] for name in curves}, again)

    settings: dict[str, JSON] = {"sgd": sgd.to_json(), "pair": [label_to_json(group) for group in (a, b)]}
    if data is not None:
        settings["data"] = data.to_json()
    origin = Origin("drivers", problem.to_json(), settings)
    clock: Clock = "step" if isinstance(sgd, Descent) else "t"
    return Trajectory(
        {name: described(name, part) for name, part in parts.items()},
        clock,
        origin,
        evaluate=None if clock == "step" else again,
    )


def switched(
    problem: Mixture | ClassMixture, sgd: Training, *, shift: bool, variance: bool, representation: bool
) -> tuple[Mixture | ClassMixture, Training]:
    """The problem with some asymmetries switched off (False), and the SGD that draws from it."""
    if not representation and sgd.proportions is not None:
        sgd = replace(sgd, proportions=dict.fromkeys(problem.groups, 1.0 / len(problem.groups)))
    if isinstance(problem, ClassMixture):
        return _switched_classes(problem, shift, variance, representation), sgd
    changes: dict[str, Any] = {}
    groups = problem.groups
    if not shift:
        gram = problem.gram.copy(deep=True)
        number = len(groups)
        gram.values[:number, number:] = 0.0
        gram.values[number:, :number] = 0.0
        changes["gram"] = gram
        changes["label_bias"] = dict.fromkeys(groups, 0.0)
    if not variance:
        changes["variance"] = dict.fromkeys(groups, problem.variance.mean("group"))
    if not representation:
        changes["weight"] = dict.fromkeys(groups, 1.0 / len(groups))
    return problem.replace(**changes), sgd


def _switched_classes(problem: ClassMixture, shift: bool, variance: bool, representation: bool) -> ClassMixture:
    """Without shift the means keep their lengths and angles in directions of their own, and biases are zero."""
    groups, means, teachers, bias = problem.groups, problem.means, problem.teachers, problem.label_bias
    if not shift:
        rows = np.stack([means[g] for g in groups])
        own, none = factor(rows @ rows.T), np.zeros(rows.shape[1])
        means = {g: np.concatenate([none, own[i]]) for i, g in enumerate(groups)}
        pad = np.zeros(own.shape[1])
        teachers = {g: {c: np.concatenate([v, pad]) for c, v in teachers[g].items()} for g in groups}
        bias = None
    even = float(np.mean([problem.variance[g] for g in groups]))
    return ClassMixture(
        problem.weight if representation else dict.fromkeys(groups, 1.0 / len(groups)),
        problem.variance if variance else dict.fromkeys(groups, even),
        means,
        teachers,
        bias,
    )
