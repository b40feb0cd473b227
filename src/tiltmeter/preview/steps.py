"""Steps: a preview over the steps of a training, exact for a linear model, else from a few real steps of a copy."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
from torch import nn

from tiltmeter.data.grouped import GroupedData
from tiltmeter.modules.forward import bare
from tiltmeter.preview.curves import Course, run_of
from tiltmeter.preview.flow import descent, mean_loss
from tiltmeter.preview.inputs import Inputs
from tiltmeter.recipe.recipe import Recipe, checked_recipe
from tiltmeter.recipe.watch import Watch
from tiltmeter.record import Origin, Trajectory, log_spaced
from tiltmeter.training.loop import train as train_network
from tiltmeter.training.stability import only_layer

#: The part of the training whose steps are taken on a copy, and the fewest steps.
SHARE, FEWEST = 0.02, 20
#: Only evaluations at which the loss has fallen by this part say how fast the training is.
LEAST_PROGRESS, MOST_PROGRESS = 0.02, 0.95


def over_steps(
    run: Trajectory, course: Course, train: GroupedData, held_out: GroupedData, model: nn.Module, recipe: Recipe
) -> Trajectory:
    """The run with steps in the place of progress; its factor is measured on the first steps of a copy."""
    if not isinstance(model, nn.Module):
        raise TypeError(f"`model` should be a torch.nn.Module. Found {type(model).__name__}.")
    total = checked_recipe(recipe).total_steps(len(train))
    few = min(total, max(FEWEST, int(SHARE * total)))
    copied = deepcopy(model)
    short = replace(recipe, steps=few, epochs=None)
    began = train_network(copied, train, held_out, short, watch=Watch(when=log_spaced(12), points=False))
    factor = steps_per_time(began, course, held_out)
    steps = factor * course.times
    steps[0] = 0.0
    kept = steps <= total
    places = np.flatnonzero(kept)
    curves = {name: curve.isel(time=places).assign_coords(time=steps[places]) for name, curve in run.items()}
    calculation: Any = run.origin.settings["calculation"]
    settings = {
        **run.origin.settings,
        "steps": total,
        "calculation": {**calculation, "steps_per_time": factor, "trained_steps": few},
    }
    promise: Any = run.origin.settings.get("promise")
    whole = len(places) == len(steps) and isinstance(promise, dict)
    settings["promise"] = {**promise, "from": steps[-1], "reliable_until": steps[-1]} if whole else None
    return Trajectory(curves, "step", Origin(run.origin.source, run.origin.problem, settings))


def exact_over_steps(run: Trajectory, inputs: Inputs, layer: nn.Linear, recipe: Recipe) -> Trajectory:
    """The mean run of a linear model under plain SGD with the squared loss, in closed form: nothing is trained."""
    total = recipe.total_steps(inputs.sampled or len(inputs.train.x))
    steps = np.array(sorted({0, *log_spaced(20).steps(total), total}))
    rows, held = (np.c_[part.x, np.ones(len(part.x))] for part in (inputs.train, inputs.held_out))
    weights = layer.weight.detach().cpu().double().numpy().ravel()
    bias: Any = layer.bias  # torch says that it is always there
    biased = bias is not None
    start = np.append(weights, float(bias.detach()) if biased else 0.0)
    if not biased:
        rows[:, -1] = held[:, -1] = 0.0
    assert recipe.lr is not None
    path = descent(rows, inputs.train.labels, inputs.train.mass, recipe.lr, steps, recipe.weight_decay, start)
    scores = (path @ held.T)[:, :, None]
    part = inputs.held_out
    losses = np.array([mean_loss(one, part.labels, part.mass, inputs.kind) for one in scores])
    settings = {**run.origin.settings, "steps": total, "promise": None}
    found = run_of(inputs, Course(steps.astype(float), scores, losses, steps.astype(float)), settings)
    return Trajectory(dict(found), "step", found.origin, points=found.points)


def exact_layer(model: nn.Module, recipe: Recipe, inputs: Inputs) -> nn.Linear | None:
    """The layer of a linear model whose mean run is known exactly; None of any other training."""
    layer = only_layer(bare(model))
    plain = recipe.optimiser is None and recipe.lr is not None and not recipe.momentum
    steady = recipe.schedule is None and recipe.clip is None
    if layer is None or layer.out_features != 1 or not plain or not steady or inputs.kind != "numbers":
        return None
    return layer if layer.in_features == inputs.train.x.shape[1] else None


def steps_per_time(began: Trajectory, course: Course, held_out: GroupedData) -> float:
    """How many steps a unit of the theory's time takes, where both have lost the same part of the loss."""
    share = np.bincount(held_out.codes, held_out.weights, len(held_out.groups))
    order = [began["loss"].coords["group"].values.tolist().index(group) for group in held_out.groups]
    losses = began["loss"].values[:, order] @ (share / share.sum())
    steps = began["loss"].time.values.astype(float)
    fallen = (losses[0] - losses) / (course.loss[0] - course.loss[-1])
    said = (steps > 0) & (fallen > LEAST_PROGRESS) & (fallen < MOST_PROGRESS)
    if not said.any():
        raise ValueError(
            "In its first steps this network did not learn enough to tell its pace: use the preview over progress, or "
            "rehearse it with `tm.forecast`."
        )
    times = np.interp(fallen[said], course.progress, course.times)
    return float(np.median(steps[said] / np.maximum(times, 1e-9)))
