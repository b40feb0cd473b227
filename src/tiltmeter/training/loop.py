"""train: a short loop of our own for experiments, a plain user of `Probe`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from tiltmeter.data.example_weights import example_weights
from tiltmeter.data.grouped import GroupedData, share_of
from tiltmeter.measures.point_loss import PointLoss, point_loss
from tiltmeter.passes.forward import Read, flat_scores
from tiltmeter.passes.streams import put_back, streams
from tiltmeter.record import Trajectory, When, every, log_spaced
from tiltmeter.record.labelled import plain_pairs
from tiltmeter.training.checkpoint import load_checkpoint, save_checkpoint
from tiltmeter.training.probe import Probe
from tiltmeter.training.run_settings import chosen_sampling, plain_numbers, total_steps
from tiltmeter.training.sampling import Sampling

MakeOptimizer = Callable[[Iterable[nn.Parameter]], Optimizer]


def train(
    model: nn.Module,
    train: GroupedData,
    look: GroupedData,
    optimizer: Optimizer | MakeOptimizer,
    loss: Any = None,
    steps: int | None = None,
    batch: int = 32,
    weights: Mapping[Any, float] | None = None,
    proportions: Mapping[Any, float] | None = None,
    *,
    epochs: int | None = None,
    sampling: Sampling | None = None,
    when: When = log_spaced(20),
    measures: Sequence[Callable[..., Any]] = (),
    read: Read | None = None,
    decide: Callable[[Any], Any] | None = None,
    seed: int = 0,
    to: str | os.PathLike[str] | None = None,
    checkpoint: When = every(1000),
    resume: bool = False,
) -> Trajectory:
    """Train the model in place and return its group curves.

    `optimizer` is one, or makes one from the parameters: `partial(torch.optim.SGD, lr=0.1)`. By default the data are
    finite, every point once per epoch; with `proportions` (or `sampling=Draws()`) every batch is drawn anew, groups in
    these proportions. `weights` {group or (group, label): number} multiply losses. Batches depend on `seed` and step
    alone and torch's stream starts from `seed`; the streams of the caller are put back at the end. With `to`, the run
    and its checkpoints are kept there, and `resume=True` goes on from the last one to the same final weights, bit by
    bit. A diverged run ends at the look that finds it.

    >>> import numpy as np
    >>> from functools import partial
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(400, 5))
    >>> data = GroupedData(x, np.sign(x[:, 0]), rng.choice(["a", "b"], 400, p=[0.8, 0.2]))
    >>> sgd = partial(torch.optim.SGD, lr=0.1)
    >>> run = train(nn.Linear(5, 1), *data.split(0.5), sgd, steps=100, proportions={"a": 1})
    >>> run["error"].sel(time=100, group="a").item() < 0.2
    True
    """
    if not isinstance(train, GroupedData):
        raise TypeError(f"`train` should be GroupedData. Found {type(train).__name__}.")
    sampling = chosen_sampling(sampling, proportions)
    share_of(train, getattr(sampling, "proportions", None))
    total = total_steps(steps, epochs, sampling, train, batch)
    made = optimizer if isinstance(optimizer, Optimizer) else optimizer(model.parameters())
    if not isinstance(made, Optimizer):
        raise TypeError(f"`optimizer` should be one, or make one from the parameters. Found {type(made).__name__}.")
    if resume and to is None:
        raise ValueError("`resume` continues a run directory: with `to=None` there is none to continue.")
    before = streams()
    try:
        torch.manual_seed(seed)
        probe = Probe(
            model,
            look,
            measures,
            when,
            to,
            loss=loss,
            decide=decide,
            read=read,
            seed=seed,
            resume=resume and Path(to or ".", "run.json").exists(),
            settings={
                "train": train.to_json(),
                "optimizer": {"class": type(made).__name__, **plain_numbers(made.defaults)},
                "steps": total,
                "batch": batch,
                "weights": plain_pairs(weights),
                "proportions": plain_pairs(getattr(sampling, "proportions", None)),
                "sampling": type(sampling).__name__,
            },
        )
        with probe:
            place = probe.place
            start = load_checkpoint(place, model, made) if resume and place is not None else 0
            update = _Update(model, train, made, loss, weights, read)
            for step in range(start, total):
                probe(step)
                if probe.diverged:
                    break
                if place is not None and step > start and checkpoint(step):
                    save_checkpoint(place, step, model, made)
                update(sampling.batch(train, batch, seed, step))
            else:
                if place is not None and start < total:
                    save_checkpoint(place, total, model, made)
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
        optimizer: Optimizer,
        loss: Any,
        weights: Mapping[Any, float] | None,
        read: Read | None,
    ) -> None:
        self._model, self._optimizer, self._given, self._read = model, optimizer, loss, read
        self._labels = data.labels.tolist()
        like = next((p for p in model.parameters() if p.is_floating_point()), torch.empty(0))
        x, y = data.tensors(like.dtype)
        self._x, self._y = x.to(like.device), y.to(like.device)
        found = example_weights(data, weights)
        self._weights = None if found is None else torch.as_tensor(found, dtype=like.dtype, device=like.device)
        self._loss: PointLoss | None = None

    def __call__(self, places: Any) -> None:
        chosen = torch.as_tensor(places, device=self._x.device)
        score = flat_scores(self._model(self._x[chosen]), len(chosen), self._read)
        y = self._y[chosen].long() if score.ndim == 2 else self._y[chosen].to(score.dtype)
        if self._loss is None:
            self._loss = point_loss(self._given, score.detach(), y, self._labels)
        self._optimizer.zero_grad()
        self._value(score, y, chosen, self._loss).backward()  # type: ignore[no-untyped-call]
        self._optimizer.step()

    def _value(self, score: Tensor, y: Tensor, chosen: Tensor, loss: PointLoss) -> Tensor:
        if self._weights is None:
            return loss.whole(score, y)
        if loss.each is None:
            raise ValueError(f"Weights multiply the loss of each point, which {loss.definition} does not tell.")
        return (self._weights[chosen] * loss.each(score, y)).mean()
