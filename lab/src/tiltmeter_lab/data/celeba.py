"""celeba: photographs of faces with 40 attributes (Liu, Luo, Wang, Tang, 2015)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from tiltmeter.data.public.presence import absent, bytes_of, data_folder, folder_of, table_of, wrong
from tiltmeter_lab.data.images import read_pictures

PARTS = ("train", "valid", "test")
#: The first file of each part: files are numbered, and the publishers split by number.
STARTS = (1, 162_771, 182_638)
#: Only the attributes, as one CSV file; some packages provide them in this form.
TABLE = ("celeba-attributes", "celeba.csv")


@dataclass(frozen=True, eq=False)
class Faces:
    """The list of photographs and their attributes; `pictures` reads the pixels.

    >>> files, names = np.array(["000001.jpg", "000002.jpg"]), ("Blond_Hair", "Eyeglasses")
    >>> faces = Faces(files, np.array([[True, False], [False, False]]), names, Path("celeba"))
    >>> len(faces), faces.has("Blond_Hair").tolist()
    (2, [True, False])

    Args:
        files: Name of the photograph of every person.
        attributes: One row per photograph, one column per attribute, of booleans.
        names: Names of the attributes, in the order of the columns.
        folder: Where the photographs are.
    """

    files: np.ndarray
    attributes: np.ndarray
    names: tuple[str, ...]
    folder: Path

    def __len__(self) -> int:
        return len(self.files)

    def has(self, name: str) -> np.ndarray:
        """Whether each face has this attribute, such as "Eyeglasses" or "Blond_Hair"."""
        if name not in self.names:
            raise KeyError(f"No attribute {name!r}. There are: {', '.join(self.names)}.")
        return np.asarray(self.attributes[:, self.names.index(name)])

    @property
    def here(self) -> np.ndarray:
        """The indices of the photographs that are on this machine: all, or those of a part that was unpacked."""
        folder = self.folder / "img_align_celeba"
        if not folder.is_dir():
            raise absent("celeba", "the folder img_align_celeba")
        return np.flatnonzero(np.isin(self.files, [path.name for path in folder.iterdir()]))

    def pictures(self, places: Sequence[int] | np.ndarray, size: int = 64) -> np.ndarray:
        """The photographs with these indices, points x 3 x size x size bytes."""
        folder = self.folder / "img_align_celeba"
        if not folder.is_dir():
            raise absent("celeba", "the folder img_align_celeba")
        return read_pictures(folder, [str(name) for name in self.files[np.asarray(places, dtype=np.int64)]], size)


def celeba(part: Literal["train", "valid", "test"] = "train") -> Faces:
    """The faces of one part: 162,770 for training, 19,867 for validation, 19,962 for testing.

    >>> try:
    ...     celeba("rest")
    ... except ValueError as error:
    ...     print(error)
    `part` should be 'train', 'valid' or 'test'. Found part = 'rest'.

    Reads `list_attr_celeba.txt` and `list_eval_partition.txt` of the publishers, or the attributes as one CSV file in
    `celeba-attributes`. Attributes are the quick judgements of one person, and many are a matter of taste.

    Args:
        part: "train", "valid" or "test": which of the published parts.
    """
    if part not in PARTS:
        raise ValueError(f"`part` should be 'train', 'valid' or 'test'. Found part = {part!r}.")
    folder = folder_of("celeba")
    listed, table = folder / "list_attr_celeba.txt", data_folder().joinpath(*TABLE)
    if listed.is_file():
        files, names, values = _listed(listed)
    elif table.is_file():
        files, names, values = _tabled(table)
    else:
        raise absent("celeba", "list_attr_celeba.txt")
    chosen = _parts(folder / "list_eval_partition.txt", files) == PARTS.index(part)
    return Faces(files[chosen], values[chosen] > 0, names, folder)


def _listed(path: Path) -> tuple[np.ndarray, tuple[str, ...], np.ndarray]:
    """Reads the publishers' text format: the number of files, the attribute names, then one line of -1 and 1 per
    file.
    """
    data = bytes_of(path)
    count, header, *_ = [*data.decode("utf-8", errors="replace").split("\n", 2), "", ""]
    names = tuple(header.split())
    if not count.strip().isdecimal() or not names:
        raise wrong("celeba", path, "the number of files and the names of attributes first", repr(count[:20]))
    should = f"{int(count):,} complete lines of a file name and {len(names)} attributes, -1 or 1"
    table = table_of("celeba", path, data, should, sep=r"\s+", skiprows=2, header=None)
    if table.shape != (int(count), len(names) + 1):
        raise wrong("celeba", path, should, f"{len(table):,} of {table.shape[1] - 1}")
    return table[0].to_numpy(dtype=str), names, _marks(path, table.iloc[:, 1:], (-1, 1), should)


def _tabled(path: Path) -> tuple[np.ndarray, tuple[str, ...], np.ndarray]:
    should = "file names, then complete columns of attributes, yes or no"
    table = table_of("celeba", path, bytes_of(path), should)
    if not len(table) or table.columns[0] != "filename":
        raise wrong("celeba", path, should, f"{len(table)} rows of columns {list(table.columns[:3])}")
    names = tuple(map(str, table.columns[1:]))
    return table["filename"].to_numpy(dtype=str), names, _marks(path, table.iloc[:, 1:], (-1, 0, 1), should)


def _marks(path: Path, columns: Any, allowed: tuple[int, ...], should: str) -> np.ndarray:
    """Attributes as small integers, after checking that all values are allowed."""
    strange = ~columns.isin(allowed)
    if strange.any(axis=None):
        row, column = np.argwhere(strange.to_numpy())[0]
        raise wrong("celeba", path, should, f"{str(columns.iat[row, column])!r} at row {row + 1} below the header")
    return np.asarray(columns.to_numpy(dtype=np.int8))


def _parts(path: Path, files: np.ndarray) -> np.ndarray:
    """The part of every file: from the list if there is one, otherwise from the numbers of the files."""
    if not path.is_file():
        numbers = [name.partition(".")[0] for name in files.tolist()]
        if strange := [name for name in numbers if not name.isdecimal()]:
            raise wrong("celeba", path, "the part of every file, where file names are no numbers", f"{strange[0]!r}")
        return np.asarray(np.searchsorted(STARTS, np.asarray(numbers, dtype=np.int64), side="right") - 1)
    should = "a part 0, 1 or 2 for every file of list_attr_celeba.txt"
    table = table_of("celeba", path, bytes_of(path), should, sep=r"\s+", header=None, names=["file", "part"])
    if table["file"].tolist() != files.tolist() or not table["part"].isin(range(len(PARTS))).all():
        raise wrong("celeba", path, should, f"{len(table):,} lines")
    return np.asarray(table["part"].to_numpy(dtype=np.int64))


def whole() -> tuple[Any, ...]:
    """All of the data set, part by part."""
    return celeba("train"), celeba("valid"), celeba("test")
