"""Update: one step of a network on a batch of points, as a recipe and its interventions say."""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from tiltmeter.data.example_weights import example_weights
from tiltmeter.data.grouped import GroupedData
from tiltmeter.interventions.kinds import TermIntervention
from tiltmeter.measures.point_loss import PointLoss, point_loss
from tiltmeter.modules.forward import Read, answer, flat_scores, like_weights, private
from tiltmeter.recipe.recipe import Recipe
from tiltmeter.training.network_interventions import NetworkInterventions
from tiltmeter.training.steering import Steering


class Update:
    """Draws nothing and decides nothing: it is told the places of a batch, and steps.

    Order of a step: the batch is changed, the model answers, losses are changed and weighed, the optimiser steps, and
    only then the interventions remember what they saw. Whatever is random about a changed batch depends on `seed` and
    step."""

    def __init__(
        self,
        model: nn.Module,
        data: GroupedData,
        optimiser: torch.optim.Optimizer,
        recipe: Recipe,
        read: Read | None,
        laws: NetworkInterventions = NetworkInterventions(),
        steering: Steering | None = None,
        seed: int = 0,
    ) -> None:
        self._model, self._optimiser, self._given, self._read = model, optimiser, recipe.loss, read
        self._run: Any = model
        if recipe.compile:
            self._run = torch.compile(model, backend=recipe.compile if isinstance(recipe.compile, str) else "inductor")
        self._accumulate = int(recipe.accumulate)
        self._clip, self._laws, self._steering, self._seed = recipe.clip, laws, steering, seed
        self.stepper: Any = None if laws.step is None else laws.step.optimizer(optimiser)
        self._labels = data.labels.tolist()
        like = next((p for p in model.parameters() if p.is_floating_point()), torch.empty(0))
        self._autocast: Any = nullcontext
        if recipe.autocast is not None:
            self._autocast = partial(torch.autocast, like.device.type, getattr(torch, recipe.autocast))
        x, y = data.tensors(like.dtype) if laws.batch else data.tensor_points(like.dtype)
        self._x, self._y = x.to(like.device), y.to(like.device)
        self._codes = torch.as_tensor(data.codes, dtype=torch.int64, device=like.device)
        found = example_weights(data, recipe.weights)
        if found is not None and laws.batch:
            raise ValueError(f"The points have weights, and {type(laws.batch[0]).__name__} replaces the points.")
        self._weights = None if found is None else torch.as_tensor(found, dtype=like.dtype, device=like.device)
        self._loss: PointLoss | None = None
        self._slopes = any(isinstance(law, TermIntervention) and "input gradients" in law.sees for law in laws.steering)

    def __call__(self, places: Any, step: int) -> None:
        chosen = torch.as_tensor(places, device=self._y.device)
        x, y, codes = self._x[chosen], self._y[chosen], self._codes[chosen]
        weights = None if self._weights is None else self._weights[chosen]
        for number, law in enumerate(self._laws.batch):
            x, y, codes = law.batch(x, y, codes, np.random.default_rng((self._seed, step, number)))
        if self.stepper is None:
            self._differentiate(x, y, codes, weights, learn=True)
            self._optimiser.step()
        elif self._laws.step is not None and self._laws.step.by_group:
            self._step_group_by_group(x, y, codes, weights)
        else:
            self._step_with_closure(x, y, codes, weights)

    def _step_with_closure(self, x: Any, y: Tensor, codes: Tensor, weights: Tensor | None) -> None:
        """Interventions learn from the first pass alone, and statistics of normalisation layers are those of it."""
        kept: list[Tensor] | None = None

        def closure() -> Tensor:
            nonlocal kept
            with torch.enable_grad():
                value = self._differentiate(x, y, codes, weights, learn=kept is None)
            if kept is None:
                kept = [buffer.clone() for buffer in self._model.buffers()]
            return value

        self.stepper.step(closure)
        with torch.no_grad():
            for buffer, first in zip(self._model.buffers(), kept or (), strict=True):
                buffer.copy_(first)

    def _step_group_by_group(self, x: Any, y: Tensor, codes: Tensor, weights: Tensor | None) -> None:
        def closure(code: int) -> Tensor:
            own = torch.nonzero(codes == code)[:, 0]
            part = None if weights is None else weights[own]
            with torch.enable_grad():
                return self._differentiate(x[own], y[own], codes[own], part, learn=True)

        self.stepper.step(closure, torch.unique(codes).tolist())

    def _differentiate(self, x: Any, y: Tensor, codes: Tensor, weights: Tensor | None, learn: bool) -> Tensor:
        self._optimiser.zero_grad()
        values = []
        size = -(-len(y) // self._accumulate)
        for start in range(0, len(y), size):
            if size == len(y):
                value = self._value_of(x, y, codes, weights, learn)
            else:
                part = slice(start, start + size)
                own = None if weights is None else weights[part]
                value = self._value_of(x[part], y[part], codes[part], own, learn) / (len(y) / len(y[part]))
            value.backward()  # type: ignore[no-untyped-call]
            values.append(value.detach())
        if self._clip is not None:
            nn.utils.clip_grad_norm_(self._model.parameters(), self._clip)
        return values[0] if len(values) == 1 else torch.stack(values).sum()

    def _value_of(self, x: Any, y: Tensor, codes: Tensor, weights: Tensor | None, learn: bool) -> Tensor:
        points = x if isinstance(self._x, Tensor) else like_weights(self._model, x)
        if self.stepper is not None:
            points = private(points)  # it passes several times, and a forward pass may work in place
        if self._slopes and isinstance(points, Tensor) and points.is_floating_point():
            points = points.detach().requires_grad_()
        with self._autocast():
            score = flat_scores(answer(self._run, points), len(x), self._read)
        y = y.long() if score.ndim == 2 else y.to(score.dtype)
        if self._loss is None:
            self._loss = point_loss(self._given, score.detach(), y, self._labels)
        return self._value(points, score, y, codes, weights, self._loss, learn)

    def _value(
        self, x: Any, score: Tensor, y: Tensor, codes: Tensor, weights: Tensor | None, loss: PointLoss, learn: bool
    ) -> Tensor:
        if self._steering is None and weights is None:
            return loss.whole(score, y)
        if loss.each is None:
            raise ValueError(
                f"Weights multiply the loss of each point, but {loss.definition} gives one number per batch."
            )
        each = loss.each(score, y)
        if self._steering is not None:
            return self._steering.forward(each, codes, scores=score, y=y, weights=weights, learn=learn, x=x)
        assert weights is not None
        return (weights * each).mean()
