"""The TOML file of a study."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from tiltmeter.cli.toml_file import read_toml
from tiltmeter.cli.toml_schema import Between, check_keys, check_table
from tiltmeter.study import Study
from tiltmeter.study.function_reference import FunctionReference
from tiltmeter.study.places import STUDY
from tiltmeter.study.study_file import read_study

#: What `[study]` may hold.
HINTS: dict[str, Any] = {
    "cell": str,
    "to": str,
    "seeds": Annotated[int, Between(1)] | tuple[int, ...],
    "version": str,
    "tries": Annotated[int, Between(1)],
    "limit": Annotated[float, Between(0, low_too=False)],
    "fraction": Annotated[float, Between(0, 1, low_too=False)],
}


def find_study(place: Path, run: bool = False) -> Study:
    """The study that a TOML file describes, or that a folder holds; its function is imported only if it shall `run`."""
    if place.is_dir():
        return Study.load(place)
    tables = read_toml(place)
    check_keys(tables, ("study", "factors", "cells"), str(place))
    said = check_table(tables.get("study", {}), HINTS, f"{place}, [study]")
    if "cell" not in said:
        raise KeyError(f'{place}, [study]: `cell` is missing; it names a function, as in cell = "mine:train".')
    function = FunctionReference.from_text(said.pop("cell"), place.parent)
    # Paths are relative to the TOML file, not to the current folder.
    to = place.parent / said.pop("to", f"studies/{place.stem}")
    for name, kind in (("factors", Mapping), ("cells", list)):
        if name in tables and not isinstance(tables[name], kind):
            raise TypeError(f"{place}: `{name}` should be {'a table' if kind is Mapping else 'a list of tables'}.")
    cell = function.find() if run else _stored(to, function)
    return Study(cell, tables.get("factors"), to=to, cells=tables.get("cells"), **said)


def _stored(to: Path, named: FunctionReference) -> FunctionReference:
    """The function by the name under which its cells are stored: that of the module which defines it."""
    return FunctionReference(**read_study(to)["cell"]) if (to / STUDY).is_file() else named
