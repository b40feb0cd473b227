"""Tangent: kernels and first outputs of an untrained network, from which any number of trainings is forecast."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import torch
import xarray as xr
from torch import Tensor, nn
from torch.func import functional_call

from tiltmeter.data.group_shares import share_of
from tiltmeter.data.grouped import GroupedData
from tiltmeter.forecast.curves import curves, forecast_measures
from tiltmeter.forecast.inputs import evaluations_of
from tiltmeter.forecast.kernel.question import (
    Question,
    bend,
    question_of,
    slope,
    stability_limit,
    targets,
    too_fast,
)
from tiltmeter.forecast.kernel.sample_correction import corrected, half_samples, masses, unseen
from tiltmeter.forecast.kernel.saved_tangent import StoredNetwork, without_network
from tiltmeter.forecast.kernel.solvers.convex import Features, FeatureTraining, convex_course, features
from tiltmeter.forecast.kernel.solvers.square import LinearisedOutputs, responses, square_course
from tiltmeter.forecast.kernel.steered import steered_course, with_pull
from tiltmeter.forecast.kernel.why import Why, explain
from tiltmeter.interventions.kinds import DataIntervention
from tiltmeter.losses import CrossEntropy, Loss, Square
from tiltmeter.measures.answers import Answers
from tiltmeter.measures.default_curves import DEFAULTS
from tiltmeter.modules.forward import Read, flat_scores
from tiltmeter.modules.tangent.gradient import differentiable
from tiltmeter.modules.untouched import deep_copy, untouched
from tiltmeter.recipe.batch_limit import batch_limit_by_diagonal
from tiltmeter.recipe.lowered import constant_pull, group_intervention, lowered_recipe
from tiltmeter.recipe.optimisers import check_alike, optimiser_to_json
from tiltmeter.recipe.recipe import Recipe, checked_recipe
from tiltmeter.recipe.sampling import GivenOrder
from tiltmeter.recipe.watch import Watch
from tiltmeter.record import Origin, Trajectory, When, log_spaced
from tiltmeter.threads import one_thread


def learned_share(
    tangent: Tangent,
    question: Question,
    evaluations: np.ndarray,
) -> xr.DataArray:
    """Of every group's task, the first pull of the loss on its outputs, the share in directions learned by each step.

    For squares the task is labels minus first outputs; for the logistic loss, labels minus first probabilities. With
    u_i, c_i the eigenvectors and curvatures of the loss and r_g the task of group g, zero elsewhere, the sum over i of
    (u_i . r_g)^2 / (r_g . r_g) times what has been learned along u_i. It leaves out what one group learns from another,
    and what is learned of the sample but not of other points. Curvatures are exact for squares; for other losses they
    are those of outputs near zero, where training starts.
    """
    loss = question.loss
    features = tangent.features(loss)
    root = np.sqrt(tangent.shared(question))[:, None]
    left, sizes, _ = np.linalg.svd(root * features.sample, full_matrices=False)
    curvatures = bend(loss) * sizes**2
    answers, _ = responses(curvatures, question.sgd, evaluations)
    goal = targets(tangent.sample.y, tangent.columns, loss, tangent.positive)
    task = -root * tangent.flat(slope(loss, tangent.start_sample, goal))
    codes = np.repeat(tangent.sample.codes, len(root) // len(tangent.sample))
    found = np.full((len(evaluations), len(tangent.sample.groups)), np.nan)
    for code in np.unique(codes):
        own = np.where((codes == code)[:, None], task, 0.0)
        total = float((own**2).sum())
        if total > 0:
            part = ((left.T @ own) ** 2).sum(1) / total
            found[:, code] = -answers @ (curvatures * part)
    return xr.DataArray(
        found,
        dims=("time", "group"),
        coords={"time": evaluations, "group": tangent.sample.group_labels},
        attrs={"long_name": "share of the group's task in directions already learned", "better": "higher"},
    )


#: Points that go through the network together.
CHUNK = 512
#: The step of finite differences, relative to the weights.
SHORT = 1e-5

Weights = dict[str, Tensor]


def trained(model: nn.Module) -> Weights:
    """Return the trainable weights by name."""
    return {name: value.detach() for name, value in model.named_parameters() if value.requires_grad}


def radial(model: nn.Module, x: Tensor, read: Read | None) -> np.ndarray:
    """Return J w0, the derivative of every output when all weights are scaled: one row per point."""
    try:
        return _twice_backward(model, x, read)
    except RuntimeError:  # for instance, EmbeddingBag has no second derivative; NotImplementedError is a RuntimeError
        return _difference(model, x, read)


def _twice_backward(model: nn.Module, x: Tensor, read: Read | None) -> np.ndarray:
    """Return the derivative by two backward passes: the gradient of u . f along the weights is linear in u.

    torch.func.jvp gives the same, but its first call takes seconds to import modules.
    """
    found = []
    with untouched(model), differentiable():
        leaves = {name: value.clone().requires_grad_() for name, value in trained(model).items()}
        for part in _parts(x, leaves):
            outputs = flat_scores(functional_call(model, leaves, (part.clone(),)), len(part), read)
            u = torch.zeros_like(outputs, requires_grad=True)
            gradients = torch.autograd.grad(outputs, list(leaves.values()), u, create_graph=True, allow_unused=True)
            pairs = zip(gradients, leaves.values(), strict=True)
            total = sum(((g * w.detach()).sum() for g, w in pairs if g is not None), torch.zeros(()).to(u))
            found.append(torch.autograd.grad(total, u)[0])
    return _rows(found)


def _difference(model: nn.Module, x: Tensor, read: Read | None) -> np.ndarray:
    """Return central differences in double precision, accurate to 1e-9 of the outputs."""
    found = []
    own = deep_copy(model).double()
    with untouched(own):
        weights = trained(own)
        less, more = ({name: (1.0 + sign * SHORT) * value for name, value in weights.items()} for sign in (-1.0, 1.0))
        for part in _parts(x, weights):
            below, above = (
                flat_scores(functional_call(own, one, (part.clone(),)), len(part), read) for one in (less, more)
            )
            found.append((above - below) / (2.0 * SHORT))
    return _rows(found)


def _rows(found: list[Tensor]) -> np.ndarray:
    slopes = torch.cat(found).double().cpu().numpy()
    return np.asarray(slopes.reshape(len(slopes), -1))


def _parts(x: Tensor, weights: Weights) -> Iterator[Tensor]:
    like = next(iter(weights.values()))
    for start in range(0, len(x), CHUNK):
        part = x[start : start + CHUNK].to(like.device)
        yield part.to(like.dtype) if part.is_floating_point() else part


Outputs = Literal["full", "trace"]

#: Kernels of at most so many rows are small work.
SMALL_KERNEL = 1000
#: Halves of a sample share its features while these lack no more than this part of the kernel.
LOST = 0.01
#: Up to this many groups times outputs, the features start from the first pull of every group separately.
APART = 40


@dataclass(frozen=True, eq=False, repr=False)
class Tangent:
    """The kernels of one untrained network on a sample of its training data and on held-out points; frozen.

    `kernel` is that of the sample, `cross` that of the held-out points against the sample. `start_sample` and
    `start_held_out` are the outputs before training, one row per point. With several outputs, `outputs` is "full" if
    the kernels hold all pairs of outputs (row = point * outputs + output), or "trace" if they hold the mean over
    outputs, as if all outputs learned separately and at the same rate. `stands_for` is the number of training points
    that a point of the sample represents, relative to the average. `sizes` counts every group's points in the training
    data."""

    model: nn.Module
    sample: GroupedData
    held_out: GroupedData
    stands_for: np.ndarray
    sizes: np.ndarray
    kernel: np.ndarray
    cross: np.ndarray
    start_sample: np.ndarray
    start_held_out: np.ndarray
    outputs: Outputs
    positive: float
    read: Read | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    _found: dict[Any, Features] = field(default_factory=dict)
    _part_of: tuple[Tangent, np.ndarray] | None = None

    @property
    def shares(self) -> np.ndarray:
        """The groups' shares of the training data."""
        return np.asarray(self.sizes / self.sizes.sum())

    @property
    def columns(self) -> int:
        """How many outputs the network has."""
        return int(self.start_held_out.shape[1])

    def forecast(self, recipe: Recipe, *, watch: Watch = Watch()) -> Trajectory:
        """Forecast the group curves of the linearised network for this recipe; cheap, so that many can be compared.

        The curves are for all training data; if the sample is only a part of them, they are estimated from the sample
        and its halves. Nothing is promised: the network itself learns features, which its linearisation does not.
        """
        question = self.question(recipe)
        evaluations = evaluations_of(watch, question.sgd.steps, self.read)
        measures = forecast_measures(watch)
        answers = self.answers(question.loss, watch.decide, len(measures) > len(DEFAULTS))
        with one_thread(len(self.kernel) <= SMALL_KERNEL):
            course, *parts = (one.course(question, evaluations) for one in (self, *half_samples(self)))
        limits = self._limits(course, question)
        too_fast(limits, question.sgd, question.batch)
        settings = {
            **self.settings,
            "recipe": recipe.to_json(),
            "steps": question.sgd.steps,
            "loss": question.loss.definition,
            "when": watch.when.to_json(),
            "calculation": {"method": course.method, "error": course.error if np.isfinite(course.error) else None},
            "sharpest": course.sharpest,
            **limits,
        }
        origin = Origin("forecast", problem={"held_out": self.held_out_described}, settings=settings)
        told, *others = (
            curves(answers, measures, evaluations, self.by_point(one.outputs), origin) for one in (course, *parts)
        )
        pull = course.pull if question.law is not None else self._constant_pull(recipe)
        return with_pull(corrected(told, others, unseen(self)), pull, self.sample.group_labels)

    def question(self, recipe: Recipe) -> Question:
        """Return what the kernels need of the recipe, checked against this network and its data."""
        for law in checked_recipe(recipe).interventions:
            if isinstance(law, DataIntervention):
                raise ValueError(
                    f"A Tangent has its data: {type(law).__name__} changes them. Use `forecast` or `train`."
                )
        if isinstance(recipe.order, GivenOrder):
            raise ValueError(
                "`order` says which points come. Kernels follow the mean over all orders: Rehearsal takes it."
            )
        lowered = lowered_recipe(recipe, self.sample, self.shares)
        found = question_of(lowered, int(self.sizes.sum()), self.sample, self.columns)
        self._check_optimiser(recipe)
        return found

    def course(self, question: Question, evaluations: np.ndarray) -> LinearisedOutputs:
        """Return the forecast outputs at these steps."""
        loss, sgd = question.loss, question.sgd
        share = self.shared(question)
        goal = targets(self.sample.y, self.columns, loss, self.positive)
        decay = self.radial() if sgd.weight_decay else None
        if question.law is None and isinstance(loss, Square):
            distance, start = self.flat(self.start_sample - goal), self.flat(self.start_held_out)
            return square_course(self.kernel, self.cross, distance, start, share, sgd, evaluations, decay)
        first = self.flat(self.start_sample), self.flat(self.start_held_out)
        training = FeatureTraining(self.kernel, self.features(loss), first, share, sgd, evaluations, decay)
        if question.law is not None:
            return steered_course(self, question, training)

        def pull(outputs: np.ndarray) -> np.ndarray:
            return self.flat(slope(loss, outputs.reshape(goal.shape), goal))

        return convex_course(training, pull, bend(loss))

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
        found = learned_share(self, question, evaluations_of(Watch(when=when), question.sgd.steps, None))
        origin = Origin("forecast", settings={**self.settings, "recipe": recipe.to_json()})
        return Trajectory({"learned_share": found}, "step", origin)

    def why(self, recipe: Recipe, *, step: int) -> Why:
        """What makes the groups' losses differ at this step, by what-if: shares, base rates, spread (see `Why`)."""
        return explain(self, replace(checked_recipe(recipe), steps=step, epochs=None), int(step))

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
        law = group_intervention(recipe)
        if law is None:
            return None
        shares = self.shares if recipe.drawn is None else share_of(self.sample, recipe.drawn)
        return constant_pull(law, self.sample, shares)

    def _limits(self, course: LinearisedOutputs, question: Question) -> dict[str, float | None]:
        """Return the learning rates up to which training is stable; batch noise diverges for the squared loss only."""
        mean, noise = stability_limit(course.sharpest, question.sgd), None
        if question.batch is not None and isinstance(question.loss, Square):
            sgd, mass = question.sgd, self.shared(question)
            noise = batch_limit_by_diagonal(
                course.sharpest, self.kernel.diagonal(), mass, question.batch, sgd.momentum, sgd.weight_decay
            )
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
            return Answers(self.model, self.held_out, loss, decide, self.read, 256, keep)

    def radial(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the derivatives of the outputs of sample and held-out points when all weights are scaled."""
        if self._part_of is not None:
            whole, rows = self._part_of
            return whole.radial()[0][rows], whole.radial()[1]
        return self._radial

    @cached_property
    def _radial(self) -> tuple[np.ndarray, np.ndarray]:
        if isinstance(self.model, StoredNetwork):
            at_sample, at_held_out = self.model.radial
        else:
            at_sample, at_held_out = (
                radial(self.model, x, self.read) for x in (self.points(), self.held_out.tensors()[0])
            )
        return self.flat(at_sample), self.flat(at_held_out)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the Tangent as a new folder, without inputs and weights; `tm.results.load_tangent` reads it."""
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
    def held_out_described(self) -> Any:
        """The account of the held-out points for an Origin."""
        return self.model.held_out if isinstance(self.model, StoredNetwork) else self.held_out.to_json()

    def __repr__(self) -> str:
        return (
            f"<Tangent of {self.network_name}, {len(self.sample)} points of the training data, "
            f"{len(self.held_out)} to look at, {self.columns} output{'s' if self.columns > 1 else ''} ({self.outputs})>"
        )


def number_type_of(model: nn.Module) -> torch.dtype | None:
    """Return the number type of the model."""
    return next((value.dtype for value in model.parameters() if value.is_floating_point()), None)
