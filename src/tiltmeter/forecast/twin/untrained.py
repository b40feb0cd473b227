"""Untrained: what the wide network answers before training, beyond a twin, found once and only where needed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor, nn

from tiltmeter.data.grouped import GroupedData
from tiltmeter.forecast.batch_statistics import fresh, gather_statistics
from tiltmeter.modules.forward import Read, scores
from tiltmeter.modules.untouched import deep_copy, untouched
from tiltmeter.recipe.recipe import Recipe


@contextmanager
def unfused(network: nn.Module) -> Iterator[None]:
    """Inside this context, torch does not replace an encoder layer on the CPU by its fused one.

    >>> with unfused(nn.Linear(1, 1)):
    ...     torch.backends.mha.get_fastpath_enabled()
    False

    For layers of 16 to 64 features the fused one takes a third longer. Scores differ in the last digits.
    """
    before = torch.backends.mha.get_fastpath_enabled()
    on_cpu = next((parameter.device.type for parameter in network.parameters()), "cpu") == "cpu"
    torch.backends.mha.set_fastpath_enabled(before and not on_cpu)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(before)


#: Principal directions of the inputs that the line follows.
DIRECTIONS = 64


class StraightFit:
    """A ridge regression on principal components, which are found once for all values to come.

    >>> x = torch.randn(300, 5, generator=torch.Generator().manual_seed(0))
    >>> line = StraightFit(x[:200])
    >>> values = x @ torch.ones(5, 1) + 3.0
    >>> bool((line.to(values[:200])(x[200:]) - values[200:]).abs().max() < 0.05)
    True
    """

    def __init__(self, x: Tensor) -> None:
        flat = x.flatten(1).double() if x.dtype == torch.float64 else x.flatten(1).float()
        self._mean = flat.mean(0)
        centred = flat - self._mean
        with torch.random.fork_rng(devices=[]):
            # Not torch.manual_seed: that would also seed the streams of other devices, which are not put back.
            torch.default_generator.manual_seed(0)
            _, *found = torch.pca_lowrank(centred.cpu(), min(DIRECTIONS, *flat.shape), center=False)
        sizes, directions = (one.to(flat) for one in found)
        kept = sizes > 1e-6 * sizes.max().clamp(min=1e-30)
        self._directions = directions[:, kept] / sizes[kept] * len(flat) ** 0.5
        self._own = self._components(flat)

    def to(self, values: Tensor) -> Callable[[Tensor], Tensor]:
        """The line through these values (points, outputs) at the points of this fit: a function of other points."""
        own = self._own.double()
        ridge = torch.full((own.shape[1],), 1e-3 * len(own), dtype=own.dtype, device=own.device)
        ridge[0] = 0.0  # the mean is no direction
        found = torch.linalg.solve(own.T @ own + torch.diag(ridge), own.T @ values.double()).to(self._mean)
        # In the inputs themselves: one product instead of one for each direction. The numbers of an output lie
        # together, because torch multiplies by a few such rows in a fourth of the time that a few columns take.
        slopes = (self._directions @ found[1:]).T.contiguous()
        start = found[0] - slopes @ self._mean
        return lambda x: nn.functional.linear(x.flatten(1).to(self._mean), slopes, start).to(values)

    def _components(self, flat: Tensor) -> Tensor:
        ones = torch.ones(len(flat), 1, dtype=flat.dtype, device=flat.device)
        return torch.cat([ones, (flat - self._mean) @ self._directions], 1)


#: Points whose statistics batch normalisation gets before the difference of both networks is taken.
GATHERED = 512
#: Points that a network answers together.
CHUNK = 256
#: The first points to train on are always known: losses are tried on them.
TRIED = 8
#: Of more points than `MANY`, `ASKED` are asked and the others told by a straight line, if that leaves at most `NEAR`
#: (root mean square, in units of a score) on points that it was not fitted to. What a twin adds at the points it learns
#: from may be that rough: on tasks of development a line leaves .1 to .3 for MLPs and attention and .45 for
#: convolutions, a twentieth more than one through four times as many points, and gaps were told as well.
MANY, ASKED, NEAR = 4096, 512, 0.5


class Untrained:
    """A network and its points; `seen` are the places of those that are trained on (None: all).

    Batch normalisation that has seen no batch gets the statistics of the data first, in a copy. With `rough`, what the
    network answers beyond a twin may be estimated at points to train on; at points to look at it never is.
    """

    def __init__(
        self,
        model: nn.Module,
        train: GroupedData,
        x: tuple[Tensor, Tensor],
        read: Read | None,
        seen: np.ndarray | None = None,
        rough: bool = False,
    ) -> None:
        self.model, self.train, self.x, self.read = model, train, x, read
        self._seen = torch.arange(len(x[0])) if seen is None else torch.as_tensor(seen)
        self._line = _line(x[0], self._seen) if rough else None
        self._rough = rough
        self._known: dict[str, Tensor] = {}

    def beyond(self, twin: nn.Module) -> Tensor:
        """What it answers beyond a twin, at points to train on and then to look at; not a number where none is seen.

        Both have the statistics of the data where batch normalisation has seen no batch.
        """
        settled = self.gathered(twin) if list(fresh(twin)) else twin
        if self._line is not None:
            found = self._difference("asked", settled, self._line.places)
            if self._line.fill(found, self.x[0], self._seen):
                return found
            self._line = None
        return self._difference("seen", settled, self._seen)

    def early_beyond(self, twin: nn.Module) -> Tensor | None:
        """The same before any batch, where statistics are still to be gathered; None if there are none.

        These are used in evaluations alone, so of a `rough` one only the first points to train on are known.
        """
        if not list(fresh(twin)):
            return None
        places = self._seen[: min(TRIED, len(self._seen))] if self._rough else self._seen
        return self._difference("early", twin, places, gather=False)

    def gathered(self, network: nn.Module) -> nn.Module:
        """A copy of a network with the statistics of the data."""
        own = deep_copy(network)
        gather_statistics(own, self.train, GATHERED, self.read)
        return own

    def _difference(self, name: str, twin: nn.Module, places: Tensor, gather: bool = True) -> Tensor:
        """Its scores, which are found once, less those of a twin."""
        if name not in self._known:
            self._known[name] = self._scores(self.gathered(self.model) if gather else self.model, places)
        return self._known[name] - self._scores(twin, places)

    def _scores(self, network: nn.Module, places: Tensor) -> Tensor:
        """The scores of a network at these places among the points to train on, and at all points to look at."""
        train, held_out = self.x
        with untouched(network), unfused(network):
            parts = [train[some] for some in torch.split(places, CHUNK)]
            first, then = (
                torch.cat([s for part in each for _, s in scores(network, part, self.read, CHUNK)])
                for each in (parts, [held_out])
            )
        whole = first.new_full((len(train), *first.shape[1:]), math.nan)
        whole[places] = first
        return torch.cat([whole, then])


class _Line:
    """The points at which networks are asked, and the line that tells the others."""

    def __init__(self, x: Tensor, places: Tensor) -> None:
        self.places = places
        self._fitted = places[: ASKED * 3 // 4]
        self._line = StraightFit(x[self._fitted])

    def fill(self, found: Tensor, x: Tensor, seen: Tensor) -> bool:
        """Write what is missing at these places, if points kept back are met near enough."""
        values = found[: len(x)].reshape(len(x), -1)  # the same memory
        kept_back = self.places[len(self._fitted) :]
        line = self._line.to(values[self._fitted])
        off = line(x[kept_back]) - values[kept_back]
        if not float(off.square().mean().sqrt()) <= NEAR:
            return False
        missing = torch.zeros(len(x), dtype=torch.bool)
        missing[seen] = True
        missing[self.places] = False
        if 4 * len(seen) < len(x):
            for some in torch.split(missing.nonzero()[:, 0], 16 * CHUNK):
                values[some] = line(x[some])
            return True
        for first in range(0, len(x), 16 * CHUNK):  # of most points: to pick them out takes longer than the line
            part = slice(first, first + 16 * CHUNK)
            values[part] = torch.where(missing[part, None].to(x.device), line(x[part]), values[part])
        return True


def _line(x: Tensor, seen: Tensor) -> _Line | None:
    """The line for these points, if there are enough of them to be worth it."""
    if len(seen) <= MANY or not x.is_floating_point():
        return None
    drawn = torch.randperm(len(seen) - TRIED, generator=torch.Generator().manual_seed(0))[: ASKED - TRIED] + TRIED
    return _Line(x, torch.cat([seen[:TRIED], seen[drawn]]))


def seen_places(train: GroupedData, recipe: Recipe, seeds: Sequence[int]) -> np.ndarray | None:
    """The places of all points that these orders show, and of the first few; None if that is nearly all of them.

    >>> data = GroupedData(np.zeros((1000, 1)), np.zeros(1000), np.zeros(1000))
    >>> len(seen_places(data, Recipe(lr=0.1, steps=3, batch=10, order=0), [0])) <= 30 + TRIED
    True
    """
    size, steps = recipe.batch_size(len(train)), recipe.total_steps(len(train))
    if steps * size >= 3 * len(train):
        return None
    sampling = recipe.batches(train)
    each = sampling.batches(train, size)
    places = [np.arange(min(TRIED, len(train)))]
    for seed in sorted({recipe.batch_seed(seed) for seed in seeds}):
        for number in range(-(-steps // each)):
            left = (steps - number * each) * size
            places.append(sampling.stretch(train, size, seed, number)[:left])
    return np.unique(np.concatenate(places))
