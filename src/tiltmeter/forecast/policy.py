"""The policy: which method a budget buys, what it costs and what it will promise, said before anything is paid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import nn

from tiltmeter.forecast.bands import where
from tiltmeter.forecast.methods import Linear, Pilot, Preview, Rehearsal, Twin
from tiltmeter.forecast.task import ForecastTask, modules_of
from tiltmeter.progress import spell
from tiltmeter.shown_text import NotebookText, quoted

#: To cut and time a narrow copy takes a second or more: with fewer seconds left, and for trainings that take less than
#: ten times as long, none is tried.
WORTH_CUTTING = 3.0
#: The least budget in seconds: to time a training and to evaluate a network takes up to a second, whatever it is.
LEAST = 2.0
#: The default budget: so many seconds, or this share of the training where that is more.
SECONDS, SHARE = 60.0, 0.6
#: No more copies than this are rehearsed by themselves.
MOST = 5
#: Networks of more hidden dimensions than this, none wider than that, keep half of their units in a narrow copy; so do
#: those with batch normalisation, whose statistics differ most between few units. On six tasks of development the gap
#: of a copy correlated with that of the training by 0.94 (median) with an eighth, 0.98 with a quarter, 0.99 with half.
DEEP, NARROW = 2, 256


@dataclass(frozen=True)
class Choice(NotebookText):
    """What a forecast will do: its method (`words` says it plainly), its price and what it will promise.

    A training is the user's loop without evaluations. `weights` says whether the forecast is of these initial weights
    or of any.
    """

    method: Any
    words: str
    seconds: float
    trainings: float
    promise: str
    weights: str = "these initial weights"
    why: str = ""

    def __str__(self) -> str:
        price = f"about {spell(self.seconds)}, {self.trainings:.2g} trainings"
        why = f" {self.why}" if self.why else ""
        return f"{self.words}: {price}. It promises {self.promise}, from {self.weights}.{why}"

    def to_json(self) -> dict[str, Any]:
        return {
            "method": self.words,
            "seconds": self.seconds,
            "trainings": self.trainings,
            "promise": self.promise,
            "why": self.why,
        }


def choose(task: ForecastTask, budget: float | None = None, workers: int = 1) -> Choice:
    """The best forecast that the budget (seconds) buys.

    A linear head is followed exactly. Else the training is timed, and as many rehearsals are taken as the budget pays
    for, up to five; with the run's own batches one is enough. Else one narrow copy; else the preview of the table, if
    there is one that holds; else the beginning of the training, which promises nothing.
    """
    started = task.clock()

    def chosen(method: Any, why: str = "", cost: float | None = None) -> Choice:
        """The choice; what it took to choose is part of its price."""
        return choice_of(task, method, why, task.clock() - started, cost)

    linear = Linear()
    if linear.refusal(task) is None:
        return chosen(linear, "Only a linear head learns: exact.")
    training = task.price.training
    budget = default_budget(task) if budget is None else checked_budget(budget)
    affordable = int(budget // training) * workers if training > 0 else MOST
    if (refused := Rehearsal(1).refusal(task)) is None and affordable >= 1:
        return chosen(Rehearsal(1 if task.order_known else min(MOST, affordable)))
    worth = refused is not None or max(budget - (task.clock() - started), training / 10) > WORTH_CUTTING
    twin = twin_for(task) if worth else None
    needed = {"a rehearsal": training} if refused is None else {}
    if twin is not None:
        cost = twin.cost(task)
        needed["a narrow copy"] = cost
        if cost + task.clock() - started <= budget:
            return chosen(twin, cost=cost)
    if refused is not None:
        raise ValueError(refused)
    cheapest = min(needed, key=lambda name: needed[name])
    why = f"A budget of {needed[cheapest] * 1.05:.2g} s buys {cheapest}, which promises the end."
    view = Preview()
    if not task.order_known and view.refusal(task) is None:
        return chosen(view, why.replace(", which promises the end", ""))
    return chosen(Pilot(_affordable_steps(task, budget - (task.clock() - started))), why)


def _affordable_steps(task: ForecastTask, seconds: float) -> int:
    """How many steps of the training, with their evaluations, these seconds pay for; at least one."""
    steps = max(1, min(task.steps, int(task.steps * seconds / max(task.price.training, 1e-9))))
    while steps > 1 and Pilot(steps).cost(task) > seconds:  # evaluations are closer together at the beginning
        steps = max(1, int(0.7 * steps))
    return steps


def default_budget(task: ForecastTask) -> float:
    """The larger of a minute and a part of the training."""
    return max(SECONDS, SHARE * task.price.training)


def checked_budget(budget: Any) -> float:
    if isinstance(budget, bool) or not isinstance(budget, (int, float)) or not 0 < budget < 1e300:
        raise ValueError(f"`budget` should be a positive number of seconds. Found budget = {quoted(budget)}.")
    if budget < LEAST:
        raise ValueError(
            f"`budget` should be at least {LEAST:g} seconds: to time a training takes up to one. "
            f"Found budget = {budget!r}."
        )
    return float(budget)


def choice_of(task: ForecastTask, method: Any, why: str = "", spent: float = 0.0, cost: float | None = None) -> Choice:
    """A method with its price and its promise, as far as they are known before.

    `spent` are seconds already paid, `cost` those of the method where they are known.
    """
    seconds = (method.cost(task) if cost is None else cost) + spent
    loop = task.price.loop
    weights = "any initial weights" if getattr(method, "vary", "order") == "weights" else "these initial weights"
    promise = method.promise(task)
    said = "nothing about the end" if promise is None else f"the gaps between groups {where(promise.since)}"
    return Choice(method, method.words(task), seconds, seconds / max(loop, 1e-9), said, weights, why)


def twin_for(task: ForecastTask) -> Twin | None:
    """One narrow copy of the share that suits this network; None where it cannot be cut."""
    dense_norm = task.has_batch_normalisation and not any(modules_of(task.model, nn.modules.conv._ConvNd))
    kinds = (nn.modules.conv._ConvNd, nn.MultiheadAttention, nn.RNNBase)
    share = 1 / 4 if dense_norm or any(modules_of(task.model, *kinds)) else 1 / 8
    if Twin(share).refusal(task) is not None:
        return None
    sizes = [count for _, count in task.cut.by_chance(share).cut.values()]
    if max(sizes) <= NARROW and (dense_norm or (share == 1 / 8 and len(sizes) > DEEP)):
        share = 1 / 2
    return Twin(share)
