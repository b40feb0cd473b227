"""from_npz: named arrays of a .npz file as grouped data."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from tiltmeter.data.grouped import GroupedData


def from_npz(
    path: str | os.PathLike[str], *, label: str = "y", group: str = "group", features: str = "x", weights: Any = None
) -> GroupedData:
    """See `GroupedData.from_npz`."""
    from tiltmeter.data.grouped import GroupedData

    place = Path(path)
    if not place.is_file():
        raise FileNotFoundError(f"No file {place}.")
    try:
        with np.load(place, allow_pickle=False) as arrays:
            if not isinstance(arrays, np.lib.npyio.NpzFile):
                raise ValueError("a single array")
            asked = {"label": label, "group": group, "features": features}
            if weights is not None:
                asked["weights"] = weights
            for what, name in asked.items():
                if name not in arrays.files:
                    listed = ", ".join(map(repr, arrays.files))
                    raise KeyError(f"`{what}`: no array {name!r} in {place.name}. There are: {listed}.")
            found = {what: arrays[name] for what, name in asked.items()}
    except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        if "allow_pickle" in str(error):
            raise ValueError(
                f"{place} should hold plain arrays. Found Python objects: they are never loaded."
            ) from None
        raise ValueError(f"{place} should be a whole .npz file. Found: {error}.") from None
    return GroupedData(found["features"], found["label"], found["group"], found.get("weights"))
