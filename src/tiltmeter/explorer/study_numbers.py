"""Study numbers: the last values of every cell of a study, read a few seconds at a time."""

from __future__ import annotations

import time
from collections.abc import Mapping
from itertools import product
from pathlib import Path

import numpy as np
import xarray as xr

from tiltmeter.explorer.run_folder import is_inside, refusal
from tiltmeter.explorer.stored_study import StoredStudy
from tiltmeter.plot.theme import group_name
from tiltmeter.record import load
from tiltmeter.study.places import CELLS
from tiltmeter.study.table import build_table, last_values
from tiltmeter.visible_text import visible

#: Seconds that one question may take; the page asks again for the rest.
PATIENCE = 1.5
#: The most numbers of one curve of a cell, such as groups times classes.
MOST_NUMBERS = 40
#: What was read before: run directory of a cell -> its numbers. A complete cell never changes.
_read: dict[Path, Mapping[str, float]] = {}
KEPT = 100_000


def study_numbers(root: Path, study: StoredStudy) -> tuple[xr.Dataset, int, int]:
    """The table of numbers so far, how many complete cells it holds, and how many there are."""
    done = study.places.keys(CELLS)
    wanted = [cell for cell in study.all_cells if cell.key in done]
    end = time.monotonic() + PATIENCE
    found = []
    for cell in wanted:
        place = study.places.result(cell.key)
        if place not in _read:
            if time.monotonic() > end:
                continue
            _read[place] = _numbers(root, place)
        found.append((cell.settings, _read[place]))
    while len(_read) > KEPT:
        del _read[next(iter(_read))]
    return build_table(study.factors, study.seeds, found, dict), len(found), len(wanted)  # type: ignore[arg-type]


def _numbers(root: Path, place: Path) -> dict[str, float]:
    """Every last value by a name that says what it is; of two groups also their gap."""
    if not is_inside(place, root) or refusal(root, place) is not None:
        return {}
    try:
        values = last_values(load(place))
    except (ValueError, OSError, KeyError):
        return {}
    found: dict[str, float] = {}
    for name, value in values.items():
        if name.endswith("_se"):
            continue
        array = value if isinstance(value, xr.DataArray) else xr.DataArray(float(value))
        if array.dtype.kind not in "fiub" or array.size > MOST_NUMBERS:
            continue
        found |= _spread(visible(str(name)), array)
    return found


def _spread(name: str, array: xr.DataArray) -> dict[str, float]:
    if "seed" in array.dims:
        array = array.mean("seed")
    if array.ndim == 0:
        return {name: float(array)}
    labels = {
        str(dim): array.coords[dim].values.tolist() if dim in array.coords else list(range(count))
        for dim, count in array.sizes.items()
    }
    found = {}
    for place in product(*(range(n) for n in array.shape)):
        words = [group_name(labels[dim][i]) for dim, i in zip(labels, place, strict=True)]
        found[f"{name} of {', '.join(words)}"] = float(np.asarray(array.values[place]))
    if array.dims == ("group",) and array.size == 2:
        a, b = (group_name(one) for one in labels["group"])
        found[f"{name} of {a} minus {b}"] = float(array.values[0] - array.values[1])
    return found
