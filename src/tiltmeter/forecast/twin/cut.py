"""cut: a narrow network of the same architecture, with representative units of a wide one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn

from tiltmeter.forecast.twin.layers import Coupled, Kept, Shares, coupled_units, narrow
from tiltmeter.forecast.twin.representative import UnitResponses, drawn
from tiltmeter.modules.forward import Read, flat_scores
from tiltmeter.modules.untouched import deep_copy

#: Points on which a network is traced.
TRACED = 2

#: For every dimension of a network, in the order in which they are found, the units that stay; None: all.
Units: TypeAlias = tuple[np.ndarray | None, ...]


@dataclass(frozen=True, eq=False)
class Cut:
    """A narrow network, and for each of its parameters the shares that stay; those that are not named are whole.

    `cut` says how many units stay of how many, dimension by dimension; `whole` names layers whose units could not be
    cut. Weights are those of the wide network, not yet scaled. `units` are those that were to be kept.
    """

    model: nn.Module
    shares: dict[str, Shares]
    cut: dict[str, tuple[int, int]]
    whole: tuple[str, ...]
    units: Units


def cut(model: nn.Module, x: Tensor, share: float, seed: int, read: Read | None = None) -> Cut:
    """Keep this share of the units of every hidden dimension; at least 8 of each, and two heads of attention.

    >>> found = cut(nn.Sequential(nn.Linear(5, 64), nn.ReLU(), nn.Linear(64, 1)), torch.zeros(2, 5), 0.25, seed=0)
    >>> found.model[0], found.cut
    (Linear(in_features=5, out_features=16, bias=True), {'0': (16, 64)})

    `x` are points at which units are compared, to keep representative ones; of a few points, units are drawn by chance.
    What cannot be cut stays at full width.
    """
    return Cutter(model, x, read)(share, seed)


class Cutter:
    """Cuts twins of any share and seed out of one network, which is traced and watched once, when it is first needed.

    The network should not change as long as it is used.
    """

    def __init__(self, model: nn.Module, x: Tensor, read: Read | None = None) -> None:
        self._model, self._x, self._read = model, x, read

    def __call__(self, share: float, seed: int) -> Cut:
        """A twin of representative units, which `seed` varies."""
        rng = np.random.default_rng(seed)
        return self.keep(self._units(share, lambda number, one, count: self._responses.chosen(number, one, count, rng)))

    def by_chance(self, share: float) -> Cut:
        """A twin of as many units drawn by chance, which says at once what can be cut and what is left to do."""
        rng = np.random.default_rng(0)
        return self.keep(self._units(share, lambda _, one, count: one.chosen(count, drawn(rng))))

    def keep(self, units: Units) -> Cut:
        """The twin of these units."""
        if all(kept is None for kept in units):
            return Cut(deep_copy(self._model), {}, {}, (), units)
        return _cut(self._model, self._traced, self._x[:TRACED], units, self._read)

    def _units(self, share: float, chosen: Callable[[int, Coupled, int], np.ndarray]) -> Units:
        if share == 1.0:
            return ()
        return tuple(
            chosen(number, one, count) if (count := one.left(share)) < one.count else None
            for number, one in enumerate(self._traced.dimensions)
        )

    @cached_property
    def _traced(self) -> _Traced:
        return _traced(self._model, self._x[:TRACED], self._read)

    @cached_property
    def _responses(self) -> UnitResponses:
        return UnitResponses(self._traced.network, self._traced.dimensions, self._x, self._read)


class _Traced(NamedTuple):
    """A copy of a network, its dimensions as layers of that copy share them, and the shape of its scores."""

    network: nn.Module
    dimensions: Sequence[Coupled]
    scores: torch.Size


def _traced(model: nn.Module, x: Tensor, read: Read | None) -> _Traced:
    traced = deep_copy(model)
    try:
        dimensions = coupled_units(traced, x, read)
    except Exception as error:  # the tracer raises many kinds
        said = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ValueError(
            f"`model` should be a network whose units can be followed from layer to layer. Found: {said}. The kernel "
            "and the coordinates need no cut."
        ) from error
    return _Traced(traced, dimensions, _outputs(traced, x, read).shape)


def _cut(model: nn.Module, traced: _Traced, x: Tensor, units: Units, read: Read | None) -> Cut:
    trained = {name: parameter.requires_grad for name, parameter in model.named_parameters()}
    names = {module: name for name, module in traced.network.named_modules()}
    wanted = [(one, kept) for one, kept in zip(traced.dimensions, units, strict=True) if kept is not None]
    taken, whole = list[tuple[Coupled, np.ndarray]](), list[str]()
    if wanted and (all_of_them := _attempt(traced, wanted, x, read)) is not None:
        taken, made = wanted, all_of_them
    else:  # one after the other, to find those that can be cut
        made = (deep_copy(traced.network), {})
        for one in wanted:
            tried = _attempt(traced, [*taken, one], x, read)
            if tried is None:
                whole.append(names[one[0].root])
            else:
                taken, made = [*taken, one], tried
    network, shares = made
    for name, parameter in network.named_parameters():
        parameter.requires_grad_(trained[name])
    for mine, other in zip(network.modules(), model.modules(), strict=True):
        mine.training = other.training
    counts = {names[one.root]: (len(kept), one.count) for one, kept in taken}
    return Cut(network, shares, counts, tuple(whole), units)


def _attempt(
    traced: _Traced, wanted: list[tuple[Coupled, np.ndarray]], x: Tensor, read: Read | None
) -> tuple[nn.Module, dict[str, Shares]] | None:
    """The narrow network and what was cut of its parameters; None where it no longer works."""
    network = deep_copy(traced.network)
    same = dict(zip(traced.network.modules(), network.modules(), strict=True))
    names = {module: name for name, module in network.named_modules()}
    parameters = {id(parameter): name for name, parameter in traced.network.named_parameters()}
    several = {name for name, _ in traced.network.named_parameters(remove_duplicate=False)} - set(parameters.values())
    if several:  # tied weights: one tensor on two sides
        return None
    layers: dict[nn.Module, Kept] = {}
    shares: dict[str, Shares] = {}
    try:
        for one, kept in wanted:
            for member, out, lost in one.places(kept):
                if isinstance(member, nn.Parameter):
                    shares[parameters[id(member)]] = _narrow_parameter(network, parameters[id(member)], one, lost)
                    continue
                size = _size(member, out)
                left = np.setdiff1d(np.arange(size), lost)
                before = layers.get(same[member], Kept(None, None))
                layers[same[member]] = before._replace(**{"out" if out else "into": left})
        for layer, kept_units in layers.items():
            prefix = f"{names[layer]}." if names[layer] else ""
            shares |= {f"{prefix}{name}": found for name, found in narrow(layer, kept_units).items()}
        if _outputs(network, x, read).shape != traced.scores:
            return None
    except (TypeError, RuntimeError, ValueError, IndexError, AssertionError, KeyError):
        return None
    return network, shares


def _narrow_parameter(network: nn.Module, name: str, one: Coupled, lost: np.ndarray) -> Shares:
    """A parameter of its own, as learned positions: its last dimension of that size is cut."""
    *path, last = name.split(".")
    owner = network.get_submodule(".".join(path))
    value = getattr(owner, last).detach()
    dims = [dim for dim in range(value.ndim) if value.shape[dim] == one.count]
    if not dims:
        raise ValueError(f"{name} has no dimension of {one.count} units")
    left = np.setdiff1d(np.arange(one.count), lost)
    setattr(owner, last, nn.Parameter(value.index_select(dims[-1], torch.as_tensor(left)).clone()))
    return Shares(out=len(left) / one.count)


def _size(layer: nn.Module, out: bool) -> int:
    """How many units a layer gives, or takes."""
    for name in ("num_features", "num_channels", "embedding_dim", "embed_dim", "num_parameters"):
        if isinstance(getattr(layer, name, None), int):
            return int(getattr(layer, name))
    if isinstance(layer, nn.LayerNorm):
        return int(layer.normalized_shape[-1])
    if isinstance(layer, nn.RNNBase):
        return layer.hidden_size if out else layer.input_size
    pair = ("out_features", "in_features") if hasattr(layer, "out_features") else ("out_channels", "in_channels")
    return int(getattr(layer, pair[0 if out else 1]))


@torch.no_grad()
def _outputs(model: nn.Module, x: Tensor, read: Read | None) -> Tensor:
    model.eval()
    return flat_scores(model(x.clone()), len(x), read)
