"""Trust: the tests behind a horizon, made on the network and the data themselves."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tiltmeter.forecast.course import Course
from tiltmeter.forecast.displacement import along, outputs_at, pulled, trained
from tiltmeter.forecast.group_losses import group_losses
from tiltmeter.forecast.horizon import Horizon, kernel_until, linear_until, sample_until
from tiltmeter.forecast.optimiser import Optimiser
from tiltmeter.forecast.real_steps import turned
from tiltmeter.forecast.sample import masses
from tiltmeter.forecast.targets import targets
from tiltmeter.losses import CrossEntropy, Loss

if TYPE_CHECKING:
    from tiltmeter.forecast.tangent import Tangent

#: Points at which the network is compared with its linearisation.
COMPARED = 500
#: A horizon within this part of the training is said aloud.
EARLY = 0.1


def horizon_of(
    tangent: Tangent,
    course: Course,
    optimiser: Optimiser,
    loss: Loss | CrossEntropy,
    weights: Mapping[Any, float] | None,
    proportions: Mapping[Any, float] | None,
    batch: int | None,
    real_steps: int,
) -> Horizon:
    """How far this course is to be trusted."""
    looks = course.looks
    linear = linear_until(lambda row: departure(tangent, course, row), looks)
    half = halved(tangent).course(optimiser, loss, looks, weights, proportions)
    goal = targets(tangent.look.y, tangent.columns, loss, tangent.positive)
    (whole, error), (other, _) = (
        group_losses(tangent.by_point(one.outputs), goal, tangent.look, loss) for one in (course, half)
    )
    kernel = None
    if real_steps:
        mass = masses(tangent.sample, tangent.stands_for, tangent.shares, weights, proportions)
        angle = turned(
            tangent.model,
            tangent.points(),
            tangent.sample.y,
            mass,
            loss,
            optimiser,
            min(batch or len(mass), len(mass)),
            real_steps,
            tangent.read,
            tangent.outputs,
            0,
        )
        kernel = kernel_until(angle, real_steps, _lengths(tangent, course), looks)
    return Horizon(optimiser.steps, linear, sample_until(whole, other, error, looks), kernel)


def warn_early(horizon: Horizon) -> None:
    """Say aloud that a forecast holds for a small part of the training only."""
    if horizon.linear is not None and horizon.linear < EARLY * horizon.steps:
        warnings.warn(
            f"The linearisation of the network holds up to step {horizon.linear:.3g} of {horizon.steps} only: it will "
            "learn features that this forecast does not know. A smaller learning rate or a wider network helps.",
            stacklevel=4,
        )


def departure(tangent: Tangent, course: Course, row: int) -> float:
    """How far the network, its weights moved as forecast, is from its linearisation there, over what that has moved."""
    dual = course.dual[row].reshape(len(tangent.sample), -1)
    if not np.isfinite(dual).all():
        return np.inf
    first = trained(tangent.model)
    step = pulled(tangent.model, tangent.points(), dual, tangent.read)
    step = {name: value + float(course.kept[row] - 1.0) * first[name] for name, value in step.items()}
    few = np.unique(np.linspace(0, len(tangent.look) - 1, COMPARED).astype(int))
    x = tangent.look.tensors()[0][few]
    before, slope = along(tangent.model, x, step, tangent.read)
    moved = {name: first[name] + value for name, value in step.items()}
    after = outputs_at(tangent.model, x, moved, tangent.read)
    with np.errstate(over="ignore", invalid="ignore"):
        off, size = (float(np.sqrt((part**2).mean())) for part in (after - before - slope, slope))
    if not (np.isfinite(off) and np.isfinite(size)):
        return np.inf
    return off / size if size > 0 else 0.0


def _lengths(tangent: Tangent, course: Course) -> np.ndarray:
    """The length of the weights' displacement at every look."""
    dual = course.dual.transpose(1, 0, 2)
    with np.errstate(over="ignore", invalid="ignore"):
        image = np.tensordot(tangent.kernel, dual, axes=1)
        return np.asarray(np.sqrt(np.maximum(0.0, (dual * image).sum((0, 2)))))


def halved(tangent: Tangent) -> Tangent:
    """The same with every second point of each group of the sample, by chance."""
    codes = tangent.sample.codes
    rng = np.random.default_rng(1)
    chosen = []
    for code in np.unique(codes):
        members = rng.permutation(np.flatnonzero(codes == code))
        chosen.append(members[: max(1, len(members) // 2)])
    places = np.sort(np.concatenate(chosen))
    count = tangent.columns if tangent.outputs == "full" else 1
    rows = (places[:, None] * count + np.arange(count)).ravel()
    # Halves of odd groups are a little short: every group keeps its share.
    whole = np.bincount(codes, tangent.stands_for) / tangent.stands_for.sum()
    stands_for = tangent.stands_for[places]
    part = np.bincount(codes[places], stands_for, len(whole)) / stands_for.sum()
    return replace(
        tangent,
        sample=tangent.sample.take(places),
        stands_for=stands_for * (whole / np.where(part > 0, part, 1.0))[codes[places]],
        kernel=tangent.kernel[np.ix_(rows, rows)],
        cross=tangent.cross[:, rows],
        start_sample=tangent.start_sample[places],
        _found={},
    )
