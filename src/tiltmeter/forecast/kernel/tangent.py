"""Tangent: kernels and first outputs of an untrained network, from which any number of trainings is forecast."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import torch
import xarray as xr
from torch import nn

from tiltmeter.data.group_shares import share_of
from tiltmeter.data.grouped import GroupedData
from tiltmeter.forecast.coordinates.strata import Stratum
from tiltmeter.forecast.curves import curves, forecast_measures
from tiltmeter.forecast.inputs import (
    checked_real_steps,
    looks_of,
)
from tiltmeter.forecast.kernel.directions import learned_share
from tiltmeter.forecast.kernel.displacement import radial
from tiltmeter.forecast.kernel.horizon_tests import centred, horizon_of, warn_early
from tiltmeter.forecast.kernel.question import Question, question_of
from tiltmeter.forecast.kernel.sample import masses
from tiltmeter.forecast.kernel.sample_correction import corrected, half_samples, unseen
from tiltmeter.forecast.kernel.sampled_kernels import sampled_kernels
from tiltmeter.forecast.kernel.solvers.convex import convex_course
from tiltmeter.forecast.kernel.solvers.features import Features, features
from tiltmeter.forecast.kernel.solvers.linearised_outputs import LinearisedOutputs
from tiltmeter.forecast.kernel.solvers.square import square_course
from tiltmeter.forecast.kernel.stability import batch_limit, stability_limit, too_fast
from tiltmeter.forecast.kernel.steered import steered_course, with_pull
from tiltmeter.forecast.kernel.stored_network import StoredNetwork, without_network
from tiltmeter.forecast.kernel.targets import bend, slope, targets
from tiltmeter.forecast.kernel.why import Why, explain
from tiltmeter.interventions.data_law import DataLaw
from tiltmeter.losses import CrossEntropy, Loss, Square
from tiltmeter.measures.answers import Answers
from tiltmeter.measures.default_curves import DEFAULTS
from tiltmeter.measures.output_kind import say_probabilities
from tiltmeter.passes.forward import Read
from tiltmeter.passes.untouched import untouched
from tiltmeter.recipe.lowered import constant_pull, group_law, lowered_recipe
from tiltmeter.recipe.optimisers import check_alike, optimiser_to_json
from tiltmeter.recipe.order import GivenOrder
from tiltmeter.recipe.recipe import Recipe, checked_recipe
from tiltmeter.recipe.watch import Watch
from tiltmeter.record import Origin, Trajectory, When, log_spaced
from tiltmeter.tangent.kernel import planned_kernels
from tiltmeter.tangent.plan import Plan
from tiltmeter.tangent.spectrum import spectrum

Outputs = Literal["full", "trace"]

#: Held-out points whose kernel is compared before and after the forecast movement of the weights.
WATCHED = 100
#: Halves of a sample share its features while these lack no more than this part of the kernel.
LOST = 0.01
#: Up to this many groups times outputs, the features start from the first pull of every group separately.
APART = 40


@dataclass(frozen=True, eq=False, repr=False)
class Tangent:
    """The kernels of one untrained network on a sample of its training data and on held-out points; frozen.

    `kernel` is that of the sample, `cross` that of the held-out points against the sample. `start_sample` and
    `start_look` are the outputs before training, one row per point. With several outputs, `outputs` is "full" if the
    kernels hold all pairs of outputs (row = point * outputs + output), or "trace" if they hold the mean over outputs,
    as if all outputs learned separately and at the same rate. `stands_for` is the number of training points that a
    point of the sample represents, relative to the average. `sizes` counts every group's points in the training data.
    `plan` says how gradients of the network are multiplied; `weights` is the sample of weights if they are too large.
    """

    model: nn.Module
    sample: GroupedData
    look: GroupedData
    stands_for: np.ndarray
    sizes: np.ndarray
    kernel: np.ndarray
    cross: np.ndarray
    start_sample: np.ndarray
    start_look: np.ndarray
    outputs: Outputs
    positive: float
    read: Read | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    plan: Plan | None = None
    weights: tuple[Stratum, ...] | None = None
    _found: dict[Any, Features] = field(default_factory=dict)
    _part_of: tuple[Tangent, np.ndarray] | None = None

    @property
    def shares(self) -> np.ndarray:
        """The groups' shares of the training data."""
        return np.asarray(self.sizes / self.sizes.sum())

    @property
    def columns(self) -> int:
        """How many outputs the network has."""
        return int(self.start_look.shape[1])

    def forecast(
        self, recipe: Recipe, *, watch: Watch = Watch(), horizon: bool = True, real_steps: int = 0
    ) -> Trajectory:
        """Forecast the group curves for this recipe, as `tm.forecast` does; cheap, so that many can be compared.

        The curves are for all training data; if the sample is only a part of them, they are estimated from the sample
        and its halves. `horizon=False` skips the tests of how far to trust them. `real_steps` allows that many steps of
        SGD on a copy, for one more test.
        """
        question = self.question(recipe)
        looks = looks_of(watch, question.sgd.steps, self.read)
        checked_real_steps(real_steps, question.sgd.steps)
        if real_steps and self.stored:
            raise without_network("`real_steps`")
        if real_steps and question.law is not None:
            raise ValueError(f"`real_steps` are plain steps, without {type(question.law).__name__}. Use `train`.")
        measures = forecast_measures(watch)
        answers = self.answers(question.loss, watch.decide, len(measures) > len(DEFAULTS))
        course, *parts = (one.course(question, looks) for one in (self, *half_samples(self)))
        limits = self._limits(course, question)
        wild = too_fast(limits, question.sgd, question.batch)
        trust: dict[str, Any] = {}
        if horizon or real_steps:
            trusted = horizon_of(self, course, parts, question, real_steps)
            trust["horizon"] = trusted.to_json()
            if not wild:
                warn_early(trusted, course)
        settings = {
            **self.settings,
            "recipe": recipe.to_json(),
            "steps": question.sgd.steps,
            "loss": question.loss.definition,
            "when": watch.when.to_json(),
            "calculation": {"method": course.method, "error": course.error if np.isfinite(course.error) else None},
            "sharpest": course.sharpest,
            **limits,
            **trust,
        }
        origin = Origin("forecast", problem={"look": self.look_described}, settings=settings)
        told, *others = (
            curves(answers, measures, looks, self.by_point(one.outputs), origin) for one in (course, *parts)
        )
        pull = course.pull if question.law is not None else self._constant_pull(recipe)
        return with_pull(corrected(told, others, unseen(self)), pull, self.sample.group_labels)

    def question(self, recipe: Recipe) -> Question:
        """Return what the kernels need of the recipe, checked against this network and its data."""
        for law in checked_recipe(recipe).interventions:
            if isinstance(law, DataLaw):
                raise ValueError(
                    f"A Tangent has its data: {type(law).__name__} changes them. Use `forecast` or `train`."
                )
        if isinstance(recipe.order, GivenOrder):
            raise ValueError(
                "`order` says which points come, which kernels that were made before do not know: pass the recipe to "
                "`forecast`."
            )
        lowered = lowered_recipe(recipe, self.sample, self.shares)
        found = question_of(lowered, int(self.sizes.sum()), self.sample, self.columns)
        self._check_optimiser(recipe)
        return found

    def course(self, question: Question, looks: np.ndarray) -> LinearisedOutputs:
        """Return the forecast outputs at these steps."""
        loss, sgd = question.loss, question.sgd
        if question.law is not None:
            return steered_course(self, question, looks)
        share = self.shared(question)
        goal = targets(self.sample.y, self.columns, loss, self.positive)
        decay = self.radial() if sgd.weight_decay else None
        if isinstance(loss, Square):
            distance, start = self.flat(self.start_sample - goal), self.flat(self.start_look)
            return square_course(self.kernel, self.cross, distance, start, share, sgd, looks, decay)

        def pull(outputs: np.ndarray) -> np.ndarray:
            return self.flat(slope(loss, outputs.reshape(goal.shape), goal))

        first = self.flat(self.start_sample), self.flat(self.start_look)
        return convex_course(self.kernel, self.features(loss), pull, first, share, bend(loss), sgd, looks, decay)

    def features(self, loss: Loss | CrossEntropy) -> Features:
        """The kernels as a few hundred features, computed once for every loss; a half may have those of its sample."""
        if loss not in self._found and self._part_of is not None:
            whole, rows = self._part_of
            shared = whole.features(loss)
            if shared.missing <= LOST:
                self._found[loss] = shared.at(rows)
        if loss not in self._found:
            goal = targets(self.sample.y, self.columns, loss, self.positive)
            pull = slope(loss, self.start_sample, goal)
            count = len(self.sample.groups)
            alone = [self.sample.codes == code for code in range(count)]
            members = alone if count * self.columns <= APART else [np.full(len(pull), True)]
            apart = [self.flat(np.where(m[:, None], pull, 0.0)) for m in members]
            self._found[loss] = features(self.kernel, self.cross, np.concatenate(apart, axis=1))
        return self._found[loss]

    def learned_share(self, recipe: Recipe, *, when: When = log_spaced(20)) -> Trajectory:
        """Return the share of every group's task in directions learned by each step: curve `learned_share`."""
        question = self.question(recipe)
        if question.law is not None:
            name = type(question.law).__name__
            raise ValueError(f"`learned_share` and `why` are for constant weights, not {name}. Use `forecast`.")
        found = learned_share(self, question, looks_of(Watch(when=when), question.sgd.steps, None))
        origin = Origin("forecast", settings={**self.settings, "recipe": recipe.to_json()})
        return Trajectory({"learned_share": found}, "step", origin)

    def why(self, recipe: Recipe, *, step: int) -> Why:
        """What makes the groups' losses differ at this step, by what-if: shares, base rates, spread (see `Why`)."""
        return explain(self, replace(checked_recipe(recipe), steps=step, epochs=None), int(step))

    def spectrum(self, *, lr: float | None = None, modes: int | None = 50, centred: bool = True) -> xr.Dataset:
        """Return eigenvalues of the sample's kernel and every group's share along each, as `tangent.spectrum` does."""
        if self.outputs == "trace":
            raise ValueError('The spectrum needs all pairs of outputs: make the tangent with outputs="full".')
        goal = targets(self.sample.y, self.columns, Square(), self.positive)
        count = None if modes is None else min(modes, len(self.kernel))
        found = spectrum(
            self.kernel, goal, self.sample.codes, initial=self.start_sample, lr=lr, modes=count, centred=centred
        )
        names = self.sample.group_labels
        return found.assign_coords(group=names[found.coords["group"].values])

    @cached_property
    def watched(self) -> tuple[torch.Tensor, np.ndarray]:
        """A few of the held-out points, and their centred kernel before training.

        Fewer where every output of a point costs a pass back through a large network.
        """
        count = WATCHED if self.weights is None else max(16, WATCHED // self.columns)
        few = np.unique(np.linspace(0, len(self.look) - 1, count).astype(int))
        x = self.look.tensors()[0][few]
        return x, centred(self.kernel_of(self.model, x))

    def kernel_of(self, model: nn.Module, x: torch.Tensor) -> np.ndarray:
        """Return the kernel of these points in a copy of the network, by the plan made for the network."""
        if self.stored:
            raise without_network("A kernel of other weights")
        if self.weights is not None:
            return sampled_kernels(model, x, (), self.weights, self.outputs, self.read)[0]
        return planned_kernels(model, x, (), outputs=self.outputs, read=self.read, plan=self.plan)[0][0]

    def shared(self, question: Question) -> np.ndarray:
        """Return the weight of every row of the sample's kernel in the mean gradient."""
        mass = masses(self.sample, self.stands_for, self.shares, question.weights, question.proportions)
        return np.repeat(mass, self.columns if self.outputs == "full" else 1) / len(mass)

    def flat(self, values: np.ndarray) -> np.ndarray:
        """One row per point in the layout of the kernels."""
        return values.reshape(-1, 1) if self.outputs == "full" else values

    def by_point(self, values: np.ndarray) -> np.ndarray:
        """(steps, ...) in the layout of the kernels as (steps, points, outputs)."""
        return values.reshape(len(values), -1, self.columns)

    def points(self) -> torch.Tensor:
        """Return the inputs of the sample, in the number type of the model."""
        if self.stored:
            raise without_network("This")
        found: torch.Tensor = self.sample.tensors(number_type_of(self.model))[0]
        return found

    def _constant_pull(self, recipe: Recipe) -> np.ndarray | None:
        law = group_law(recipe)
        if law is None:
            return None
        shares = self.shares if recipe.drawn is None else share_of(self.sample, recipe.drawn)
        return constant_pull(law, self.sample, shares)

    def _limits(self, course: LinearisedOutputs, question: Question) -> dict[str, float | None]:
        """Return the learning rates up to which training is stable; batch noise diverges for the squared loss only."""
        mean, noise = stability_limit(course.sharpest, question.sgd), None
        if question.batch is not None and isinstance(question.loss, Square):
            each = self.shared(question) @ self.kernel.diagonal()
            trace = float(each) / (self.columns if self.outputs == "full" else 1)
            noise = batch_limit(course.sharpest, trace, question.batch, question.sgd)
        return {"stability_limit": mean, "batch_limit": noise}

    def _check_optimiser(self, recipe: Recipe) -> None:
        """Refuse an optimiser that treats weights differently; one of torch.optim by itself never does."""
        if recipe.optimiser is None:
            return
        if not self.stored:
            weights = list(self.model.parameters())
            check_alike(recipe.make_optimiser(weights), weights)
        elif "class" not in optimiser_to_json(recipe.optimiser):
            raise without_network("An optimiser that is not one of torch.optim")

    def answers(self, loss: Any, decide: Any = None, keep: bool = False) -> Answers:
        """Return what turns outputs of the held-out points into curves."""
        with untouched(self.model):
            found = Answers(self.model, self.look, loss, decide, self.read, 256, keep)
        if isinstance(self.model, StoredNetwork) and self.model.probabilities:
            say_probabilities(loss, found.loss.link, found.loss.definition)
        return found

    def radial(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the derivatives of the outputs of sample and held-out points when all weights are scaled."""
        if self._part_of is not None:
            whole, rows = self._part_of
            return whole.radial()[0][rows], whole.radial()[1]
        return self._radial

    @cached_property
    def _radial(self) -> tuple[np.ndarray, np.ndarray]:
        if isinstance(self.model, StoredNetwork):
            at_sample, at_look = self.model.radial
        else:
            at_sample, at_look = (radial(self.model, x, self.read) for x in (self.points(), self.look.tensors()[0]))
        return self.flat(at_sample), self.flat(at_look)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the Tangent as a new folder, without inputs and weights; `tm.load_tangent` reads it."""
        from tiltmeter.forecast.kernel.saved_tangent import save_tangent

        save_tangent(self, path)

    @property
    def stored(self) -> bool:
        """Whether it comes from a folder, without its network."""
        return isinstance(self.model, StoredNetwork)

    @property
    def network_name(self) -> str:
        """The class of the network."""
        return self.model.name if isinstance(self.model, StoredNetwork) else type(self.model).__name__

    @property
    def look_described(self) -> Any:
        """The account of the held-out points for an Origin."""
        return self.model.look if isinstance(self.model, StoredNetwork) else self.look.to_json()

    def __repr__(self) -> str:
        return (
            f"<Tangent of {self.network_name}, {len(self.sample)} points of the training data, "
            f"{len(self.look)} to look at, {self.columns} output{'s' if self.columns > 1 else ''} ({self.outputs})>"
        )


def number_type_of(model: nn.Module) -> torch.dtype | None:
    """Return the number type of the model."""
    return next((value.dtype for value in model.parameters() if value.is_floating_point()), None)
