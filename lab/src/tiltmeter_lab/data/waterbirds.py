"""waterbirds: photographs of landbirds and waterbirds in front of land or water (Sagawa et al., 2020)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from tiltmeter.data.grouped import GroupedData
from tiltmeter.data.public.presence import contents, folder_of, table_of, wrong
from tiltmeter_lab.data.images import read_pictures

PARTS = ("train", "valid", "test")
BIRDS, PLACES = ("landbird", "waterbird"), ("land", "water")
NEEDED = ("img_filename", "y", "split", "place")


@dataclass(frozen=True, eq=False)
class Birds:
    """The list of photographs, the kind of bird `y` (1: waterbird) and of background `place` (1: water)."""

    files: np.ndarray
    y: np.ndarray
    place: np.ndarray
    folder: Path

    def __len__(self) -> int:
        return len(self.files)

    @property
    def groups(self) -> list[str]:
        """The group of every photograph, such as "waterbird on land"."""
        return [f"{BIRDS[bird]} on {PLACES[place]}" for bird, place in zip(self.y, self.place, strict=True)]

    def grouped(self, places: Sequence[int] | np.ndarray, size: int = 64) -> GroupedData:
        """The photographs with these indices in their four groups, pixels from 0 to 1."""
        chosen = np.asarray(places, dtype=np.int64)
        x = read_pictures(self.folder, [str(name) for name in self.files[chosen]], size)
        groups = self.groups
        return GroupedData(x.astype(np.float32) / 255, self.y[chosen], [groups[i] for i in chosen])


def waterbirds(part: Literal["train", "valid", "test"] = "train") -> Birds:
    """The birds of one part: 4,795 for training, 1,199 for validation, 5,794 for testing.

    >>> try:
    ...     waterbirds("rest")
    ... except ValueError as error:
    ...     print(error)
    `part` should be 'train', 'valid' or 'test'. Found part = 'rest'.

    In the training part, 95 % of each kind of bird are in front of their own background; in the other parts half are.
    The background is the shortcut.

    Args:
        part: "train", "valid" or "test": which of the published parts.
    """
    if part not in PARTS:
        raise ValueError(f"`part` should be 'train', 'valid' or 'test'. Found part = {part!r}.")
    folder = folder_of("waterbirds")
    path, should = folder / "metadata.csv", f"the columns {', '.join(NEEDED)}"
    table = table_of("waterbirds", path, contents("waterbirds", "metadata.csv"), should)
    missing = [name for name in NEEDED if name not in table.columns]
    if missing:
        raise wrong("waterbirds", path, should, f"no {missing[0]}")
    for name, most in (("y", 1), ("place", 1), ("split", 2)):
        if not len(table) or not table[name].isin(range(most + 1)).all():
            raise wrong("waterbirds", path, f"whole numbers from 0 to {most} in the column {name}", "others, or none")
    chosen = table[table["split"] == PARTS.index(part)]
    y, place = (chosen[name].to_numpy(dtype=np.int64) for name in ("y", "place"))
    return Birds(chosen["img_filename"].to_numpy(dtype=str), y, place, folder)


def whole() -> tuple[Any, ...]:
    """All of the data set, part by part."""
    return waterbirds("train"), waterbirds("valid"), waterbirds("test")
