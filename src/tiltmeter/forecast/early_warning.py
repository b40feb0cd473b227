"""EarlyWarning: says during a training whether the lead of a group is going to end."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any

import torch
from torch import nn

from tiltmeter.data.grouped import GroupedData
from tiltmeter.forecast.nowcast import nowcast
from tiltmeter.forecast.outlook import Outlook, outlook_of
from tiltmeter.modules.untouched import put_back, streams
from tiltmeter.recipe.recipe import Recipe, checked_recipe
from tiltmeter.recipe.watch import Watch
from tiltmeter.record import Trajectory, When, log_spaced
from tiltmeter.training.probe import Probe

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
