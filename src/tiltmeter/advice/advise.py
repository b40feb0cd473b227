"""advise: try interventions for a network and its data before training, and rank the models that they deliver."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from torch import nn

from tiltmeter.advice.advice import PLAIN, Advice, advice_card
from tiltmeter.arguments import checked_count, checked_flag, checked_kind, checked_list, checked_number
from tiltmeter.changes.change import Change
from tiltmeter.changes.compare import PRICE, changes, gap_of
from tiltmeter.criteria import Criterion
from tiltmeter.data.grouped import GroupedData
from tiltmeter.forecast.methods import Rehearsal, Twin, checked_method
from tiltmeter.forecast.policy import SECONDS, SHARE, checked_budget, twin_for
from tiltmeter.forecast.rehearsal import Means, checked_executor, rehearse_arms, workers_of
from tiltmeter.forecast.result import as_forecast
from tiltmeter.forecast.task import ForecastTask, forecast_task
from tiltmeter.forecast.twin.forecasts_by_twins import forecasts_by_twins
from tiltmeter.interventions.checked import checked_interventions
from tiltmeter.interventions.cost_of_interventions import cost_of
from tiltmeter.interventions.intervention import Intervention
from tiltmeter.interventions.menu import menu
from tiltmeter.interventions.model import GroupThreshold
from tiltmeter.leaders.points import kept_points
from tiltmeter.leaders.seed_bands import FEWEST_SEEDS
from tiltmeter.progress import Progress, spell
from tiltmeter.recipe.recipe import Recipe, checked_recipe
from tiltmeter.recipe.watch import Watch
from tiltmeter.record import Trajectory, at, log_spaced, stack

#: Evaluations per factor of ten before the end of a training of which only the end is judged, and at the end.
SELDOM, LAST = 4, 6
#: Seeds of the trainings that confirm begin here, away from those that people choose.
FRESH = 1000
#: With fewer points than this in a group of the half that judges, nothing is confirmed.
FEWEST_JUDGING = 50


def advise(
    model: nn.Module,
    train: GroupedData,
    held_out: GroupedData,
    recipe: Recipe,
    interventions: Mapping[str, Intervention | Iterable[Intervention]] | None = None,
    *,
    question: Any = None,
    budget: float | None = None,
    method: Rehearsal | Twin | None = None,
    criterion: Criterion | None = None,
    curve: str | None = None,
    watch: Watch | None = None,
    executor: Any = None,
    price: float = PRICE,
    confirm: int = 5,
    progress: bool = True,
) -> Advice:
    """Train a copy plainly and with each intervention, and rank them by the gap that plain training leaves.

    >>> import numpy as np, torch
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(400, 5)).astype("float32")
    >>> data = GroupedData(x, np.sign(x[:, 0] + x[:, 1] * (np.arange(400) < 80)), ["rare"] * 80 + ["common"] * 320)
    >>> network = torch.nn.Sequential(torch.nn.Linear(5, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
    >>> from tiltmeter.interventions import Balanced, GroupDRO
    >>> arms = {"balanced": Balanced(), "group DRO": GroupDRO(0.1)}
    >>> advice = advise(network, data, data, Recipe(lr=0.05, steps=60, batch=32), arms, progress=False)
    >>> sorted(row.name for row in advice.ranked)
    ['balanced', 'group DRO', 'plain']

    Plain training comes first, then one rehearsal for each, all with the same batches, so that their differences are
    paired. They are ranked by the gap that the headline of plain training names, at the last evaluation; a `criterion`
    of `tm.fairness.criteria` ranks otherwise, as `WorstGroupArea()` over the whole training. An intervention is not
    recommended if the error of all, or of any group, clearly rises by more than `price`, or if it only moves how many
    are selected. Half of the held-out points choose; then plain and the first choice are trained `confirm` times afresh
    and judged on the other half, and the change is named only if it is clear over such trainings.

    `budget` are CPU seconds (default: a minute, or 0.6 of all trainings where that is more). Where it does not pay for
    them, narrow copies are trained instead, which only say what to try first; where these promise nothing for the
    network or are too dear as well, as many
    rehearsals are made as it pays for. `executor` trains side by side. What cannot be trained is listed with the
    reason. Settings of interventions are not tuned. Thresholds by group (`GroupThreshold`) are fitted to the training
    points.

    Args:
        model: Network to train; a copy is trained, it stays as it is.
        train: Points to train on, with their groups.
        held_out: Points that judge the model and are never trained on.
        recipe: Training settings: optimiser, learning rate, length, batches, loss.
        interventions: What to try, by name; None: the menu, one setting of each kind that needs no points of its own.
        question: What a positive decision means to a person; its curve ranks. None: the question that the data carry.
        budget: CPU seconds to spend; None: a minute, or 0.6 of all trainings where that is more.
        method: How each training is forecast, `Rehearsal` or `Twin`; None: what the budget pays for.
        criterion: What ranks, one of `tm.fairness.criteria`; None: the worst group in the curve at the last evaluation.
        curve: Curve whose gap ranks; None: the declared rate, that of the question, else error or loss.
        watch: When to evaluate, and which measures to add to the default curves; None: as often as a probe does in the
            last half of the training and seldom before, or throughout where a criterion asks for it.
        executor: Runs the parts side by side: of concurrent.futures, or a Dask client; None: one after the other.
        price: By how much the error, of all or of any group, may rise in what is recommended.
        confirm: How often plain and the first choice are trained afresh to confirm it; 0: not at all.
        progress: Whether the plan and each finished training are printed on stderr.
    """
    checked_flag("progress", progress)
    if confirm:
        checked_count("confirm", confirm)
    checked_number("price", price)
    checked_kind("train", train, GroupedData, "GroupedData")
    checked_kind("held_out", held_out, GroupedData, "GroupedData")
    if question is not None and not isinstance(getattr(question, "asked", None), str):
        raise TypeError(f"`question` should be a tm.Question, or None. Found {type(question).__name__}.")
    if criterion is not None:
        checked_kind("criterion", criterion, Criterion, "one of tm.fairness.criteria")
    if curve is not None:
        checked_kind("curve", curve, str, "the name of a curve")
    checked_recipe(recipe)
    if executor is not None:
        checked_executor(executor)
    if method is not None:
        checked_method(method)
    question = question if question is not None else held_out.question
    if curve is None and question is not None:
        curve = str(question.asked)
    arms = _arms(interventions, recipe.total_steps(len(train)), curve or "loss")
    known = recipe if recipe.order is not None else replace(recipe, order=0)
    clock = time.process_time if executor is None else time.perf_counter
    if watch is None:
        watch = Watch() if criterion is not None else _watch_of_the_end(recipe.total_steps(len(train)))
    task = forecast_task(model, train, held_out, known, watch, clock=clock)
    recipes, unranked = {PLAIN: known}, dict[str, str]()
    for name, arm in arms.items():
        try:
            recipes[name] = replace(known, interventions=(*known.interventions, *arm))
        except (ValueError, TypeError) as refused:  # a second intervention of groups, for example
            unranked[name] = str(refused)
    chosen: Any = _method(task, recipes, budget, workers_of(executor), progress) if method is None else method
    if chosen.narrow:
        runs = _by_twins(task, recipes, chosen, unranked, progress)
        text = chosen.words()
    else:
        limit = None if method is not None else chosen.copies
        runs = _by_rehearsals(task, recipes, limit, unranked, Means(progress, executor))
        text = f"Rehearsed {len(runs)} trainings with the same batches"
    if len(runs) < 2:
        reasons = " ".join(unranked.values())
        raise ValueError(f"None of the interventions can be tried. {reasons}")
    tried = {name: arm for name, arm in arms.items() if name in runs}
    gap, weights = gap_of(runs[PLAIN], curve)
    advice = Advice(advice_card(runs, gap), runs, tried, unranked, text, not chosen.narrow, {}, criterion, gap, weights)
    if chosen.narrow:
        return advice
    choosing = _half(held_out)
    advice = replace(advice, changes=changes(runs, PLAIN, "models", price, choosing, curve))
    if not advice.better:
        return advice
    left = None if method is not None else _budget_left(task, recipes, budget, workers_of(executor))
    means = Means(progress, executor)
    confirmed, why = _confirmed(task, recipes, advice, confirm, price, left, ~choosing, means)
    return replace(advice, confirmed=confirmed, unconfirmed=why)


def _arms(interventions: Any, steps: int, curve: str) -> dict[str, tuple[Intervention, ...]]:
    if interventions is not None and not isinstance(interventions, Mapping):
        raise TypeError(
            '`interventions` should give them by name, as {"balanced": Balanced()}. Found '
            f"{type(interventions).__name__}."
        )
    given = menu(steps, curve) if interventions is None else dict(interventions)
    if PLAIN in given:
        raise ValueError(f"{PLAIN!r} is the training without interventions: give the intervention another name.")
    if not given:
        raise ValueError("`interventions` should hold at least one. Found none.")
    return {
        str(name): checked_interventions(
            (arm,)
            if isinstance(arm, Intervention)
            else checked_list("interventions", arm, "an intervention or several")
        )
        for name, arm in given.items()
    }


def _half(held_out: GroupedData) -> np.ndarray:
    """Half of the held-out points, in every group and label: they choose, and the others judge the choice."""
    rng = np.random.default_rng(0)
    codes = np.unique(
        np.stack([held_out.codes, np.unique(held_out.y, return_inverse=True)[1]]), axis=1, return_inverse=True
    )
    chosen = np.zeros(len(held_out), dtype=bool)
    for kind in range(codes[0].shape[1]):
        members = rng.permutation(np.flatnonzero(codes[1].ravel() == kind))
        chosen[members[: (len(members) + 1) // 2]] = True
    return chosen


def _budget_left(task: ForecastTask, recipes: Mapping[str, Recipe], budget: float | None, workers: int) -> float:
    """CPU seconds that the trainings of all arms leave of the budget."""
    whole = sum(_prices(task, recipes).values()) / workers
    return (max(SECONDS, SHARE * whole) if budget is None else checked_budget(budget)) - whole


def _confirmed(
    task: ForecastTask,
    recipes: Mapping[str, Recipe],
    advice: Advice,
    trainings: int,
    price: float,
    left: float | None,
    judging: np.ndarray,
    means: Means,
) -> tuple[Change | None, str]:
    """The first choice against plain over fresh trainings, on points that did not choose; or why there is none."""
    first = advice.better[0]
    if trainings < FEWEST_SEEDS:
        return None, f"that takes {FEWEST_SEEDS} trainings of each, and {trainings} were asked for."
    people = _fewest(advice, judging)
    if people < FEWEST_JUDGING:
        return None, f"only {people} people of a group are left to judge it."
    seconds = trainings * sum(_prices(task, {name: recipes[name] for name in (PLAIN, first)}).values())
    if left is not None and seconds > left:
        return None, f"{trainings} more trainings of each take about {spell(seconds)}."
    if means.progress:
        print(f"Confirming {first}: {trainings} fresh trainings of each, about {spell(seconds)}.", file=sys.stderr)
    runs: dict[str, list[Trajectory]] = {PLAIN: [], first: []}
    fitted = {name: task.train for name in runs if _fits_thresholds(recipes[name])}
    for number in range(trainings):
        fresh = {name: task.with_recipe(replace(recipes[name], order=FRESH + number)) for name in runs}
        for name, run in rehearse_arms(fresh, FRESH + number, means, fitted):
            if isinstance(run, Exception):
                return None, f"a fresh training ended: {run}"
            runs[name].append(run)
    if min(map(len, runs.values())) < trainings:
        return None, "the fresh trainings were interrupted."
    stacked = {name: stack(some, labels=range(trainings)) for name, some in runs.items()}
    return changes(stacked, PLAIN, "trainings", price, judging, advice.curve).get(first), ""


def _fewest(advice: Advice, judging: np.ndarray) -> int:
    """The points of the smaller side that judge the gap."""
    kept = kept_points(advice.runs[PLAIN])
    curves = () if kept is None else kept.named([advice.curve])
    if kept is None or not curves:
        return 0
    inside = judging if curves[0].where is None else judging & curves[0].where
    counts = np.bincount(kept.codes[inside], minlength=len(kept.groups))
    weights = np.asarray(advice.weights)
    return int(min(counts[weights > 0].sum(), counts[weights < 0].sum()))


def _fits_thresholds(recipe: Recipe) -> bool:
    return any(isinstance(one, GroupThreshold) for one in recipe.interventions)


def _watch_of_the_end(steps: int) -> Watch:
    """The last evaluations that a probe takes, which tell how much a training fluctuates, and a few before."""
    last = Watch().when.steps(steps)[-LAST:]
    return Watch(when=at((*log_spaced(SELDOM).steps(steps), *last)))


def _prices(task: ForecastTask, recipes: Mapping[str, Recipe]) -> dict[str, float]:
    """Seconds of every training, from the time of the plain one and the gradients that an intervention needs."""
    looks = task.price.training - task.price.loop
    groups = len(task.train.groups)
    return {
        name: task.price.loop * cost_of(recipe.interventions, groups, task.steps) + looks
        for name, recipe in recipes.items()
    }


def _method(
    task: ForecastTask, recipes: Mapping[str, Recipe], budget: float | None, workers: int, progress: bool
) -> Rehearsal | Twin:
    """Rehearsals of all arms, or narrow copies, or rehearsals of as many arms as are paid for (`copies`)."""
    prices = _prices(task, recipes)
    whole = sum(prices.values()) / workers
    budget = max(SECONDS, SHARE * whole) if budget is None else checked_budget(budget)
    taken: Rehearsal | Twin = Rehearsal(len(prices))
    seconds = whole
    if whole > budget:
        spent = [sum(list(prices.values())[: number + 1]) / workers for number in range(len(prices))]
        taken, seconds = Rehearsal(max(2, sum(one <= budget for one in spent))), budget
        twin = twin_for(task)  # a copy that promises nothing about this network cannot choose for it
        promising = twin is not None and twin.promise(task) is not None
        if twin is not None and promising and (cost := twin.cost(task) * len(prices)) <= budget:
            taken, seconds = twin, cost
    if progress:
        trainings = seconds / max(task.price.loop, 1e-9)
        what = "narrow copies, which say what to try first" if taken.narrow else "rehearsals"
        print(f"About {spell(seconds)}, {trainings:.2g} trainings: {what}.", file=sys.stderr)
    return taken


def _by_rehearsals(
    task: ForecastTask, recipes: Mapping[str, Recipe], most: int | None, unranked: dict[str, str], means: Means
) -> dict[str, Trajectory]:
    # A threshold is one number for each group: training points can fit it, and those that judge it must not.
    fitted = {name: task.train for name, recipe in recipes.items() if _fits_thresholds(recipe)}
    paid = list(recipes)[:most]
    unranked.update({name: "The budget does not pay for it." for name in recipes if name not in paid})
    tasks = {name: task.with_recipe(recipes[name]) for name in paid}
    runs: dict[str, Trajectory] = {}
    with Progress(len(tasks), lambda done: f"{done} of {len(tasks)} trainings") as tell:
        for name, run in rehearse_arms(tasks, 0, means, fitted):
            if isinstance(run, Exception):
                if name == PLAIN:
                    raise run
                unranked[name] = str(run)
                continue
            account = {"trainings": 1, "order": "the run's own"}
            runs[name] = as_forecast(run, tasks[name], Rehearsal(1), account)
            if means.progress:
                tell(len(runs))
    unranked.update({name: "It was not finished." for name in tasks if name not in runs and name not in unranked})
    return runs


def _by_twins(
    task: ForecastTask, recipes: Mapping[str, Recipe], twin: Twin, unranked: dict[str, str], progress: bool
) -> dict[str, Trajectory]:
    if (refused := twin.refusal(task)) is not None:
        raise ValueError(refused)
    with Progress(len(recipes), lambda done: f"{done} of {len(recipes)} forecasts") as tell:
        runs, refusals = forecasts_by_twins(task.in_one_array, recipes, twin, tell if progress else lambda done: None)  # noqa: ARG005
    if PLAIN in refusals:
        raise refusals[PLAIN]
    unranked.update({name: str(error) for name, error in refusals.items()})
    return runs
