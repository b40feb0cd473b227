"""Twins: narrow networks cut from the user's own, scaled so that they learn as it does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from tiltmeter.forecast.batch_statistics import fresh
from tiltmeter.forecast.optimiser_kind import Kind, kind_of
from tiltmeter.forecast.twin.anywhere import Pair, ShiftedAnywhere
from tiltmeter.forecast.twin.cut import Cut, cut
from tiltmeter.forecast.twin.layers import Shares
from tiltmeter.forecast.twin.places import Points, Shifted
from tiltmeter.forecast.twin.rule import Scale, scale_of
from tiltmeter.forecast.twin.scaled_recipe import scaled_recipe
from tiltmeter.forecast.twin.untrained import Untrained
from tiltmeter.passes.deep_copy import deep_copy
from tiltmeter.passes.forward import Read
from tiltmeter.recipe.recipe import Recipe


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

    def recipe(self, recipe: Recipe, steps: int, kind: Kind | None = None) -> Recipe:
        """The recipe under which the twin learns as the wide network does under this one.

        `kind` is that of its optimiser, where it is known already.
        """
        if self.whole:
            return recipe
        return scaled_recipe(recipe, self.network, self.scales, kind or self.kind(recipe), steps)


def scaled_twin(model: nn.Module, x: Tensor, share: float, seed: int, outputs: int, read: Read | None) -> ScaledTwin:
    """Cut a twin and scale its weights by the rule; `outputs` is how many scores the network gives a point."""
    return scaled(cut(model, x, share, seed, read), outputs)


def scaled(found: Cut, outputs: int) -> ScaledTwin:
    """Scale the weights of what was cut out of a network, in place."""
    scales = {
        name: scale_of(shares, _reads_out(found.model, name, shares, outputs)) for name, shares in found.shares.items()
    }
    with torch.no_grad():
        for name, parameter in found.model.named_parameters():
            if name in scales:
                parameter.mul_(scales[name].weight)
    if scales:  # convolutions of few channels are faster where the channels of a place lie together
        found.model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return ScaledTwin(found.model, scales, found)


def shifted(wide: Untrained, twin: ScaledTwin) -> Shifted:
    """The twin plus what the user's untrained network says beyond the untrained twin, at every point."""
    if twin.whole:
        return Shifted(twin.network, Points(*wide.x, None), wide.read)
    names = list(fresh(twin.network))
    added, early = wide.beyond(twin.network), wide.early_beyond(twin.network)
    layer: Any = twin.network.get_submodule(names[0]) if names else None
    return Shifted(twin.network, Points(*wide.x, added, early), wide.read, layer, twin.norms)


def shifted_anywhere(wide: Untrained, twin: ScaledTwin) -> ShiftedAnywhere:
    """The same for points that are not known yet."""
    if twin.whole:
        return ShiftedAnywhere(twin.network, wide.read)
    names = list(fresh(twin.network))
    early = Pair(deep_copy(wide.model), deep_copy(twin.network)) if names else None
    settled = Pair(wide.gathered(wide.model), wide.gathered(twin.network))
    layer: Any = twin.network.get_submodule(names[0]) if names else None
    return ShiftedAnywhere(twin.network, wide.read, settled, early, layer, twin.norms)


def _reads_out(model: nn.Module, name: str, shares: Shares, outputs: int) -> bool:
    """Whether a parameter gives as many numbers as the network: its units on that side are the outputs."""
    return shares.out == 1.0 and shares.into < 1.0 and model.get_parameter(name).shape[0] == outputs
