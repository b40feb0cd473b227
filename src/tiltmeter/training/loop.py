"""train: a short training loop for experiments, watched by a `Probe`."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from tiltmeter.data.example_weights import example_weights
from tiltmeter.data.grouped import GroupedData, check_labels_known
from tiltmeter.measures.point_loss import PointLoss, point_loss
from tiltmeter.passes.forward import Read, flat_scores
from tiltmeter.passes.streams import put_back, streams
from tiltmeter.recipe.checks import check_no_interventions
from tiltmeter.recipe.recipe import Recipe, checked_recipe
from tiltmeter.recipe.watch import Watch, checked_watch
from tiltmeter.record import Trajectory, When, every
from tiltmeter.training.checkpoint import load_checkpoint, save_checkpoint
from tiltmeter.training.probe import Probe


def train(
    model: nn.Module,
    train: GroupedData,
    look: GroupedData,
    recipe: Recipe,
    *,
    watch: Watch = Watch(),
    seed: int = 0,
    to: str | os.PathLike[str] | None = None,
    checkpoint: When = every(1000),
    resume: bool = False,
) -> Trajectory:
    """Train the model in place, as the recipe says, and return the curves of every group on held-out points.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(400, 5))
    >>> data = GroupedData(x, np.sign(x[:, 0]), rng.choice(["a", "b"], 400, p=[0.8, 0.2]))
    >>> run = train(nn.Linear(5, 1), *data.split(0.5), Recipe(lr=0.1, steps=100, proportions={"a": 1}))
    >>> run["error"].sel(time=100, group="a").item() < 0.2
    True

    `watch` says what is looked at and when. Batches depend only on `seed` (or the recipe's `order`) and the step.
    torch's random generator starts from `seed`, and the caller's random state is restored at the end. With `to`, the
    run and its checkpoints are kept in that directory. `resume=True` continues from the last checkpoint and reaches
    bit-identical weights; it refuses a recipe that differs from the first one. A run that diverges ends at the look
    that finds it.
    """
    if not isinstance(train, GroupedData):
        raise TypeError(f"`train` should be GroupedData. Found {type(train).__name__}.")
    checked_recipe(recipe)
    check_labels_known(train, look)
    check_no_interventions(recipe, "`train`")
    batches, size = recipe.batches(train), recipe.batch_size(len(train))
    total = recipe.total_steps(len(train))
    optimiser = recipe.make_optimiser(model.parameters())
    scheduling = recipe.scheduling(optimiser)
    if resume and to is None:
        raise ValueError("`resume` continues a run directory: with `to=None` there is none to continue.")
    before = streams()
    try:
        torch.manual_seed(seed)
        probe = Probe(
            model,
            look,
            checked_watch(watch),
            to,
            loss=recipe.loss,
            seed=seed,
            resume=resume and Path(to or ".", "run.json").exists(),
            settings={"train": train.to_json(), "recipe": recipe.to_json(), "steps": total},
        )
        with probe:
            place = probe.place
            start = load_checkpoint(place, model, optimiser, scheduling) if resume and place is not None else 0
            update = _Update(model, train, optimiser, replace(recipe, loss=probe.loss), watch.read)
            numbers = recipe.batch_seed(seed)
            seen = -1 if probe.last_step is None else probe.last_step
            for step in range(start, total):
                if step > seen:  # the steps since the checkpoint are repeated identically
                    probe(step)
                if probe.diverged:
                    break
                if place is not None and step > start and checkpoint(step):
                    save_checkpoint(place, step, model, optimiser, scheduling)
                scheduling.before(step)
                update(batches.batch(train, size, numbers, step))
                scheduling.after()
            else:
                if place is not None and start < total:
                    save_checkpoint(place, total, model, optimiser, scheduling)
                probe.look(total, last=True)
    finally:
        put_back(before)
    return probe.trajectory()


class _Update:
    """One step on a batch of points."""

    def __init__(
        self,
        model: nn.Module,
        data: GroupedData,
        optimiser: torch.optim.Optimizer,
        recipe: Recipe,
        read: Read | None,
    ) -> None:
        self._model, self._optimiser, self._given, self._read = model, optimiser, recipe.loss, read
        self._clip = recipe.clip
        self._labels = data.labels.tolist()
        like = next((p for p in model.parameters() if p.is_floating_point()), torch.empty(0))
        x, y = data.tensors(like.dtype)
        self._x, self._y = x.to(like.device), y.to(like.device)
        found = example_weights(data, recipe.weights)
        self._weights = None if found is None else torch.as_tensor(found, dtype=like.dtype, device=like.device)
        self._loss: PointLoss | None = None

    def __call__(self, places: Any) -> None:
        chosen = torch.as_tensor(places, device=self._x.device)
        score = flat_scores(self._model(self._x[chosen]), len(chosen), self._read)
        y = self._y[chosen].long() if score.ndim == 2 else self._y[chosen].to(score.dtype)
        if self._loss is None:
            self._loss = point_loss(self._given, score.detach(), y, self._labels)
        self._optimiser.zero_grad()
        self._value(score, y, chosen, self._loss).backward()  # type: ignore[no-untyped-call]
        if self._clip is not None:
            nn.utils.clip_grad_norm_(self._model.parameters(), self._clip)
        self._optimiser.step()

    def _value(self, score: Tensor, y: Tensor, chosen: Tensor, loss: PointLoss) -> Tensor:
        if self._weights is None:
            return loss.whole(score, y)
        if loss.each is None:
            raise ValueError(
                f"Weights multiply the loss of each point, but {loss.definition} gives one number per batch."
            )
        return (self._weights[chosen] * loss.each(score, y)).mean()
