"""ensemble: many seeds, and many learning rates or weight decays, trained at once."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
import xarray as xr
from torch import Tensor, nn

from tiltmeter.data.grouped import GroupedData, share_of
from tiltmeter.measures.answers import Answers
from tiltmeter.measures.default_curves import DEFAULTS
from tiltmeter.measures.group_metric import GroupMetric
from tiltmeter.measures.point_loss import point_loss
from tiltmeter.passes.description import describe
from tiltmeter.passes.forward import Read, flat_scores
from tiltmeter.passes.streams import put_back, streams
from tiltmeter.passes.untouched import untouched
from tiltmeter.record import Origin, Recorder, Trajectory, When, log_spaced
from tiltmeter.record.labelled import JSON, Number, aligned, array_to_json, labelled, plain_pairs
from tiltmeter.training.probe import as_measure
from tiltmeter.training.run_settings import chosen_sampling, plain_numbers, total_steps
from tiltmeter.training.sampling import Sampling
from tiltmeter.training.stacked import Stacked
from tiltmeter.training.stacked_loop import stacked_batches, train_stacked
from tiltmeter.training.stacked_loss import stacked_loss
from tiltmeter.training.stacked_observations import StackedObservations
from tiltmeter.training.stacked_optimizers import MakeOptimizer, Rate, stacked_update


def ensemble(
    make_model: Callable[[], nn.Module],
    data: GroupedData,
    look: GroupedData | None = None,
    *,
    optimizer: MakeOptimizer,
    seeds: int | Sequence[int] = 32,
    lr: Number | None = None,
    weight_decay: Number | None = None,
    loss: Any = None,
    steps: int | None = None,
    batch: int = 32,
    weights: Mapping[Any, float] | None = None,
    proportions: Mapping[Any, float] | None = None,
    epochs: int | None = None,
    sampling: Sampling | None = None,
    when: When = log_spaced(20),
    measures: Sequence[Callable[..., Any]] = (),
    read: Read | None = None,
    decide: Callable[[Any], Any] | None = None,
    chunk: int = 256,
    to: str | os.PathLike[str] | None = None,
) -> Trajectory:
    """Train the models of many seeds at once and return their group curves, with a dimension `seed`.

    The model of seed s is what `make_model()` returns after `torch.manual_seed(s)`; its batches are those that
    `train(model, data, look, ..., seed=s)` takes, so that seed s of the ensemble *is* that run, to the precision of
    floating-point numbers. (Not with Dropout, whose masks come from one stream for all.) `seeds` is a number of them or
    a list. `look` holds the points to look at; without it, a fifth of `data` is set aside (`data.split()`).

    `optimizer` makes an SGD, Adam or AdamW of torch.optim, as `partial(torch.optim.SGD, lr=0.1, momentum=0.9)`. `lr`
    and `weight_decay` stand in for its own; `lr=("lr", [0.1, 0.2])` trains every seed with each, and the curves have a
    dimension `lr` too. Everything else is as in `train`.

    >>> import numpy as np
    >>> from functools import partial
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(1200, 5))
    >>> data = GroupedData(x, np.sign(x[:, 0] + x[:, 1]), rng.choice(["a", "b"], 1200, p=[0.8, 0.2]))
    >>> sgd = partial(torch.optim.SGD, lr=0.1)
    >>> run = ensemble(lambda: nn.Linear(5, 1), data, optimizer=sgd, seeds=4, steps=100)
    >>> run["error"].sel(time=100).mean("seed").max().item() < 0.1
    True
    """
    train, look = _data(data, look)
    numbers = _seeds(seeds)
    sampling = chosen_sampling(sampling, proportions)
    share_of(train, getattr(sampling, "proportions", None))
    total = total_steps(steps, epochs, sampling, train, batch)
    if not isinstance(when, When):
        raise TypeError(f"`when` should choose steps, as log_spaced(20) or every(100). Found {type(when).__name__}.")
    every = DEFAULTS + tuple(_measure(measure) for measure in measures)
    before = streams()
    try:
        models = [_model(make_model, seed) for seed in numbers]
        made = optimizer(list(models[0].parameters()))
        if not isinstance(made, torch.optim.Optimizer):
            raise TypeError(f"`optimizer` should make one from the parameters. Found {type(made).__name__}.")
        rates, grid = _grid(made, lr, weight_decay)
        per_seed = len(rates["lr"])
        stacked = Stacked([model for model in models for _ in range(per_seed)], read)
        update = stacked_update(made, *(_rate(rates[name], len(models)) for name in ("lr", "weight_decay")))
        keep = any(getattr(measure, "needs_score", False) for measure in every)
        with untouched(models[0]):
            answers = Answers(models[0], look, loss, decide, read, chunk, keep)
        like = next((p for p in models[0].parameters() if p.is_floating_point()), torch.empty(0))
        x, seen = (part.tensors(like.dtype)[0].to(like.device) for part in (train, look))
        origin = Origin(
            "training",
            problem={"look": look.to_json()},
            settings={
                "model": describe(models[0]),
                "loss": answers.loss.definition,
                "when": when.to_json(),
                "train": train.to_json(),
                "optimizer": {
                    "class": type(made).__name__,
                    **plain_numbers(made.defaults),
                    **{name: _setting(values, grid) for name, values in rates.items()},
                },
                "steps": total,
                "batch": batch,
                "weights": plain_pairs(weights),
                "proportions": plain_pairs(getattr(sampling, "proportions", None)),
                "sampling": type(sampling).__name__,
            },
            seeds=tuple(numbers),
        )
        with Recorder(to, clock="step", origin=origin) as recorder:
            train_stacked(
                stacked,
                update,
                stacked_batches(sampling, train, batch, numbers),
                x,
                stacked_loss(_point_loss(models[0], loss, train, x, read), train, weights, like),
                sorted({*when.steps(total), total}),
                StackedObservations(stacked, answers, every, seen, {"seed": numbers, **grid}, recorder),
            )
            return recorder.trajectory()
    finally:
        put_back(before)


def _data(data: object, look: object) -> tuple[GroupedData, GroupedData]:
    for name, value in (("data", data), ("look", data if look is None else look)):
        if not isinstance(value, GroupedData):
            raise TypeError(f"`{name}` should be GroupedData. Found {type(value).__name__}.")
    assert isinstance(data, GroupedData)
    return data.split() if look is None else (data, look)  # type: ignore[return-value]


def _seeds(seeds: object) -> list[int]:
    if isinstance(seeds, (int, np.integer)) and not isinstance(seeds, bool):
        if seeds < 1:
            raise ValueError(f"`seeds` should be at least 1. Found seeds = {seeds}.")
        return list(range(int(seeds)))
    if isinstance(seeds, str) or not isinstance(seeds, (Sequence, np.ndarray)):
        raise TypeError(f"`seeds` should be how many, or a list of them. Found seeds = {seeds!r}.")
    found = list(seeds)
    for seed in found:
        if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
            raise ValueError(f"`seeds` should be integers from 0. Found {seed!r} among them.")
    if not found or len(set(found)) < len(found):
        raise ValueError(f"`seeds` should be different from one another, and at least one. Found seeds = {found}.")
    return [int(seed) for seed in found]


def _measure(measure: Callable[..., Any]) -> GroupMetric:
    found = as_measure(measure)
    if not isinstance(found, GroupMetric):
        raise TypeError("`measures` of an ensemble should be functions f(y_true, y_score). Found one of a snapshot.")
    return found


def _model(make_model: Callable[[], nn.Module], seed: int) -> nn.Module:
    torch.manual_seed(seed)
    model = make_model()
    if not isinstance(model, nn.Module):
        raise TypeError(f"`make_model` should return a torch.nn.Module. Found {type(model).__name__}.")
    return model


def _grid(
    made: torch.optim.Optimizer, lr: Number | None, weight_decay: Number | None
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """The rates of every point of the grid, and the labels of its dimensions."""
    given = {"lr": lr, "weight_decay": weight_decay}
    arrays = {
        name: labelled(made.defaults.get(name, 0.0) if value is None else value, name) for name, value in given.items()
    }
    for name, array in arrays.items():
        if (array < 0).any():
            raise ValueError(f"`{name}` should not be negative. Found {name} = {float(array.min())}.")
    wide = aligned(list(arrays.values()), "`lr` and `weight_decay`")
    sizes = wide[0].sizes
    labels = {str(dim): wide[0].coords[dim].values if dim in wide[0].coords else np.arange(sizes[dim]) for dim in sizes}
    return {name: array.values.ravel() for name, array in zip(arrays, wide, strict=True)}, labels


def _rate(values: np.ndarray, seeds: int) -> Rate:
    """One number where all are equal, else one per run: seeds vary slowest."""
    if (values == values[0]).all():
        return float(values[0])
    return torch.as_tensor(np.tile(values, seeds))


def _setting(values: np.ndarray, grid: Mapping[str, np.ndarray]) -> JSON:
    if (values == values[0]).all():
        return float(values[0])
    shape = [len(labels) for labels in grid.values()]
    return array_to_json(xr.DataArray(values.reshape(shape), dims=list(grid), coords=dict(grid)))


def _point_loss(model: nn.Module, loss: Any, train: GroupedData, x: Tensor, read: Read | None) -> Any:
    """The loss to train with, tried on the first points."""
    few = x[:8]
    with untouched(model):
        score = flat_scores(model(few), len(few), read)
    y = train.tensors()[1][: len(few)]
    return point_loss(loss, score, y.long() if score.ndim == 2 else y.to(score.dtype), train.labels.tolist())
