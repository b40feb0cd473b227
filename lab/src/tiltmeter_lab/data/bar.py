"""bar: photographs of six actions, in training at their typical places, in testing elsewhere (Nam et al., 2020)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tiltmeter.data.public.presence import absent, folder_of
from tiltmeter_lab.data.images import Part, read_pictures

ACTIONS = ("climbing", "diving", "fishing", "racing", "throwing", "vaulting")


@dataclass(frozen=True, eq=False)
class Actions:
    """The list of photographs and their actions `y`, as indices of `ACTIONS`; nobody labelled the places."""

    files: np.ndarray
    y: np.ndarray
    folder: Path

    def __len__(self) -> int:
        return len(self.files)

    def pictures(self, places: Sequence[int] | np.ndarray, size: int = 64) -> np.ndarray:
        """The photographs with these indices, points x 3 x size x size bytes."""
        return read_pictures(self.folder, [str(name) for name in self.files[np.asarray(places, dtype=np.int64)]], size)


def bar(part: Part = "train") -> Actions:
    """The photographs of one part: 1,941 for training, 654 for testing.

    >>> try:
    ...     bar("rest")
    ... except ValueError as error:
    ...     print(error)
    `part` should be 'train' or 'test'. Found part = 'rest'.

    Files are named after their action, such as climbing_12.jpg. In the training part climbers are on rock, divers under
    water; in the test part they are elsewhere. The place is the shortcut.

    Args:
        part: "train" or "test": which of the published parts.
    """
    if part not in ("train", "test"):
        raise ValueError(f"`part` should be 'train' or 'test'. Found part = {part!r}.")
    folder = folder_of("bar") / part
    if not folder.is_dir():
        raise absent("bar", f"the folder {part}")
    files = sorted(path.name for path in folder.iterdir() if path.name.partition("_")[0] in ACTIONS)
    if not files:
        raise ValueError(f"{folder} should hold files named after actions, such as climbing_12.jpg. Found none.")
    y = np.array([ACTIONS.index(name.partition("_")[0]) for name in files])
    return Actions(np.array(files), y, folder)


def whole() -> tuple[Any, ...]:
    """All of the data set, part by part."""
    return bar("train"), bar("test")
