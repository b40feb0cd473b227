"""Lazy names: a package imports a file only when one of the names that it defines is used.

This is Python's own mechanism (PEP 562). It keeps `import tiltmeter` light: torch, numba and altair are imported with
the first name that needs them.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from difflib import get_close_matches
from importlib import import_module
from types import ModuleType
from typing import Any, ClassVar

#: Rooms that are searched for a name that is missing at the top: to import them takes no time.
LIGHT = ("theory", "interventions", "simulation", "routes", "schedule", "measures", "data")


class LazyPackage(ModuleType):
    """A package whose names are looked up on first use.

    `homes` maps a name to the module (inside `tiltmeter`) that defines it; `rooms` maps a name to a module that is
    itself the value. A file may have the same name as a function (`predict` is in `theory/predict.py`): importing the
    file does not hide the function.
    """

    homes: ClassVar[Mapping[str, str]]
    rooms: ClassVar[Mapping[str, str]]

    def __getattr__(self, name: str) -> Any:
        if name in self.rooms:
            return import_module(f"tiltmeter.{self.rooms[name]}")
        if name not in self.homes:
            raise AttributeError(f"{self.__name__} has no {name!r}.{self._meant(name)}")
        try:
            value = getattr(import_module(f"tiltmeter.{self.homes[name]}"), name)
        except ModuleNotFoundError as error:
            if error.name != "torch":
                raise
            raise ModuleNotFoundError(f"`{name}` needs PyTorch: pip install 'tiltmeter[torch]'", name="torch") from None
        self.__dict__[name] = value
        return value

    def _meant(self, name: str) -> str:
        """Where the name is, or what was probably meant; nothing if that is not clear."""
        if name.startswith("_"):
            return ""
        rooms = {room: import_module(f"tiltmeter.{place}") for room, place in self.rooms.items() if place in LIGHT}
        found = [room for room, module in rooms.items() if name in dir(module)]
        if found:
            return f" Did you mean {self.__name__}.{found[0]}.{name}?"
        known = {one.lower(): one for one in {**self.homes, **self.rooms}}
        close = get_close_matches(name.lower(), known, 1, 0.8)
        return f" Did you mean {known[close[0]]}?" if close else ""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in {**self.homes, **self.rooms} and isinstance(value, ModuleType)):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        """The public names only, without what the file itself imports."""
        return sorted({*(name for name in self.__dict__ if name.startswith("__")), *self.homes, *self.rooms})


def offer(package: str, homes: Mapping[str, str], rooms: Mapping[str, str] | None = None) -> list[str]:
    """Make the package offer these names lazily; returns the names, for `__all__`."""
    named = {"homes": dict(homes), "rooms": dict(rooms or {})}
    sys.modules[package].__class__ = type("LazyPackage", (LazyPackage,), named)
    return [*homes, *(rooms or {})]
