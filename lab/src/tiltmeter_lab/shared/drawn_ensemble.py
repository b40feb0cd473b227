"""drawn_ensemble: networks on half squared error, with groups drawn in given proportions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from torch import nn

import tiltmeter as tm


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
    data: tuple[tm.GroupedData, tm.GroupedData],
    proportions: Mapping[Any, float],
    seeds: Sequence[int],
) -> tm.Trajectory:
    """Train networks of these seeds on the first part of the data, looked at on the second."""
    recipe = tm.Recipe(
        lr=setting.lr, steps=setting.steps, batch=setting.batch, proportions=dict(proportions), loss=tm.Square()
    )
    return tm.ensemble(make, *data, recipe, watch=tm.Watch(when=tm.record.log_spaced(setting.per_decade)), seeds=seeds)
