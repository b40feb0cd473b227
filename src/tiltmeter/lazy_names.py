"""Lazy names: a package imports a file only when one of the names that it defines is used.

This is Python's own mechanism (PEP 562). It keeps `import tiltmeter` light: torch, numba and altair are imported with
the first name that needs them.
"""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

#: Rooms that are searched for a name that is missing at the top: to import them takes no time.
LIGHT = (
    *("theory", "fairness", "record", "losses", "training", "results"),
    *("interventions", "methods", "schedules", "measures", "data"),
)

#: Package that is not everywhere -> what to call it, and the extra that brings it.
EXTRAS = {"torch": ("PyTorch", "torch"), "numba": ("exact theory", "theory")}


class LazyPackage(ModuleType):
    """A package whose names are looked up on first use.

    `homes` maps a name to the module that defines it; `rooms` maps a name to a module that is itself the value. A file
    may have the same name as a function (`predict` is in `theory/predict.py`): importing the file does not hide the
    function.
    """

    homes: ClassVar[Mapping[str, str]]
    rooms: ClassVar[Mapping[str, str]]

    def __getattr__(self, name: str) -> Any:
        if name in self.rooms:
            return import_module(self.rooms[name])
        if name not in self.homes:
            raise AttributeError(f"{self.__name__} has no {name!r}.{self._meant(name)}")
        try:
            value = getattr(import_module(self.homes[name]), name)
        except ModuleNotFoundError as error:
            if error.name not in EXTRAS:
                raise
            needed, extra = EXTRAS[error.name]
            sentence = f"`{name}` needs {needed}: pip install 'tiltmeter[{extra}]'"
            raise ModuleNotFoundError(sentence, name=error.name) from None
        self.__dict__[name] = value
        return value

    def _meant(self, name: str) -> str:
        """Where the name is, or what was probably meant; nothing if that is not clear."""
        if name.startswith("_"):
            return ""
        holding = [room for room in LIGHT if name in self._names_in(room)]
        if holding:
            return f" Did you mean {self.__name__}.{holding[0]}.{name}?"
        known = {public.lower(): public for public in (*self.homes, *self.rooms)}
        close = get_close_matches(name.lower(), known, 1, 0.8)
        return f" Did you mean {known[close[0]]}?" if close else ""

    def _names_in(self, room: str) -> list[str]:
        """The names that a room offers; none if this package has no such room, or it is not installed."""
        try:
            return dir(import_module(self.rooms[room])) if room in self.rooms else []
        except ModuleNotFoundError:
            return []

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in {**self.homes, **self.rooms} and isinstance(value, ModuleType)):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        """The public names only, without what the file itself imports."""
        return sorted({*(name for name in self.__dict__ if name.startswith("__")), *self.homes, *self.rooms})


def offer(package: str) -> list[str]:
    """Make the package offer, lazily, what its `if TYPE_CHECKING:` block imports; returns the names, for `__all__`.

    The block is read from the source, so that every public name is written once, where type checkers see it too.
    """
    module = sys.modules[package]
    names: dict[str, dict[str, str]] = {"homes": {}, "rooms": {}}
    for name, home in _promised(Path(str(module.__file__))):
        names["rooms" if _is_module(home) else "homes"][name] = home if _is_module(home) else home.rpartition(".")[0]
    module.__class__ = type("LazyPackage", (LazyPackage,), names)
    return [*names["homes"], *names["rooms"]]


def homes_of(package: str) -> Mapping[str, str]:
    """Every name that the package offers, and the module that defines it."""
    kind: Any = type(sys.modules[package])
    return kind.homes  # type: ignore[no-any-return]


def _promised(source: Path) -> Iterator[tuple[str, str]]:
    """Every name that the `if TYPE_CHECKING:` block of a file imports, and its full address."""
    for block in ast.parse(source.read_text(encoding="utf-8")).body:
        if isinstance(block, ast.If) and isinstance(block.test, ast.Name) and block.test.id == "TYPE_CHECKING":
            for line in block.body:
                if isinstance(line, ast.ImportFrom):
                    yield from ((alias.asname or alias.name, f"{line.module}.{alias.name}") for alias in line.names)


def _is_module(address: str) -> bool:
    """Whether the address is that of a file or folder (in its exact spelling, on any file system)."""
    root, *parts, last = address.split(".")
    folder = Path(str(sys.modules[root].__file__)).parent.joinpath(*parts)
    return folder.is_dir() and bool({last, f"{last}.py"} & set(os.listdir(folder)))
