"""drawn_ensemble: networks on half squared error, with groups drawn in given proportions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from torch import nn

from tiltmeter.data.grouped import GroupedData
from tiltmeter.losses import Square
from tiltmeter.recipe import Recipe, Watch
from tiltmeter.record import Trajectory, log_spaced
from tiltmeter.training.ensemble import ensemble


class DrawnSetting(Protocol):
    """The numbers of such a training."""

    @property
    def lr(self) -> float: ...
    @property
    def steps(self) -> int: ...
    @property
    def batch(self) -> int: ...
    @property
    def per_decade(self) -> int: ...


def drawn_ensemble(
    setting: DrawnSetting,
    make: Callable[[], nn.Module],
    data: tuple[GroupedData, GroupedData],
    proportions: Mapping[Any, float],
    seeds: Sequence[int],
) -> Trajectory:
    """Train networks of these seeds on the first part of the data, looked at on the second."""
    recipe = Recipe(
        lr=setting.lr, steps=setting.steps, batch=setting.batch, proportions=dict(proportions), loss=Square()
    )
    return ensemble(make, *data, recipe, watch=Watch(when=log_spaced(setting.per_decade)), seeds=seeds)
