"""Places: data whose points are their own places, and a network that looks the points up.

A twin answers f(x) = f0(x) + twin(x) - twin0(x), where f0 is the user's untrained network and twin0 the untrained twin.
Both are known beforehand at every point, so a point is passed as its place and the difference is looked up with it: the
training goes through `train` as any other.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from tiltmeter.data.grouped import GroupedData
from tiltmeter.passes.forward import Read, flat_scores

#: Points that a twin answers at once: so many at the most, and of so many numbers together.
TOGETHER, NUMBERS = 1024, 2**20


def by_place(train: GroupedData, look: GroupedData) -> tuple[GroupedData, GroupedData]:
    """The same labels, groups and weights; the points to look at count on from those to train on."""
    first = np.arange(len(train))[:, None]
    return train.with_points(first), look.with_points(len(train) + np.arange(len(look))[:, None])


class Points:
    """All points, and what is added to the scores at each; `fresh` the same with statistics that have seen no batch."""

    __slots__ = ("added", "count", "fresh", "look", "train")

    def __init__(self, train: Tensor, look: Tensor, added: Tensor | None, fresh: Tensor | None = None) -> None:
        self.train, self.look, self.added, self.count = train, look, added, len(train)
        self.fresh = fresh

    def at(self, places: Tensor) -> tuple[Tensor, Tensor | None]:
        """The points at these places, which are all of one kind, and what is added there."""
        first = bool(places[0] < self.count)
        # Of one row after another, this takes a fraction of the time of x[places].
        x = self.train.index_select(0, places) if first else self.look.index_select(0, places - self.count)
        return x, None if self.added is None else self.added.index_select(0, places)


class Shifted(nn.Module):
    """The scores of a network at places among these points, plus what is known of each place."""

    def __init__(
        self,
        network: nn.Module,
        points: Points,
        read: Read | None,
        layer: _BatchNorm | None = None,
        norms: Mapping[str, float] | None = None,
    ) -> None:
        super().__init__()
        self.network, self.points, self._read = network, points, read
        self._layer = [layer]  # in a list: it is a part of the network already
        self.gradient_norms = {f"network.{name}": norm for name, norm in (norms or {}).items()}

    @property
    def together(self) -> int:
        """How many points should be answered at once: calls take long beside small points, large ones fill memory."""
        size = self.points.look[:1].numel()
        return max(1, min(TOGETHER, NUMBERS // max(1, size)))

    def forward(self, places: Tensor) -> Tensor:
        x, added = self.points.at(places[:, 0])
        found = flat_scores(self.network(x), len(x), self._read)
        return found if added is None else found + self._settled(added, places[:, 0])

    def _settled(self, added: Tensor, places: Tensor) -> Tensor:
        """What is added while the statistics of batch normalisation still settle."""
        kept = 0.0 if self.points.fresh is None else unsettled(self, self._layer[0])
        return added if not kept else kept * self.points.fresh[places] + (1.0 - kept) * added  # type: ignore[index]


def unsettled(module: nn.Module, layer: _BatchNorm | None) -> float:
    """The part of its first statistics that batch normalisation has kept: it forgets them at the rate `momentum`."""
    if module.training or layer is None or layer.num_batches_tracked is None:
        return 0.0
    return float((1.0 - (layer.momentum or 0.0)) ** int(layer.num_batches_tracked))
