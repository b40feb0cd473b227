"""FunctionReference: a function by name, so that another process or machine can find it without unpickling."""

from __future__ import annotations

import hashlib
import importlib
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

from tiltmeter.shown_text import quoted


@dataclass(frozen=True)
class FunctionReference:
    """Where a module-level function lives.

    >>> from math import hypot
    >>> reference = FunctionReference.of(FunctionReference.of)
    Traceback (most recent call last):
    TypeError: `cell` should be a function at the top level of a module. Found FunctionReference.of in ...
    >>> FunctionReference("math", "hypot", None).find() is hypot
    True

    `folder` is where to look if the module is not installed: the place of a script or of a file beside it.
    """

    module: str
    name: str
    folder: str | None

    @classmethod
    def of(cls, function: Callable[..., Any]) -> FunctionReference:
        """The reference of a function that others can import; TypeError for lambdas and functions inside functions."""
        if not callable(function):
            raise TypeError(f"`cell` should be a function. Found {type(function).__name__}.")
        module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
        if module is None or name is None or not name.isidentifier():
            place = f"{name or type(function).__name__} in {module}"
            raise TypeError(f"`cell` should be a function at the top level of a module. Found {place}.")
        file = _file(module)
        if module == "__main__":
            if file is None:
                raise TypeError(
                    "`cell` should be a function that other processes can import: put it into a file of its own. "
                    f"Found {name} of an interactive session."
                )
            module = file.stem
        elif module not in sys.modules:
            raise TypeError(f"`cell` should be a function of an importable module. Found {name} of {module!r}.")
        depth = module.count(".") + (file is not None and file.stem == "__init__")
        folder = None if file is None or "site-packages" in file.parts else str(file.parents[depth])
        return cls(module, name, folder)

    @classmethod
    def from_text(cls, text: str, folder: Path) -> FunctionReference:
        """The function that `module:function` names, the module installed or a file in the folder."""
        module, colon, name = text.partition(":")
        if not colon or not name.isidentifier() or not all(part.isidentifier() for part in module.split(".")):
            raise ValueError(f'`cell` should be "module:function". Found cell = {text!r}.')
        return cls(module, name, str(folder.resolve()))

    def find(self) -> Callable[..., Any]:
        """The function itself, imported now."""
        main = sys.modules.get("__main__")
        file = getattr(main, "__file__", None)
        if file is not None and Path(file).stem == self.module and hasattr(main, self.name):
            return getattr(main, self.name)  # type: ignore[no-any-return]
        # Behind all others, so that a file of the user hides nothing that is installed.
        if self.folder is not None and self.folder not in sys.path:
            sys.path.append(self.folder)
        try:
            found = getattr(importlib.import_module(self.module), self.name, None)
        except ModuleNotFoundError as error:
            if error.name != self.module:
                raise
            raise ValueError(f"No module {self.module!r}: install it, or put its file into {self.folder}.") from None
        if not callable(found):
            raise TypeError(f"`cell` should name a function. Found no function {self.name!r} in {self.module}.")
        return found  # type: ignore[no-any-return]

    @property
    def text(self) -> str:
        """Its name as a file or a message shows it."""
        return f"{self.module}:{self.name}"

    def fingerprint(self) -> str:
        """Of the source file it stands in: tells whether the code changed. It does not see what that file imports.

        The file is found without importing it.
        """
        file = self._source()
        try:
            return "unknown" if file is None else hashlib.sha256(file.read_bytes()).hexdigest()[:16]
        except OSError:
            return "unknown"

    def _source(self) -> Path | None:
        """The source file of the module, where `find` would find it; None for modules without one."""
        main = getattr(sys.modules.get("__main__"), "__file__", None)
        loaded = _file(self.module)
        if main is not None and Path(main).stem == self.module:
            loaded = Path(main).resolve()
        if loaded is None:
            places: list[str] | None = [*sys.path, *([self.folder] if self.folder is not None else [])]
            for depth in range(self.module.count(".") + 1):
                name = ".".join(self.module.split(".")[: depth + 1])
                spec = None if places is None else PathFinder.find_spec(name, places)
                if spec is None:
                    return None
                places = spec.submodule_search_locations
                loaded = None if spec.origin is None else Path(spec.origin)
        return loaded if loaded is not None and loaded.suffix == ".py" else None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, value: Any) -> FunctionReference:
        """The reference that `to_json` gave; a ValueError for anything else."""
        names = [field.name for field in fields(cls)]
        if not isinstance(value, dict) or set(value) - set(names):
            raise ValueError(f"`cell` should name a function. Found {quoted(value)}.")
        for name in names:
            optional = name == "folder" and value.get(name) is None
            if not optional and not isinstance(value.get(name), str):
                raise ValueError(f"`cell` should name a function. Found {name} = {quoted(value.get(name))}.")
        return cls(**value)


def _file(module: str) -> Path | None:
    file = getattr(sys.modules.get(module), "__file__", None)
    return None if file is None else Path(file).resolve()
