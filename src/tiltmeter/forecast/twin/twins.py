"""Twins: narrow networks cut from the user's own, scaled so that they learn as it does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from tiltmeter.data.grouped import GroupedData
from tiltmeter.forecast.batch_statistics import fresh, gather_statistics
from tiltmeter.forecast.optimiser_kind import Kind, kind_of
from tiltmeter.forecast.twin.anywhere import Pair, ShiftedAnywhere
from tiltmeter.forecast.twin.cut import Cut, cut
from tiltmeter.forecast.twin.layers import Shares
from tiltmeter.forecast.twin.places import Points, Shifted, all_scores
from tiltmeter.forecast.twin.rule import Scale, scale_of
from tiltmeter.forecast.twin.scaled_recipe import scaled_recipe
from tiltmeter.passes.deep_copy import deep_copy
from tiltmeter.passes.forward import Read
from tiltmeter.recipe.recipe import Recipe

#: Points whose statistics batch normalisation gets before the difference of both networks is taken.
GATHERED = 2500


@dataclass(frozen=True, eq=False)
class ScaledTwin:
    """A narrow network with its weights scaled, the rule of every parameter, and what was cut."""

    network: nn.Module
    scales: dict[str, Scale]
    cut: Cut

    @property
    def whole(self) -> bool:
        """Whether nothing was cut: the twin is the network itself."""
        return not self.scales

    @property
    def norms(self) -> dict[str, float]:
        """What the square of every parameter's gradient counts in the norm of the wide network."""
        return {name: scale.norm for name, scale in self.scales.items()}

    def scale(self, name: str) -> Scale:
        """The rule of this parameter."""
        return self.scales.get(name, Scale())

    def kind(self, recipe: Recipe) -> Kind:
        """How the optimiser of this recipe takes its steps; one that no rule is known for is refused."""
        return kind_of(recipe.make_optimiser, [p for p in self.network.parameters() if p.requires_grad], "A twin")

    def recipe(self, recipe: Recipe, steps: int) -> Recipe:
        """The recipe under which the twin learns as the wide network does under this one."""
        if self.whole:
            return recipe
        return scaled_recipe(recipe, self.network, self.scales, self.kind(recipe), steps)


def scaled_twin(model: nn.Module, x: Tensor, share: float, seed: int, outputs: int, read: Read | None) -> ScaledTwin:
    """Cut a twin and scale its weights by the rule; `outputs` is how many scores the network gives a point."""
    found = cut(model, x, share, seed, read)
    scales = {
        name: scale_of(shares, _reads_out(found.model, name, shares, outputs)) for name, shares in found.shares.items()
    }
    with torch.no_grad():
        for name, parameter in found.model.named_parameters():
            if name in scales:
                parameter.mul_(scales[name].weight)
    return ScaledTwin(found.model, scales, found)


def shifted(
    model: nn.Module, twin: ScaledTwin, train: GroupedData, x: tuple[Tensor, Tensor], read: Read | None
) -> Shifted:
    """The twin plus what the user's untrained network says beyond the untrained twin, at every point.

    Batch normalisation that has seen no batch gets the statistics of the data first, in copies of both.
    """
    if twin.whole:
        return Shifted(twin.network, Points(*x, None), read)
    settled, early, layer = _pairs(model, twin, train, read)
    added, fresh = (None if pair is None else _difference(pair, x, read) for pair in (settled, early))
    return Shifted(twin.network, Points(*x, added, fresh), read, layer, twin.norms)


def shifted_anywhere(model: nn.Module, twin: ScaledTwin, train: GroupedData, read: Read | None) -> ShiftedAnywhere:
    """The same for points that are not known yet."""
    if twin.whole:
        return ShiftedAnywhere(twin.network, read)
    return ShiftedAnywhere(twin.network, read, *_pairs(model, twin, train, read), twin.norms)


def _pairs(
    model: nn.Module, twin: ScaledTwin, train: GroupedData, read: Read | None
) -> tuple[Pair, Pair | None, _BatchNorm | None]:
    """Both untrained networks with the statistics of the data; where these are new, also without, and a layer."""
    names = list(fresh(twin.network))
    early = Pair(deep_copy(model), deep_copy(twin.network)) if names else None
    settled = Pair(deep_copy(model), deep_copy(twin.network))
    for network in settled:
        gather_statistics(network, train, GATHERED, read)
    layer: Any = twin.network.get_submodule(names[0]) if names else None
    return settled, early, layer


def _difference(pair: Pair, x: tuple[Tensor, Tensor], read: Read | None) -> Tensor:
    return all_scores(pair.wide, x, read) - all_scores(pair.thin, x, read)


def _reads_out(model: nn.Module, name: str, shares: Shares, outputs: int) -> bool:
    """Whether a parameter gives as many numbers as the network: its units on that side are the outputs."""
    return shares.out == 1.0 and shares.into < 1.0 and model.get_parameter(name).shape[0] == outputs
