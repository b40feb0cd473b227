"""python_state: plain Python values that a forward pass may change, to put back: counters, lists, generators.

They are looked for on the modules, on the classes of the user's modules, and in what their hooks remember. State that
lives elsewhere (global variables, files, objects deeper than three steps) is not seen.
"""

from __future__ import annotations

import inspect
import random
import sys
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

#: What every module has; torch itself takes care of these, or `untouched` does.
_OWN = frozenset(vars(nn.Module()))
_ATOMS = (type(None), bool, int, float, complex, str, bytes, type, nn.Module)
_HOOKS = ("_forward_hooks", "_forward_pre_hooks")
#: So many steps from a module to a value that is put back, and so many entries of one container.
DEPTH, MOST = 3, 10_000


class PythonState:
    """The plain state of modules at one moment; `put_back` restores it and says what it cannot restore."""

    def __init__(self, modules: Iterable[nn.Module]) -> None:
        self._seen: set[int] = set()
        self._restore: list[Callable[[], None]] = []
        self._watched: list[tuple[str, Callable[[], Any], Any]] = []
        for module in modules:
            self._attributes(module, type(module).__name__, 0, _OWN)
            for cls in _classes(type(module)):
                self._class(cls)
            for hook in _hooks(module):
                self._function(hook, f"a hook of {type(module).__name__}")

    def put_back(self) -> None:
        """Everything as it was; a change that cannot be undone is told once, by a warning."""
        for restore in self._restore:
            restore()
        changed = sorted({name for name, now, before in self._watched if now() != before})
        if changed:
            warnings.warn(
                f"Looking at the model changed {', '.join(changed)}, which cannot be put back: this training differs "
                "from the one without a probe.",
                stacklevel=5,
            )

    def _attributes(self, owner: Any, name: str, depth: int, skipped: frozenset[str] = frozenset()) -> None:
        held = vars(owner)
        before = {key: held[key] for key in held.keys() - skipped}

        def restore() -> None:
            for key in held.keys() - skipped - before.keys():
                del held[key]
            for key, value in before.items():
                if held.get(key, restore) is not value:
                    held[key] = value

        self._restore.append(restore)
        for key, value in before.items():
            self._value(value, f"{name}.{key}", depth)

    def _class(self, cls: type) -> None:
        if id(cls) in self._seen:
            return
        self._seen.add(id(cls))
        plain = {
            key: value
            for key, value in vars(cls).items()
            if not key.startswith("__") and not inspect.isroutine(value) and not hasattr(value, "__get__")
        }

        def restore() -> None:
            for key, value in plain.items():
                if vars(cls).get(key, restore) is not value:
                    setattr(cls, key, value)

        self._restore.append(restore)
        for key, value in plain.items():
            self._value(value, f"{cls.__name__}.{key}", 0)

    def _function(self, function: Any, name: str) -> None:
        owner = getattr(function, "__self__", None)
        if owner is not None and not isinstance(owner, nn.Module):
            self._value(owner, name, 0)
        elif not inspect.isroutine(function):
            self._value(function, name, 0)
        for cell in getattr(getattr(function, "__func__", function), "__closure__", None) or ():
            try:
                value = cell.cell_contents
            except ValueError:  # not filled yet
                continue

            def restore(cell: Any = cell, value: Any = value) -> None:
                if cell.cell_contents is not value:
                    cell.cell_contents = value

            self._restore.append(restore)
            self._value(value, name, 0)

    def _value(self, value: Any, name: str, depth: int) -> None:
        if isinstance(value, _ATOMS) or id(value) in self._seen or depth > DEPTH:
            return
        self._seen.add(id(value))
        if isinstance(value, Tensor):
            self._tensor(value)
        elif isinstance(value, np.ndarray):
            if value.size <= MOST and value.dtype != object:
                kept = value.copy()
                self._restore.append(lambda: None if np.array_equal(value, kept) else np.copyto(value, kept))
        elif isinstance(value, (list, deque, set, dict)):
            self._container(value, name, depth)
        elif isinstance(value, torch.Generator):
            state = value.get_state()

            def set_state() -> None:
                value.set_state(state)

            self._restore.append(set_state)
        elif isinstance(value, np.random.Generator):
            bits = value.bit_generator
            kept_bits = bits.state
            self._restore.append(lambda: setattr(bits, "state", kept_bits))
        elif isinstance(value, random.Random):
            held = value.getstate()
            self._restore.append(lambda: value.setstate(held))
        elif inspect.isgenerator(value):
            self._watched.append((name, lambda: _place(value), _place(value)))
        elif type(value).__module__ == "itertools":
            self._watched.append((name, lambda: repr(value), repr(value)))
        elif isinstance(value, tuple):
            for part in value[:MOST]:
                self._value(part, name, depth + 1)
        elif _has_state(value):
            self._attributes(value, name, depth + 1)

    def _tensor(self, value: Tensor) -> None:
        if value.numel() > MOST or value.is_inference():
            return
        version, kept = value._version, value.detach().clone()

        def restore() -> None:
            if value._version != version:
                with torch.no_grad():
                    value.copy_(kept)

        self._restore.append(restore)

    def _container(self, value: Any, name: str, depth: int) -> None:
        if len(value) > MOST:
            self._watched.append((name, lambda: len(value), len(value)))
            return
        kept = value.copy()

        def restore() -> None:
            if len(value) == len(kept) and all(a is b for a, b in zip(_entries(value), _entries(kept), strict=True)):
                return
            value.clear()
            (value.extend if isinstance(value, (list, deque)) else value.update)(kept)

        self._restore.append(restore)
        for part in value.values() if isinstance(value, dict) else value:
            self._value(part, name, depth + 1)


def _has_state(value: Any) -> bool:
    """Whether this is an object of the user's with attributes of its own."""
    foreign = type(value).__module__.split(".")[0] in ("torch", "numpy")
    return hasattr(value, "__dict__") and not foreign and not inspect.isroutine(value) and not inspect.ismodule(value)


def _entries(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for key, part in value.items():
            yield key
            yield part
    else:
        yield from value


def _classes(kind: type) -> list[type]:
    """The user's own classes of a module: not those of torch."""
    return [cls for cls in kind.__mro__ if cls is not object and cls.__module__.split(".")[0] != "torch"]


def _hooks(module: nn.Module) -> list[Any]:
    own = [vars(module)["forward"]] if "forward" in vars(module) else []
    return own + [hook for name in _HOOKS for hook in vars(module)[name].values()]


def _place(generator: Any) -> tuple[int, int]:
    frame = generator.gi_frame
    return (-1, 0) if frame is None else (frame.f_lasti, hash(tuple(map(repr, frame.f_locals.values()))) % sys.maxsize)
