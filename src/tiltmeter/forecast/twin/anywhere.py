"""Anywhere: a twin plus the difference of both untrained networks at any point, for laws that make new points."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from tiltmeter.forecast.twin.places import unsettled
from tiltmeter.passes.forward import Read, flat_scores


class Pair(NamedTuple):
    """The user's untrained network and the untrained twin; both are only read."""

    wide: nn.Module
    thin: nn.Module

    def difference(self, x: Tensor, read: Read | None) -> Tensor:
        """What the first answers beyond the second."""
        with torch.no_grad():
            wide, thin = (flat_scores(model.eval()(x), len(x), read) for model in self)
            return wide - thin


class ShiftedAnywhere(nn.Module):
    """As `Shifted`, for points themselves: the untrained networks are asked at every point, which costs their passes.

    `settled` are both networks, None if the twin is the network itself; `early` are the same with the statistics of
    batch normalisation that have seen no batch.
    """

    def __init__(
        self,
        network: nn.Module,
        read: Read | None,
        settled: Pair | None = None,
        early: Pair | None = None,
        layer: _BatchNorm | None = None,
        norms: Mapping[str, float] | None = None,
    ) -> None:
        super().__init__()
        self.network, self._read = network, read
        self._others = [settled, early, layer]  # in a list: no parts of this module
        self.gradient_norms = {f"network.{name}": norm for name, norm in (norms or {}).items()}

    def forward(self, x: Tensor) -> Tensor:
        found = flat_scores(self.network(x), len(x), self._read)
        settled, early, layer = self._others
        if settled is None:
            return found
        assert isinstance(settled, Pair)
        added = settled.difference(x, self._read)
        if isinstance(early, Pair) and isinstance(layer, _BatchNorm) and (kept := unsettled(self, layer)):
            added = kept * early.difference(x, self._read) + (1.0 - kept) * added
        return found + added
