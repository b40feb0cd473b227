"""Horizon tests: measure, on the network and its data, how far a forecast can be trusted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

from tiltmeter.forecast.horizon import UNTESTED, Horizon, kernel_until, linear_until, sample_until, spelled
from tiltmeter.forecast.kernel.displacement import pulled
from tiltmeter.forecast.kernel.group_losses import group_losses
from tiltmeter.forecast.kernel.question import Question
from tiltmeter.forecast.kernel.real_steps import turned
from tiltmeter.forecast.kernel.solvers.linearised_outputs import LinearisedOutputs
from tiltmeter.forecast.kernel.targets import targets
from tiltmeter.forecast.warn_caller import warn_caller
from tiltmeter.passes.deep_copy import deep_copy

if TYPE_CHECKING:
    from tiltmeter.forecast.kernel.tangent import Tangent

#: Warn if the horizon comes before the outputs have made this fraction of their forecast movement.
EARLY = 0.7


def horizon_of(
    tangent: Tangent,
    course: LinearisedOutputs,
    parts: Sequence[LinearisedOutputs],
    question: Question,
    real_steps: int,
) -> Horizon:
    """Return the horizon of these outputs; `parts` are the outputs for the halves of the sample, if any."""
    looks = course.looks
    linear = None if tangent.stored else linear_until(lambda row: departure(tangent, course, row), looks)
    goal = targets(tangent.look.y, tangent.columns, question.loss, tangent.positive)
    (whole, error), *others = (
        group_losses(tangent.by_point(one.outputs), goal, tangent.look, question.loss) for one in (course, *parts)
    )
    half = np.mean([losses for losses, _ in others], axis=0) if others else whole
    kernel = None
    if real_steps:
        angle = turned(tangent, question, real_steps)
        kernel = kernel_until(angle, real_steps, _lengths(tangent, course), looks)
    sample = sample_until(whole, half, error, looks)
    return Horizon(question.sgd.steps, linear, sample, kernel, linear_tested=not tangent.stored)


def warn_early(horizon: Horizon, course: LinearisedOutputs) -> None:
    """Warn that the network leaves its linearisation before most of the forecast has happened, or may do so."""
    if not horizon.linear_tested:
        warn_caller(f"{UNTESTED}.")
    if horizon.linear is None:
        return
    with np.errstate(over="ignore", invalid="ignore"):
        moved = np.sqrt(((course.outputs - course.outputs[0]) ** 2).mean((1, 2)))
        done = float(np.interp(horizon.linear, course.looks, moved)) / float(moved[-1])
    if not done >= EARLY:
        warn_caller(
            f"The linearisation of the network holds only up to step {spelled(horizon.linear)} of {horizon.steps}: "
            "beyond it the network learns features that this forecast leaves out. A wider network or larger initial "
            "weights would be easier to forecast."
        )


def departure(tangent: Tangent, course: LinearisedOutputs, row: int) -> float:
    """Return the relative change of the network's kernel at the weights that are forecast.

    The kernel decides how training continues. It is centred first: the part that moves all points alike, such as the
    bias of the last layer, never changes and would hide a change of the rest.
    """
    dual = course.dual[row].reshape(len(tangent.sample), -1)
    if not np.isfinite(dual).all():
        return np.inf
    step = pulled(tangent.model, tangent.points(), dual, tangent.read)
    moved = deep_copy(tangent.model)
    with torch.no_grad():
        for name, weight in moved.named_parameters():
            if name in step:
                weight.add_(step[name] + float(course.kept[row] - 1.0) * weight)
    x, before = tangent.watched
    try:
        after = centred(tangent.kernel_of(moved, x))
    except ValueError:  # the outputs are no longer finite, or all units are dead
        return np.inf
    size = float(np.linalg.norm(before))
    return float(np.linalg.norm(after - before)) / size if size > 0 else 0.0


def centred(kernel: np.ndarray) -> np.ndarray:
    """Return a kernel without the part that moves all points alike."""
    rows = kernel - kernel.mean(0)
    return np.asarray(rows - rows.mean(1, keepdims=True))


def _lengths(tangent: Tangent, course: LinearisedOutputs) -> np.ndarray:
    """The length of the weights' displacement at every look."""
    dual = course.dual.transpose(1, 0, 2)
    with np.errstate(over="ignore", invalid="ignore"):
        image = np.tensordot(tangent.kernel, dual, axes=1)
        return np.asarray(np.sqrt(np.maximum(0.0, (dual * image).sum((0, 2)))))
