"""forecast_by_coordinates: the linearised network under any optimiser that treats every weight separately."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from tiltmeter.data.grouped import GroupedData
from tiltmeter.forecast.batch_statistics import gather_statistics, say_gathered
from tiltmeter.forecast.begun import Begun
from tiltmeter.forecast.coordinates.columns import columns
from tiltmeter.forecast.coordinates.linear_run import BatchSlopes, LinearRun
from tiltmeter.forecast.coordinates.strata import strata
from tiltmeter.forecast.curves import forecast_measures
from tiltmeter.forecast.gathered_looks import KEPT, GatheredLooks
from tiltmeter.forecast.inputs import checked_classes, checked_data, checked_model, say_held_out
from tiltmeter.forecast.laws import check_coordinate_laws
from tiltmeter.forecast.optimiser_kind import kind_of
from tiltmeter.forecast.replica_seeds import replica_seeds
from tiltmeter.forecast.replicas import told_by_replicas
from tiltmeter.forecast.route import Coordinates
from tiltmeter.forecast.score_slopes import score_slopes
from tiltmeter.measures.answers import Answers
from tiltmeter.measures.default_curves import DEFAULTS
from tiltmeter.measures.point_loss import point_loss
from tiltmeter.memory import check_fits
from tiltmeter.passes.deep_copy import deep_copy
from tiltmeter.passes.forward import Read, bare, like_weights, scores
from tiltmeter.passes.untouched import untouched
from tiltmeter.recipe.lowered import lowered_recipe
from tiltmeter.recipe.recipe import Recipe
from tiltmeter.recipe.watch import Watch
from tiltmeter.record import Origin, Recorder, Trajectory
from tiltmeter.training.network_laws import network_laws
from tiltmeter.training.point_keeper import PointKeeper
from tiltmeter.training.stacked_loop import stacked_batches
from tiltmeter.training.stacked_loss import stacked_loss
from tiltmeter.training.stacked_observations import StackedObservations
from tiltmeter.training.steering import Steering


def forecast_by_coordinates(
    model: nn.Module,
    train: GroupedData,
    look: GroupedData | None,
    recipe: Recipe,
    route: Coordinates,
    watch: Watch,
) -> Trajectory:
    """The curves of the linearised network on sampled weights, one set of them for every replica."""
    held_out = look is None
    train, look = checked_data(train, look)
    if held_out:
        say_held_out()
    own = deep_copy(bare(checked_model(model)))
    return coordinates_from(own, train, look, recipe, route, watch)


def coordinates_from(
    own: nn.Module,
    train: GroupedData,
    look: GroupedData,
    recipe: Recipe,
    route: Coordinates,
    watch: Watch,
    begun: Begun | None = None,
) -> Trajectory:
    """The same of a network that may be trained on; with `begun`, the rest of a training from there."""
    asked, recipe = recipe, lowered_recipe(recipe, train)
    check_coordinate_laws(recipe)
    first = 0 if begun is None else begun.step
    kind_of(recipe.make_optimiser, list(own.parameters()), "A forecast by coordinates")
    say_gathered(gather_statistics(own, train, 2500, watch.read))
    total, size = recipe.total_steps(len(train)), recipe.batch_size(len(train))
    rest = total - first
    sampling = recipe.batches(train)
    seeds = [route.seed] * route.replicas if recipe.order is not None else replica_seeds(route.seed, route.replicas)
    orders = [
        [batch[0] for batch in islice(stacked_batches(sampling, train, size, [recipe.batch_seed(seed)], first), rest)]
        for seed in seeds
    ]
    chosen = [strata(own, route.count, route.seed + number) for number in range(route.replicas)]
    shown = np.unique(torch.cat([torch.cat(order) for order in orders]).numpy())
    x_shown, x_look = (like_weights(own, data.tensors()[0]) for data in (train.take(shown), look))
    start, seen = (_scores(own, x, watch.read) for x in (x_shown, x_look))
    outputs = start.shape[1]
    for data in (train, look):
        checked_classes(data, outputs)
    weights = max(sum(len(one.places) for one in each) for each in chosen)
    number_bytes = (len(x_shown) + len(x_look)) * outputs * start.element_size() * route.replicas
    check_fits("count", weights, number_bytes, f"weights at {len(x_shown) + len(x_look):,} points")
    measures = forecast_measures(watch)
    with untouched(own):
        answers = Answers(own, look, recipe.loss, watch.decide, watch.read, 256, len(measures) > len(DEFAULTS))
    steered = network_laws(recipe, "ensemble")
    steered.check_loss(answers.loss)
    runs = []
    for each in chosen:
        slopes, there = (columns(own, each, x, watch.read) for x in (x_shown, x_look))
        laws = Steering(steered.steering, train, proportions=recipe.drawn, runs=1) if steered.steering else None
        pull = _slopes(answers, start, shown, train, recipe, laws)
        runs.append(LinearRun(own, each, (start, slopes), (seen, there), recipe, pull, begun))
    rows = torch.zeros(len(train), dtype=torch.int64)
    rows[torch.as_tensor(shown)] = torch.arange(len(shown))
    labels = {"seed": np.arange(len(runs))} if len(runs) > 1 else {}
    origin = Origin("forecast", seeds=tuple(range(len(runs))) if len(runs) > 1 else ())
    stack = _Runs(runs)
    looks = [step for step in sorted({first, *watch.when.steps(total), total}) if step >= first]
    if not watch.points and len(looks) * seen.numel() * len(runs) <= KEPT:
        gathered = GatheredLooks(stack.scores)
        _follow(runs, orders, rows, looks, gathered)
        found = gathered.trajectory(answers, measures, labels, origin)
    else:
        keeper = PointKeeper(look, labels, end=total) if watch.points else None
        with Recorder(None, clock="step", origin=origin) as recorder:
            observe = StackedObservations(stack, answers, measures, torch.arange(len(look)), labels, recorder, keeper)  # type: ignore[arg-type]
            _follow(runs, orders, rows, looks, observe)
            found = recorder.trajectory()
    order = "the run's own" if recipe.order is not None else "one for every replica"
    account: dict[str, Any] = {"weights": weights, "of": sum(p.numel() for p in own.parameters()), "order": order}
    if begun is not None:
        account["from_step"] = first
    return told_by_replicas(found, own, train, look, asked, watch, route, account)


def _follow(
    runs: Sequence[LinearRun],
    orders: Sequence[Sequence[Tensor]],
    rows: Tensor,
    looks: Sequence[int],
    observe: Callable[[int], bool],
) -> None:
    """All runs from look to look."""
    first = step = looks[0]
    for stop in looks:
        for run, order in zip(runs, orders, strict=True):
            for places in order[step - first : stop - first]:
                run.step(rows[places], places)
        step = stop
        if not observe(step):
            return


class _Runs:
    """Several runs as a stack that can be looked at."""

    def __init__(self, runs: Sequence[LinearRun]) -> None:
        self._runs, self.runs = runs, len(runs)

    @torch.no_grad()
    def scores(self) -> Tensor:
        return torch.stack([run.scores() for run in self._runs])

    def evaluate(self, places: Tensor) -> Tensor:
        return self.scores()[:, places]


def _scores(model: nn.Module, x: Tensor, read: Read | None) -> Tensor:
    """The scores of the untrained network, (points, outputs)."""
    with untouched(model):
        found = torch.cat([part for _, part in scores(model, x, read, 256)])
    return found.reshape(len(x), -1)


def _slopes(
    answers: Answers, start: Tensor, shown: np.ndarray, train: GroupedData, recipe: Recipe, laws: Steering | None
) -> BatchSlopes:
    """The derivatives of the loss of a batch with the weights of its points, as `train` takes it."""
    few = start[:8]
    y: Tensor = train.tensors()[1][torch.as_tensor(shown[:8])]
    trial = few[:, 0] if few.shape[1] == 1 else few
    each = point_loss(
        answers.given, trial, y.to(trial.dtype) if trial.ndim == 1 else y.long(), [float(one) for one in train.labels]
    )
    known = score_slopes(each, train, [recipe.weights], start) if laws is None else None
    if known is not None:
        return lambda scores, places: known(scores[None], places[None])[0]
    together = stacked_loss(each, train, recipe.weights, start, laws)

    def slopes(scores: Tensor, places: Tensor) -> Tensor:
        given = scores.requires_grad_()
        with torch.enable_grad():
            return torch.autograd.grad(together(given[None], places[None])[0], given)[0]

    return slopes
