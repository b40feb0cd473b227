"""Solution: the theory of one table, solved; and that of an edited copy, which shares what stays the same."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tiltmeter.data.grouped import GroupedData
from tiltmeter.preview.curves import Course, course_of
from tiltmeter.preview.features import Features, columns, columns_and_units
from tiltmeter.preview.flow import flow, mean_loss
from tiltmeter.preview.inputs import Inputs, inputs_of
from tiltmeter.recipe.recipe import checked_recipe


@dataclass(frozen=True, eq=False)
class Asked:
    """What is asked of the theory besides the data; `frozen` is whether the points are outputs of frozen layers."""

    loss: Any = None
    weights: Mapping[Any, float] | None = None
    proportions: Mapping[Any, float] | None = None
    thresholds: Mapping[Hashable, float] | None = None
    stop: float = 1.0
    frozen: bool = False

    @classmethod
    def of(cls, recipe: Any, frozen: bool) -> Asked:
        """What a recipe asks; interventions are refused, because a preview does not know them."""
        if recipe is None:
            return cls(frozen=frozen)
        given = checked_recipe(recipe)
        if given.interventions:
            names = ", ".join(type(one).__name__ for one in given.interventions)
            raise ValueError(f"A preview knows weights and proportions, not {names}: use `forecast` or `train`.")
        proportions = given.proportions
        if proportions is None:
            proportions = getattr(given.sampling, "proportions", None)
        return cls(given.loss, given.weights, proportions, frozen=frozen)


class Seen(NamedTuple):
    """The features of the training and of the held-out rows."""

    train: np.ndarray
    held_out: np.ndarray


@dataclass(frozen=True, eq=False)
class Solution:
    """The theory of one table: its inputs and features, the course of held-out scores, and that of the columns alone.

    `whole` is the course up to its end, `course` the part of it that was asked for.
    """

    inputs: Inputs
    seen: Seen
    whole: Course
    course: Course
    by_columns: Course


def solution(train: GroupedData, held_out: GroupedData, asked: Asked, known: Solution | None = None) -> Solution:
    """Solve the theory; what `known` has solved for the same rows is taken over."""
    inputs = inputs_of(train, held_out, asked.loss, asked.weights, asked.proportions)
    if known is None or known.inputs.names != inputs.names or known.inputs.train.x.shape != inputs.train.x.shape:
        features = columns(inputs.train.x) if asked.frozen else columns_and_units(inputs.train.x)
        seen = seen_by(features, inputs)
        whole = course_in(inputs, seen)
        by_columns = whole if asked.frozen else solve(inputs, columns(inputs.train.x))
        return Solution(inputs, seen, whole, whole.until(asked.stop), by_columns)
    same = np.array_equal(known.inputs.train.mass, inputs.train.mass)
    whole = known.whole if same else course_in(inputs, known.seen)
    return Solution(inputs, known.seen, whole, whole.until(asked.stop), known.by_columns)


def seen_by(features: Features, inputs: Inputs) -> Seen:
    """Both parts of the data as these features see them."""
    return Seen(features.of(inputs.train.x), features.of(inputs.held_out.x))


def solve(inputs: Inputs, features: Features) -> Course:
    """The course of the held-out scores in the theory of these features."""
    return course_in(inputs, seen_by(features, inputs))


def course_in(inputs: Inputs, seen: Seen) -> Course:
    """The course of the held-out scores in the theory of these rows."""
    held = seen.held_out
    labels, mass = inputs.held_out.labels, inputs.held_out.mass

    def judged(weights: np.ndarray) -> float:
        return mean_loss(held @ weights, labels, mass, inputs.kind)

    path = flow(seen.train, inputs.train.labels, inputs.train.mass, inputs.kind, judge=judged)
    scores = np.stack([held @ weights for weights in path.weights])
    return course_of(scores, labels, mass, inputs.kind, path.times)


def end_rates(inputs: Inputs, scores: np.ndarray) -> dict[str, np.ndarray]:
    """Every group's rates by scores (points, outputs); none for numbers."""
    data, codes, count = inputs.held_out_data, inputs.held_out.codes, len(inputs.groups)
    mass = inputs.held_out.mass

    def share(holds: np.ndarray, where: np.ndarray | None = None) -> np.ndarray:
        counted = mass if where is None else mass * where
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(np.bincount(codes, counted * holds, count) / np.bincount(codes, counted, count))

    if inputs.kind == "classes":
        return {"error": share(scores.argmax(1) != data.y)}
    if len(inputs.classes) != 2:
        return {}
    cut = 0.0 if inputs.kind == "binary" else sum(inputs.classes) / 2
    decided, positive = scores[:, 0] > cut, data.y == inputs.classes[1]
    return {
        "positive_rate": share(decided),
        "tpr": share(decided, positive),
        "fpr": share(decided, ~positive),
        "error": share(decided != positive),
    }
