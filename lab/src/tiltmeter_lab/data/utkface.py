"""utkface: photographs of faces whose file names give age, sex and race (Zhang, Song and Qi, 2017)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from tiltmeter.data.grouped import GroupedData
from tiltmeter.data.public.presence import absent, folder_of
from tiltmeter_lab.data.images import read_pictures

SEXES = ("male", "female")
RACES = ("White", "Black", "Asian", "Indian", "others")
#: age_sex_race_date, as in "39_1_20170116174525125.jpg.chip.jpg"; names that lack a field do not match.
NAME = re.compile(r"(\d{1,3})_([01])_([0-4])_\d+\.jpg(\.chip\.jpg)?")


@dataclass(frozen=True, eq=False)
class AgedFaces:
    """The list of photographs with age in years, and sex and race as indices of `SEXES` and `RACES`."""

    files: np.ndarray
    age: np.ndarray
    sex: np.ndarray
    race: np.ndarray
    folder: Path

    def __len__(self) -> int:
        return len(self.files)

    def pictures(self, places: Sequence[int] | np.ndarray, size: int = 64) -> np.ndarray:
        """The photographs with these indices, points x 3 x size x size bytes."""
        return read_pictures(self.folder, [str(name) for name in self.files[np.asarray(places, dtype=np.int64)]], size)

    def grouped(
        self,
        places: Sequence[int] | np.ndarray,
        group: Literal["sex", "race"] = "sex",
        older_than: int = 40,
        size: int = 64,
    ) -> GroupedData:
        """Is the face older than this (label 1)? In groups by sex or race, pixels from 0 to 1."""
        if group not in ("sex", "race"):
            raise ValueError(f"`group` should be 'sex' or 'race'. Found group = {group!r}.")
        chosen = np.asarray(places, dtype=np.int64)
        names, codes = (SEXES, self.sex) if group == "sex" else (RACES, self.race)
        x = self.pictures(chosen, size).astype(np.float32) / 255
        return GroupedData(x, (self.age[chosen] > older_than).astype(np.int64), np.array(names)[codes[chosen]])


def utkface() -> AgedFaces:
    """All faces in the folder UTKFace whose names give age, sex and race: 23,705 of the 23,708 of the publishers.

    >>> import os
    >>> from tempfile import TemporaryDirectory
    >>> from unittest.mock import patch
    >>> with TemporaryDirectory() as place, patch.dict(os.environ, TILTMETER_DATA=place):
    ...     os.makedirs(f"{place}/utkface/UTKFace")
    ...     for name in ("26_1_0_20170116.jpg", "60_0_3_20170117.jpg"):  # age, sex, race, date
    ...         Path(place, "utkface", "UTKFace", name).touch()
    ...     faces = utkface()
    >>> faces.age.tolist(), [SEXES[code] for code in faces.sex], [RACES[code] for code in faces.race]
    ([26, 60], ['female', 'male'], ['White', 'Indian'])

    Age, sex and race are estimates by a program, checked by people: they are what a face looks like to others, not
    what a person says. Names that lack a field are left out.
    """
    folder = folder_of("utkface") / "UTKFace"
    if not folder.is_dir():
        raise absent("utkface", "the folder UTKFace")
    found = [match for match in (NAME.fullmatch(path.name) for path in sorted(folder.iterdir())) if match]
    if not found:
        raise ValueError(f"{folder} should hold files named age_sex_race_date.jpg.chip.jpg. Found none.")
    age, sex, race = np.array([[int(part) for part in match.groups()[:3]] for match in found], dtype=np.int64).T
    return AgedFaces(np.array([match[0] for match in found]), age, sex, race, folder)


def whole() -> tuple[Any, ...]:
    """All of the data set, part by part."""
    return (utkface(),)
