"""ShiftedStack: the twins of one or several recipes as one stack, at places among the points."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from tiltmeter.forecast.score_slopes import ScoreSlopes
from tiltmeter.forecast.twin.joined_update import JoinedUpdate
from tiltmeter.forecast.twin.places import Shifted
from tiltmeter.forecast.twin.quick_gradients import QuickGradients
from tiltmeter.training.stacked import Stacked


class ShiftedStack:
    """Several chains at once, plus what is known of each place for each of them.

    The members are all chains for the first recipe, then all for the next, and so on: `copies` recipes in all. With
    `shared`, all members have the same batch.
    """

    def __init__(self, chains: Sequence[nn.Module], shifts: Sequence[Shifted], shared: bool, copies: int = 1) -> None:
        self._shared, self._copies, self._chains = shared, copies, len(chains)
        self._stacked = Stacked([one for _ in range(copies) for one in chains])
        points = shifts[0].points
        self._count = points.count
        self._x = points.train.flatten(1), points.look.flatten(1)
        added = [shift.points.added for shift in shifts]
        known = [one.reshape(len(one), -1) for one in added if one is not None]
        # (points, chains, outputs), the same for all recipes: what is added at a point lies together.
        self._added = torch.stack(known, 1) if known else None

    @property
    def runs(self) -> int:
        """How many members there are."""
        return self._stacked.runs

    @property
    def parameters(self) -> dict[str, Tensor]:
        """Those of all members, stacked."""
        return self._stacked.parameters

    @property
    def quick(self) -> bool:
        """Whether the derivatives of all layers are known."""
        return QuickGradients.known(self._stacked.layers)

    def members(self, number: int) -> slice:
        """The places of a recipe's members in the stack."""
        return slice(number * self._chains, (number + 1) * self._chains)

    def of_recipe(self, number: int) -> ShiftedStack:
        """The members of one recipe by themselves, on the same memory: they move with the stack."""
        if self._copies == 1:
            return self
        own = copy.copy(self)
        own._copies, own._stacked = 1, copy.copy(self._stacked)
        part = self.members(number)
        own._stacked.parameters = {name: value[part] for name, value in self._stacked.parameters.items()}
        own._stacked.runs = self._chains
        return own

    def differentiate(self, places: Tensor, loss: Callable[[Tensor], Tensor]) -> Any:
        """As `Stacked.differentiate`, at places (runs, batch, 1)."""
        x, added = self._gathered(places[..., 0])
        if added is None:
            return self._stacked.differentiate(x, loss)
        return self._stacked.differentiate(x, lambda outputs: loss(outputs + added))

    def look_scores(self, chunk: int) -> Tensor:
        """The scores of all runs at all points to look at, (runs, points, outputs)."""
        parts = [self._stacked.evaluate(part) for part in torch.split(self._x[1], chunk)]
        found = parts[0] if len(parts) == 1 else torch.cat(parts, 1)
        return found if self._added is None else found.add_(self._for_all(self._added[self._count :]))

    def evaluate(self, places: Tensor) -> Tensor:
        """As `Stacked.evaluate`, at places (points, 1) to look at or to train on."""
        where = places[:, 0]
        first = bool(where[0] < self._count)
        found = self._stacked.evaluate(self._x[0][where] if first else self._x[1][where - self._count])
        return found if self._added is None else found + self._for_all(self._added[where])

    @torch.no_grad()
    def train(
        self,
        slopes: ScoreSlopes,
        update: JoinedUpdate,
        batches: Iterator[Tensor],
        looks: Sequence[int],
        look: Callable[[int], bool],
    ) -> None:
        """As `train_stacked`, where the derivatives of the loss and of all layers are known."""
        differentiate = QuickGradients(self._stacked, slopes)
        take = update.bound(self.parameters, differentiate.gradients)
        device, step = self._x[0].device, 0
        for stop in looks:
            while step < stop:
                places = next(batches).to(device)
                differentiate(*self._gathered(places), places)
                take(step)
                step += 1
            if not look(step):
                return

    def _gathered(self, places: Tensor) -> tuple[Tensor, Tensor | None]:
        """The points at places (runs or 1, batch), and what is added to their scores."""
        if self._shared:
            x = self._x[0].index_select(0, places[0])[None]
            return x, None if self._added is None else self._for_all(self._added.index_select(0, places[0]))
        chains = torch.arange(self._chains, device=places.device).repeat(self._copies)[:, None]
        return self._x[0][places], None if self._added is None else self._added[places, chains]

    def _for_all(self, added: Tensor) -> Tensor:
        """What is known of some points for every chain, as (members, points, outputs)."""
        each = added.transpose(0, 1)
        return each if self._copies == 1 else each.repeat(self._copies, 1, 1)
