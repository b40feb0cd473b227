"""Light training: twins trained one by one, without what a small network need not pay for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from tiltmeter.data.grouped import GroupedData
from tiltmeter.forecast.curves import KEPT, GatheredEvaluations, forecast_measures
from tiltmeter.forecast.twin.joined_update import Rates, ScoreSlopes, formulas, score_slopes
from tiltmeter.forecast.twin.twins import Shifted
from tiltmeter.forecast.twin.untrained import unfused
from tiltmeter.measures.answers import TRIED, Answers
from tiltmeter.measures.default_curves import DEFAULTS
from tiltmeter.measures.point_loss import point_loss
from tiltmeter.modules.untouched import put_back, streams, untouched
from tiltmeter.progress import Progress
from tiltmeter.recipe.recipe import Recipe
from tiltmeter.recipe.watch import Watch
from tiltmeter.record import Origin, Trajectory, stack
from tiltmeter.threads import one_thread, small_steps
from tiltmeter.training.loop import train as train_model
from tiltmeter.training.prepared import Prepared, check_training, prepared
from tiltmeter.training.update import Update

#: Takes one step of a network: the places of its batch, and its number.
Step: TypeAlias = Callable[[Any, int], None]


def train_lightly(
    model: nn.Module,
    train: GroupedData,
    held_out: GroupedData,
    recipe: Recipe,
    watch: Watch,
    seed: int,
    rates: Rates | None = None,
    together: int = 256,
) -> Trajectory:
    """What `train` gives for a recipe without interventions, up to rounding, if nobody needs the points.

    `rates` are those of the model's parameters, if the steps of the optimiser are to be taken by its formula. So many
    points to look at are answered `together`.
    """
    measures, total = forecast_measures(watch), recipe.total_steps(len(train))
    check_training(model, train, held_out, recipe, watch, None)
    with untouched(model):
        keep = len(measures) > len(DEFAULTS)
        answers = Answers(model, held_out, recipe.loss, watch.decide, None, together, keep)
    if len(watch.when.steps(total)) * len(held_out) * answers.task.outputs > KEPT:
        return train_model(model, train, held_out, recipe, watch=watch, seed=seed)
    before = streams()
    with ExitStack() as stack:
        stack.callback(put_back, before)
        stack.enter_context(one_thread(small_steps(model, recipe.batch_size(len(train)))))
        made = prepared(model, train, recipe, watch, seed, {})
        torch.manual_seed(seed)
        by_formula = None if rates is None else StepsByFormula.of(model, train, made, answers, rates)
        take: Step = by_formula or _by_optimiser(model, train, made, answers)
        batch = made.recipe.batches(train).in_turn(train, made.recipe.batch_size(len(train)), made.seed)
        evaluations = GatheredEvaluations(lambda: _held_out(model, answers))
        for step in range(total):
            if watch.when(step) and not evaluations(step):
                break
            take(batch(step), step)
        else:
            evaluations(total)
    return evaluations.trajectory(answers, measures, {}, Origin("forecast"))


def _by_optimiser(model: nn.Module, train: GroupedData, made: Prepared, answers: Answers) -> Step:
    """Steps of the recipe's own optimiser and schedule, as `train` takes them."""
    update = Update(model, train, made.optimiser, replace(made.recipe, loss=answers.given), None)

    def take(places: Any, step: int) -> None:
        made.scheduling.before(step)
        update(places, step)
        made.scheduling.after()

    return take


class StepsByFormula:
    """Steps of a network by the formulas of its loss and its optimiser."""

    def __init__(self, model: nn.Module, x: Tensor, slopes: ScoreSlopes, made: Prepared, rates: Rates) -> None:
        self._model, self._x, self._slopes, self._made, self._rates = model, x, slopes, made, rates
        named = _trained(model)
        self._parameters, places = list(named.values()), {name: number for number, name in enumerate(named)}
        self._parts = [([places[name] for name in names], formula, names[0]) for names, formula in formulas(rates)]
        self._known: bool | None = None

    @classmethod
    def of(
        cls, model: nn.Module, train: GroupedData, made: Prepared, answers: Answers, rates: Rates
    ) -> StepsByFormula | None:
        """None where a formula is not known."""
        if not rates.stackable or set(rates.names) != set(_trained(model)):
            return None
        like = next(iter(_trained(model).values()))
        x, y = torch.as_tensor(train.x, device=like.device), train.tensors()[1]
        with untouched(model):
            few = model(x[:TRIED])
        goals = y[:TRIED].float() if few.ndim == 1 else y[:TRIED].long()
        loss = point_loss(answers.given, few, goals, [float(label) for label in train.labels])
        slopes = score_slopes(loss, train, [made.recipe.weights], like)
        return None if slopes is None else cls(model, x, slopes, made, rates)

    def __call__(self, places: Any, step: int) -> None:
        chosen = torch.as_tensor(places, device=self._x.device)
        scores = self._model(self._x.index_select(0, chosen))
        rows = scores.detach().reshape(1, len(chosen), -1)
        slopes = self._slopes(rows, chosen[None]).reshape(scores.shape)
        found = torch.autograd.grad(scores, self._parameters, slopes, allow_unused=True)
        if self._known is None:  # an optimiser leaves a parameter alone that no score depends on
            self._known = all(one is not None for one in found)
        if self._known:
            with torch.no_grad():
                for part, formula, name in self._parts:
                    own = [self._parameters[number] for number in part]
                    gradients = [_or_zero(found[number], self._parameters[number]) for number in part]
                    formula.take(own, gradients, self._rates.rate(name, step))
            return
        for one, gradient in zip(self._parameters, found, strict=True):
            one.grad = gradient
        self._made.scheduling.before(step)
        self._made.optimiser.step()
        self._made.scheduling.after()


def _or_zero(gradient: Tensor | None, parameter: Tensor) -> Tensor:
    return torch.zeros_like(parameter) if gradient is None else gradient


def _trained(model: nn.Module) -> dict[str, Tensor]:
    """The parameters that learn, by their names in the network inside."""
    return {name.removeprefix("network."): one for name, one in model.named_parameters() if one.requires_grad}


def _held_out(model: nn.Module, answers: Answers) -> Tensor:
    """The scores of one run, of shape (1, points, outputs)."""
    with untouched(model), unfused(model):
        found = answers.own_scores(model)
    return found.reshape(1, len(found), -1)


def train_one_by_one(
    twins: Sequence[nn.Module],
    recipes: Sequence[Recipe],
    seeds: Sequence[int],
    train: GroupedData,
    held_out: GroupedData,
    watch: Watch,
    progress: bool,
    rates: Sequence[Rates | None] | None,
) -> Trajectory:
    """The curves of all twins, with a dimension `seed` of their numbers where there are several.

    The data are those that the twins take: points, or their places. `rates` are those of every twin, where they are
    known ahead; None for twins that are the whole network, which give what `train` gives to the bit.
    """
    found: list[Trajectory] = []
    watch = replace(watch, read=None)
    with Progress(len(twins), lambda done: f"Twin {done} of {len(twins)}") as tell:
        for number, (twin, recipe, seed) in enumerate(zip(twins, recipes, seeds, strict=True)):
            if rates is None or recipe.interventions or watch.points or not isinstance(twin, Shifted):
                run = train_model(twin, train, held_out, recipe, watch=watch, seed=seed)
            else:
                run = train_lightly(twin, train, held_out, recipe, watch, seed, rates[number], twin.together)
            origin = replace(run.origin, seeds=(number,))
            found.append(Trajectory(dict(run), run.clock, origin, run.diverged, points=run.points))
            if progress:
                tell(number + 1)
    return stack(found) if len(found) > 1 else found[0]
