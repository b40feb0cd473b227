"""Replicas: several calculations of one forecast, joined into one Trajectory."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from torch import nn

from tiltmeter.data.grouped import GroupedData
from tiltmeter.forecast.choice import Choice
from tiltmeter.passes.description import describe
from tiltmeter.recipe.recipe import Recipe
from tiltmeter.recipe.watch import Watch
from tiltmeter.record import Origin, Trajectory


def averaged(found: Trajectory) -> Trajectory:
    """The mean over replicas, where they stand for one network among several."""
    if "seed" not in found["loss"].dims:
        return found
    curves = {name: curve.mean("seed", keep_attrs=True) for name, curve in found.items()}
    ended = None if found.diverged is None else found.diverged.min("seed")
    return Trajectory(curves, found.clock, found.origin, ended)


def noted(found: Trajectory, choice: Choice) -> Trajectory:
    """The same curves; the Origin says why this route was taken and what it was to cost."""
    settings: dict[str, Any] = {**found.origin.settings}
    settings["route"] = {**settings["route"], **choice.to_json()}
    origin = replace(found.origin, settings=settings)
    return Trajectory(dict(found), found.clock, origin, found.diverged, points=found.points)


def route_to_json(route: Any) -> dict[str, Any]:
    """A route by its name and fields."""
    return {"name": type(route).__name__, **asdict(route)}


def told_by_replicas(
    found: Trajectory,
    model: nn.Module,
    train: GroupedData,
    look: GroupedData,
    recipe: Recipe,
    watch: Watch,
    route: Any,
    account: dict[str, Any],
) -> Trajectory:
    """The curves as a forecast: where they come from is the user's network and data, not those of the replicas.

    Replicas (twins, orders, coordinates) are a dimension `seed`: questions average over it and take its scatter for the
    error, as of any runs.
    """
    settings = {
        "model": describe(model),
        "train": train.to_json(),
        "recipe": recipe.to_json(),
        "steps": recipe.total_steps(len(train)),
        "loss": found["loss"].attrs.get("definition"),
        "when": watch.when.to_json(),
        "route": route_to_json(route),
        "calculation": account,
        "replicas": int(found["loss"].sizes.get("seed", 1)),
    }
    origin = Origin("forecast", problem={"look": look.to_json()}, settings=settings, seeds=found.origin.seeds)
    return Trajectory(dict(found), found.clock, origin, found.diverged, points=found.points)
