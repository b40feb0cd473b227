"""group-giveaway: how well colour, contrast, edges, fine detail or single columns tell the group, before training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import xarray as xr
from torch import Tensor

from tiltmeter.measures.snapshot import Snapshot
from tiltmeter_lab.measures.subgroup_auc import auc


@dataclass(frozen=True)
class GroupGiveaway:
    """`group_giveaway` (cue, group): the area under the ROC curve with which a simple cue tells a group from all
    others, turned so that it is at least 1/2.

    >>> import tiltmeter as tm, torch
    >>> import tiltmeter_lab as lab
    >>> x = [[float(g), i % 7] for i in range(60) for g in (0, 1)]  # the first column is the group
    >>> data = tm.GroupedData(x, [0, 1] * 60, ["a", "b"] * 60)
    >>> lab.measure(GroupGiveaway(), torch.nn.Linear(2, 1), data, tm.Logistic())["group_giveaway"].values[0]
    array([1., 1.])

    Cues of images (channels, height, width) are the mean of every channel, the contrast (standard deviation of all
    pixels), the edges (mean difference of neighbouring pixels) and fine detail (edges over contrast). Cues of flat
    points are the columns; of more than `most` columns, those that tell the groups best.

    The null value is the same for groups dealt at random, the best columns chosen anew. The model is not asked: it is
    a property of the data, the same at every evaluation.

    What it does not mean: that a cue tells the group does *not* mean that a model uses it.

    Args:
        most: Columns that are kept of flat points.
        seed: Seed of the random groups of the null value.
    """

    most: int = 10
    seed: int = 0

    title: ClassVar[str] = "How well simple cues of the inputs tell the group, before any training"
    takes: ClassVar[str] = "images or flat points of real numbers, and at least two groups"
    exact: ClassVar[str] = "always, for the held-out points (ranks; ties count one half)"
    absent: ClassVar[str] = "groups from one distribution: as well as for random groups"

    def __post_init__(self) -> None:
        if self.most < 1:
            raise ValueError(f"`most` should be at least 1. Found most = {self.most}.")

    def __call__(self, snapshot: Snapshot) -> dict[str, xr.DataArray]:
        data, x = snapshot.data, snapshot.model.x
        if not isinstance(x, Tensor) or not x.is_floating_point() or x.ndim not in (2, 4):
            raise ValueError("GroupGiveaway needs images (channels, height, width) or flat points of real numbers.")
        names, cues = cues_of(x.double().cpu().numpy())
        random = np.random.default_rng(self.seed).permutation(data.codes)
        areas, chance = (told(cues, codes, len(data.groups)) for codes in (data.codes, random))
        if len(names) > self.most:
            best = np.argsort(-np.nan_to_num(areas).max(1), kind="stable")[: self.most]
            names, areas = [names[place] for place in best], areas[best]
            chance = chance[np.argsort(-np.nan_to_num(chance).max(1), kind="stable")[: self.most]]
        coords = {"cue": np.array(names, dtype=object), "group": data.group_labels}
        meaning = "area with which a cue tells the group from all others"
        return {
            name: snapshot.reading(name, values, coords, long_name=meaning, better="neither")
            for name, values in (("group_giveaway", areas), ("group_giveaway_null", chance))
        }


def cues_of(x: np.ndarray) -> tuple[list[str], np.ndarray]:
    """Names of the cues, and their values (points, cues)."""
    if x.ndim == 2:
        return [f"column {place}" for place in range(x.shape[1])], x
    contrast = x.std((1, 2, 3))
    across, down = (np.abs(np.diff(x, axis=axis)).reshape(len(x), -1) for axis in (3, 2))
    edges = np.concatenate([across, down], 1).mean(1) if across.size + down.size else np.zeros(len(x))
    detail = edges / np.where(contrast > 0, contrast, 1.0)
    names = [*(f"mean of channel {place}" for place in range(x.shape[1])), "contrast", "edges", "fine detail"]
    return names, np.column_stack([x.mean((2, 3)), contrast, edges, detail])


def told(cues: np.ndarray, codes: np.ndarray, groups: int) -> np.ndarray:
    """(cue, group): the area of each cue for each group against all others, at least 1/2."""
    found = np.full((cues.shape[1], groups), np.nan)
    for code in range(groups):
        own = codes == code
        if own.any() and not own.all():
            areas = np.array([auc(cue[own], cue[~own])[0] for cue in cues.T])
            found[:, code] = np.maximum(areas, 1.0 - areas)
    return found
