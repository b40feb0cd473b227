"""nowcast: the rest of a training that is on its way, who will lead at its end, and an early warning if a lead ends."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import NormalDist
from types import TracebackType
from typing import Any

import numpy as np
import torch
from torch import nn

from tiltmeter.data.grouped import GroupedData
from tiltmeter.forecast.inputs import checked_model
from tiltmeter.forecast.methods import Rehearsal, checked_method
from tiltmeter.forecast.policy import SECONDS, SHARE, checked_budget, twin_for
from tiltmeter.forecast.task import ForecastTask, forecast_task
from tiltmeter.forecast.twin.twins import ResumeState
from tiltmeter.modules.forward import bare
from tiltmeter.modules.untouched import deep_copy, put_back, streams
from tiltmeter.recipe.recipe import Recipe, checked_recipe, different_parts
from tiltmeter.recipe.watch import Watch
from tiltmeter.record import Trajectory, When, load, log_spaced
from tiltmeter.shown_text import NotebookText
from tiltmeter.training.checkpoint import NAME, load_checkpoint
from tiltmeter.training.probe import Probe

#: A nowcast is taken to be wrong by this part of the movement of a gap that it forecasts; fixed before it was judged.
WRONG = 0.2
#: A final leader is named if its lead is so many times the error.
SURE = 2.0
#: How often a leader is named now, among groups that are equal.
LEVEL = 0.05
#: The study of 24 trainings in `tests/forecast/test_early_warning.py`: final leaders named where the end showed one,
#: and how many wrongly; ends of a shown lead that were dated, and how many within a factor 1.5.
NAMED, WRONGLY, DATED, NEAR = 64, 0, 3, 2


def spelled(step: float) -> str:
    """Write a step with three significant figures, never in exponent notation.

    >>> spelled(0.5), spelled(12345.6)
    ('0.5', '12300')
    """
    return f"{float(f'{step:.3g}'):.12g}"


@dataclass(frozen=True)
class Outlook(NotebookText):
    """What can be said at one step of a training about its end.

    `leader` is the group whose lead over every other is shown now: by the standard errors of the held-out points, with
    Bonferroni's correction for all pairs of groups; None if no leader is shown. `lead` is how far the leader at the end
    is forecast to be ahead of the next group, `error` how wrong that may be: the standard error of the held-out points,
    a fifth of how far the gap is forecast to move from here, and half the range of its networks, if there are several.
    `change` is the step near which a lead that is shown is forecast to end; None if it does not.
    """

    step: int
    steps: int
    leader: Hashable | None
    leader_at_end: Hashable
    lead: float
    error: float
    change: float | None

    @property
    def decided(self) -> bool:
        """Whether the lead at the end is larger than its error allows for."""
        return self.lead > SURE * self.error

    @property
    def error_rate(self) -> str:
        """How often such sentences were wrong in the study of the early warning; nothing where nobody is named."""
        if not self.decided:
            return ""
        wrong = f"In a study {WRONGLY} of {NAMED} leaders named so were wrong"
        dated = self.leader not in (None, self.leader_at_end) and self.change is not None
        return wrong + (f", and {NEAR} of {DATED} dates were within a factor 1.5." if dated else ".")

    def __str__(self) -> str:
        if not self.decided:
            return f"Step {self.step}: nothing seen now decides who leads at the end, step {self.steps}."
        if self.leader is None:
            said = (
                f"Step {self.step}: no leader is shown now; {self.leader_at_end} is forecast to lead at the end, step "
                f"{self.steps}."
            )
        elif self.leader_at_end == self.leader:
            said = f"Step {self.step}: {self.leader} leads and is forecast to lead at the end, step {self.steps}."
        else:
            near = "" if self.change is None else f" near step {spelled(self.change)}"
            said = (
                f"Step {self.step}: {self.leader}'s lead will end{near}; {self.leader_at_end} is forecast to lead at "
                f"the end, step {self.steps}."
            )
        return f"{said} {self.error_rate}"


def outlook_of(rest: Trajectory, curve: str = "loss") -> Outlook:
    """What a nowcast says; replicas are averaged.

    >>> import xarray as xr
    >>> from tiltmeter.record import Origin
    >>> coords = {"time": [10, 20, 40], "group": ["a", "b"]}
    >>> loss = xr.DataArray([[0.5, 0.6], [0.4, 0.4], [0.3, 0.1]], dims=("time", "group"), coords=coords)
    >>> print(outlook_of(Trajectory({"loss": loss, "loss_se": 0.001 * loss}, "step", Origin("forecast"))))
    Step 10: a's lead will end near step 20; b is forecast to lead at the end, step 40. In a study ...
    """
    given = rest[curve] if "seed" in rest[curve].dims else rest[curve].expand_dims("seed")
    each = given.transpose("seed", "time", "group").values
    if given.attrs.get("better") == "higher":
        each = -each
    losses, steps = each.mean(0), given["time"].values
    groups, errors = given["group"].values.tolist(), _errors(rest, curve)
    now, end = int(np.argmin(losses[0])), int(np.argmin(losses[-1]))
    others = [place for place in range(len(groups)) if place != end]
    second = min(others, key=lambda place: losses[-1, place])
    gap = losses[:, second] - losses[:, end]
    noise = 0.0 if errors is None else float(np.hypot(errors[-1, end], errors[-1, second]))
    moved = float(np.abs(gap - gap[0]).max())
    apart = float(np.ptp(each[:, -1, second] - each[:, -1, end])) / 2.0
    shown = errors is not None and _is_shown(losses[0], errors[0], now)
    ended = np.argmin(losses, axis=1) != now
    return Outlook(
        int(steps[0]),
        int(steps[-1]),
        groups[now] if shown else None,
        groups[end],
        float(gap[-1]),
        float(np.linalg.norm([noise, WRONG * moved, apart])),
        _between(losses, steps, now, int(np.argmax(ended))) if shown and ended.any() else None,
    )


def _errors(rest: Trajectory, curve: str) -> np.ndarray | None:
    """The standard errors of the held-out points, (evaluations, groups); None where they were not recorded."""
    if f"{curve}_se" not in rest:
        return None
    given = rest[f"{curve}_se"]
    return np.asarray((given.mean("seed") if "seed" in given.dims else given).transpose("time", "group").values)


def _is_shown(losses: np.ndarray, errors: np.ndarray, leader: int) -> bool:
    """Whether a lead over every other group is more than chance, at `LEVEL` for all pairs of groups together."""
    pairs = len(losses) * (len(losses) - 1) // 2
    times = NormalDist().inv_cdf(1.0 - LEVEL / (2 * pairs))
    gaps, noise = np.delete(losses - losses[leader], leader), np.delete(np.hypot(errors, errors[leader]), leader)
    return bool((gaps > times * noise).all())


def _between(losses: np.ndarray, steps: np.ndarray, leader: int, row: int) -> float:
    """The step between two looks at which the leader is overtaken, linear in time."""
    ahead = np.delete(losses, leader, axis=1).min(1) - losses[:, leader]
    before, after = float(ahead[row - 1]), float(ahead[row])
    part = before / (before - after) if before > after else 0.5
    return float(steps[row - 1] + part * (steps[row] - steps[row - 1]))


#: CPU seconds that one forecast of the rest may cost by default.
BUDGET = 20.0
#: Shares of the training after which the rest is forecast.
ASKED = (0.05, 0.1, 0.2, 0.4, 0.7)


class EarlyWarning:
    """A probe that also forecasts the rest of the training from time to time, and says what that means for the groups.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(400, 5)).astype("float32")
    >>> train, held_out = GroupedData(x, np.sign(x[:, 0]), rng.choice(["a", "b"], 400)).split(0.5)
    >>> model, recipe = nn.Linear(5, 1), Recipe(lr=0.1, steps=100, batch=32, order=0)
    >>> optimiser = recipe.make_optimiser(model.parameters())
    >>> with EarlyWarning(Probe(model, held_out), model, train, held_out, recipe, optimiser) as warning:
    ...     for step in range(100):
    ...         warning(step)  # in place of probe(step); the update comes here
    >>> [outlook.step for outlook in warning.outlooks]
    [5, 10, 20, 40, 70]

    At a few steps `nowcast` forecasts the rest from the weights and the optimiser as they are. Each answer is an
    `Outlook`, kept in `outlooks` and passed to `say`. Its text is "b's lead will end near step 4000 ...", "b leads and
    is forecast to lead at the end", or "nothing seen now decides who leads at the end". The training itself is not
    changed, to the bit.

    Each forecast costs at most `budget` CPU seconds where something fits into it (see `nowcast`; `method` as there). A
    training with other batches may end differently: the outlook is for this one, if the recipe has its `order`.

    Args:
        probe: Probe that records the training; call this object in its place.
        model: Network that is trained.
        train: Points to train on, with their groups.
        held_out: Points that judge the model and are never trained on.
        recipe: Training settings; with an `order`, forecasts are of this run.
        optimiser: Optimiser in use; forecasts go on from its state.
        budget: Most CPU seconds of each forecast, where something fits into it.
        method: How to forecast, as in `nowcast`; None: what the budget pays for.
        when: Steps of the forecasts; None: after 5, 10, 20, 40 and 70 % of the training.
        say: Gets every `Outlook`; None: they are only kept in `outlooks`.
    """

    def __init__(
        self,
        probe: Probe,
        model: nn.Module,
        train: GroupedData,
        held_out: GroupedData,
        recipe: Recipe,
        optimiser: torch.optim.Optimizer,
        *,
        budget: float = BUDGET,
        method: Any = None,
        when: When | None = None,
        say: Callable[[Outlook], Any] | None = None,
    ) -> None:
        if not isinstance(probe, Probe):
            raise TypeError(f"`probe` should be the Probe of the training. Found {type(probe).__name__}.")
        self.probe, self._say, self._means = probe, say, (budget, method)
        self._given = model, train, held_out, checked_recipe(recipe)
        self._optimiser = optimiser
        total = recipe.total_steps(len(train))
        asked = {max(1, round(share * total)) for share in ASKED} if when is None else set(when.steps(total))
        self._asked = frozenset(step for step in asked if step < total)
        self._outlooks: list[Outlook] = []

    @property
    def outlooks(self) -> tuple[Outlook, ...]:
        """What was said so far."""
        return tuple(self._outlooks)

    def __call__(self, step: int) -> None:
        """Evaluate, as the probe does, and forecast the rest if this step is one of those asked."""
        self.probe(step)
        if step in self._asked:
            self._outlooks.append(outlook_of(self._rest(step)))
            if self._say is not None:
                self._say(self._outlooks[-1])

    def _rest(self, step: int) -> Trajectory:
        before = streams()
        try:
            watch = Watch(when=log_spaced(20), points=False)
            return nowcast(step, *self._given, *self._means, optimiser=self._optimiser, watch=watch)
        finally:
            put_back(before)

    def __enter__(self) -> EarlyWarning:
        self.probe.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.probe.__exit__(kind, error, trace)


def nowcast(
    run: str | os.PathLike[str] | int,
    model: nn.Module,
    train: GroupedData,
    held_out: GroupedData,
    recipe: Recipe,
    budget: float | None = None,
    method: Any = None,
    *,
    optimiser: torch.optim.Optimizer | None = None,
    watch: Watch = Watch(),
) -> Trajectory:
    """Forecast the rest of a training from where it stands: the curves from this step to the last.

    >>> import numpy as np
    >>> from tempfile import TemporaryDirectory
    >>> from tiltmeter.training.loop import train as train_it
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(400, 5))
    >>> data = GroupedData(x, np.sign(x[:, 0]), rng.choice(["a", "b"], 400)).split(0.5)
    >>> recipe, line = Recipe(torch.optim.Adam, steps=40), nn.Linear(5, 1)
    >>> with TemporaryDirectory() as folder:
    ...     _ = train_it(line, *data, recipe, to=folder + "/run")
    ...     rest = nowcast(folder + "/run", line, *data, replace(recipe, steps=200), method=Rehearsal(1))
    >>> rest["loss"].time.values[[0, -1]]
    array([ 40, 200])

    For a run directory, weights, optimiser and schedule are those of its last checkpoint, the batches those of its
    seed.

    The rest of the training is rehearsed from the weights as they are, if the `budget` (CPU seconds; default: a minute,
    or 0.6 of the rest where that is more) pays for it; else one narrow copy of the network is trained to the end.
    `method` takes `Rehearsal()` or `Twin()` instead. Both promise the end and the second half of the training; with the
    run's own batches a rehearsal is the rest of the run.

    Args:
        run: Directory of a run of `train`; or the number of updates made so far in a loop of your own.
        model: A network of the same kind, not changed; in a loop of your own, the network as it is.
        train: Points to train on, with their groups.
        held_out: Points that judge the model and are never trained on.
        recipe: Training settings: optimiser, learning rate, length, batches, loss.
        budget: CPU seconds to spend; None: a minute, or 0.6 of the rest where that is more.
        method: `Rehearsal()` or `Twin()`; None: what the budget pays for.
        optimiser: The one in use, for a loop of your own; None: that of the last checkpoint.
        watch: When to evaluate, and which measures to add to the default curves.
    """
    if method is not None and not hasattr(checked_method(method), "rest"):
        raise TypeError(f"`method` of a nowcast should be Rehearsal() or Twin(). Found {type(method).__name__}.")
    checked_recipe(recipe)
    checked_model(model)
    if recipe.interventions:
        name = type(recipe.interventions[0]).__name__
        raise ValueError(f"A nowcast applies no interventions, which remember. Found {name}: `train` applies it.")
    if isinstance(run, int):
        own, state = _from_loop(run, model, recipe, optimiser)
    else:
        if optimiser is not None:
            raise ValueError("`optimiser` is read from the run directory: leave it out.")
        own, state, seed = _from_directory(Path(run), model, recipe)
        recipe = replace(recipe, order=seed) if recipe.order is None else recipe
    task = replace(forecast_task(own, train, held_out, recipe, watch), model=own)  # whose optimiser this is
    if state.step >= task.steps:
        raise ValueError(f"The run should have steps to come. Found {state.step} of {task.steps} done.")
    method = rest_method(task, state.step, budget) if method is None else method
    ahead: Trajectory = method.rest(task, state)
    return ahead


def rest_method(task: ForecastTask, step: int, budget: float | None) -> Any:
    """A rehearsal of the rest if the budget pays for it, else one narrow copy where it can be cut."""
    left = task.price.training * (1.0 - step / task.steps)
    budget = max(SECONDS, SHARE * left) if budget is None else checked_budget(budget)
    if left <= budget:
        return Rehearsal(1 if task.order_known else min(3, int(budget // max(left, 1e-9))))
    return twin_for(task) or Rehearsal(1)


def _from_loop(step: int, model: nn.Module, recipe: Recipe, optimiser: Any) -> tuple[nn.Module, ResumeState]:
    """A copy of the network and of its optimiser, as they are."""
    if step < 0:
        raise ValueError(f"`run` should be a run directory, or how many updates were made. Found run = {step}.")
    if not isinstance(optimiser, torch.optim.Optimizer):
        raise TypeError(
            "`optimiser` should be the one in use, whose memory decides the next steps. Found "
            f"{'none' if optimiser is None else type(optimiser).__name__}."
        )
    own = deep_copy(bare(model))
    made = recipe.make_optimiser(own.parameters())
    try:
        made.load_state_dict(optimiser.state_dict())
    except (ValueError, KeyError) as error:
        raise ValueError(f"`optimiser` should be that of the recipe. Found: {error}") from None
    if type(made) is not type(optimiser):
        raise ValueError(
            f"`optimiser` should be that of the recipe, {type(made).__name__}. Found {type(optimiser).__name__}."
        )
    state: Mapping[str, Any] = {}
    scheduling = recipe.scheduling(recipe.make_optimiser(own.parameters()))
    if scheduling.state_dict():
        with warnings.catch_warnings():  # torch misses the updates, which another optimiser has made
            warnings.simplefilter("ignore", UserWarning)
            for _ in range(step):
                scheduling.after()
        state = scheduling.state_dict()
    return own, ResumeState(step, made, state)


def _from_directory(place: Path, model: nn.Module, recipe: Recipe) -> tuple[nn.Module, ResumeState, int]:
    """What the last checkpoint of a run holds, and the seed of the run."""
    if not (place / NAME).exists():
        raise FileNotFoundError(
            f"{place} holds no checkpoint: `train(..., to=..., checkpoint=tm.record.every(100))` keeps them."
        )
    origin = load(place).origin
    noted: Any = origin.settings.get("recipe")
    try:
        different = different_parts(replace(Recipe.from_json(noted), steps=recipe.steps, epochs=recipe.epochs), recipe)
    except (KeyError, TypeError, ValueError):
        different = []  # a recipe that cannot be rebuilt cannot be compared
    if different:
        raise ValueError(f"The run was made by another recipe: `{different[0]}` differs.")
    own = deep_copy(bare(model))
    made = recipe.make_optimiser(own.parameters())
    scheduling = recipe.scheduling(made)
    before = streams()
    try:
        step = load_checkpoint(place, own, made, scheduling)
    finally:
        put_back(before)
    return own, ResumeState(step, made, scheduling.state_dict()), int(origin.seeds[0]) if origin.seeds else 0
