"""The curve `pull`: what every group counts in the step that comes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from tiltmeter.data.group_shares import share_of
from tiltmeter.data.grouped import GroupedData
from tiltmeter.measures.snapshot import Snapshot
from tiltmeter.names import described
from tiltmeter.recipe.lowered import constant_pull, group_law
from tiltmeter.recipe.recipe import Recipe
from tiltmeter.record.labelled import labels_array
from tiltmeter.training.steering import Steering


@dataclass(frozen=True)
class PullCurve:
    """A measure that asks the steering, not the snapshot; a constant law has the same pull at every look."""

    groups: tuple[Any, ...]
    source: Steering | np.ndarray

    @classmethod
    def of(cls, recipe: Recipe, data: GroupedData, steering: Steering | None) -> PullCurve | None:
        """The curve of a recipe as it was asked for; None without a law of groups."""
        law = group_law(recipe)
        if law is None:
            return None
        if law.constant:
            return cls(data.groups, constant_pull(law, data, share_of(data, recipe.drawn)))
        assert steering is not None
        return cls(data.groups, steering)

    def __call__(self, snapshot: Snapshot) -> dict[str, xr.DataArray]:  # noqa: ARG002
        return {"pull": self.reading({})}

    def reading(self, runs: Mapping[str, Any]) -> xr.DataArray:
        """The pulls as they are now, by group and, of several runs, by their dimensions."""
        coords: dict[str, Any] = {"group": labels_array(self.groups), **runs}
        sizes = [len(labels) for labels in coords.values()]
        if isinstance(self.source, Steering):
            values = np.moveaxis(self.source.pull.cpu().numpy(), -1, 0).reshape(sizes).copy()
        else:
            values = np.broadcast_to(self.source.reshape(-1, *(1,) * len(runs)), sizes).copy()
        return described("pull", xr.DataArray(values, dims=tuple(coords), coords=coords))
