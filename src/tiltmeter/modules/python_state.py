"""Python state: what modules keep outside parameters and buffers, copied before an evaluation and put back after it."""

from __future__ import annotations

import inspect
import operator
import random
import sys
import weakref
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from types import FunctionType, MethodType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from tiltmeter.shown_text import warn_caller

#: What every module has; torch itself takes care of these, or `untouched` does.
_OWN = frozenset(vars(nn.Module()))
_ATOMS = (type(None), bool, int, float, complex, str, bytes, type)
_HOOKS = ("_forward_hooks", "_forward_pre_hooks")
#: Objects of these packages and of the standard library are not followed: they belong to the training, not to a model.
_PACKAGES = """torch numpy pandas xarray scipy sklearn tiltmeter lightning lightning_fabric pytorch_lightning
transformers accelerate ignite skorch wandb mlflow tensorboard aim comet_ml neptune"""
_FOREIGN = frozenset(_PACKAGES.split()) | (sys.stdlib_module_names - {"collections", "types", "functools"})

#: So many bytes are copied at most for one evaluation, and so many objects followed.
BYTES, OBJECTS = 2**28, 200_000

_SEEN_BEFORE: weakref.WeakSet[nn.Module] = weakref.WeakSet()


class PythonState:
    """The plain state of modules at one moment; `put_back` restores it and says what it cannot restore.

    Followed are attributes (also in slots), containers, closures, default arguments and the global variables that the
    user's methods name, to any depth. Large arrays are compared at the first evaluation of a model only, so that a
    training that cannot be left alone is said to be so before its first step.
    """

    def __init__(self, modules: Iterable[nn.Module]) -> None:
        known = list(modules)
        self._modules = {id(module) for module in known}
        self._first = bool(known) and known[0] not in _SEEN_BEFORE
        _SEEN_BEFORE.update(known[:1])
        self._bytes, self._seen = BYTES, set[int]()
        self._restore: list[Callable[[], None]] = []
        self._watched: list[tuple[str, Callable[[], Any], Any]] = []
        self._todo: deque[tuple[Any, str]] = deque()
        for module in known:
            name = type(module).__name__
            self._attributes(module, name, _OWN)
            for cls in _classes(type(module)):
                self._class(cls)
            for hook in _hooks(module):
                self._function(hook, f"a hook of {name}")
        while self._todo and len(self._seen) < OBJECTS:
            self._follow(*self._todo.popleft())
        if self._todo and self._first:
            warn_caller(
                f"{self._todo[0][1]} holds more than {OBJECTS:,} objects: if evaluating the model changes one of the "
                "others, this is not noticed.",
            )

    def put_back(self) -> None:
        """Everything as it was; a change that cannot be undone is said by a warning."""
        for restore in self._restore:
            restore()
        changed = sorted({name for name, now, before in self._watched if now() != before})
        if changed:
            warn_caller(
                f"Looking at the model changed {', '.join(changed)}, which cannot be put back: this training differs "
                "from the one without a probe.",
            )

    def _value(self, value: Any, name: str) -> None:
        """Follow this value later, unless nothing about it can change or it is followed already."""
        if not isinstance(value, _ATOMS) and id(value) not in self._seen and id(value) not in self._modules:
            self._seen.add(id(value))
            self._todo.append((value, name))

    def _follow(self, value: Any, name: str) -> None:
        if isinstance(value, Tensor):
            self._tensor(value, name)
        elif isinstance(value, np.ndarray):
            self._array(value, name)
        elif isinstance(value, (list, deque, set, dict)):
            self._container(value, name)
        elif isinstance(value, bytearray):
            kept = bytes(value)
            self._restore.append(lambda: None if value == kept else value.__setitem__(slice(None), kept))
        elif isinstance(value, (tuple, frozenset)):
            for part in value:
                self._value(part, name)
        elif isinstance(value, torch.Generator):
            state = value.get_state()
            self._restore.append(partial(_set_state, value, state))
        elif isinstance(value, np.random.Generator):
            bits = value.bit_generator
            kept_bits = bits.state
            self._restore.append(lambda: setattr(bits, "state", kept_bits))
        elif isinstance(value, np.random.RandomState):
            legacy = value.get_state(legacy=False)
            self._restore.append(lambda: value.set_state(legacy))
        elif isinstance(value, random.Random):
            held = value.getstate()
            self._restore.append(lambda: value.setstate(held))
        elif isinstance(value, (FunctionType, MethodType, partial)):
            self._function(value, name)
        elif inspect.isgenerator(value):
            self._watched.append((name, lambda: _place(value), _place(value)))
        elif hasattr(type(value), "__next__") and type(value).__module__ in ("itertools", "builtins"):
            self._watched.append((name, lambda: _reduced(value), _reduced(value)))
        elif isinstance(value, nn.Module) or _has_state(value):
            self._attributes(value, name)

    def _affordable(self, size: int) -> bool:
        fits = size <= self._bytes
        self._bytes -= size if fits else 0
        return fits

    def _attributes(self, owner: Any, name: str, skipped: frozenset[str] = frozenset()) -> None:
        held = getattr(owner, "__dict__", {})
        before = {key: held[key] for key in held.keys() - skipped}

        def restore() -> None:
            for key in held.keys() - skipped - before.keys():
                del held[key]
            for key, value in before.items():
                if held.get(key, restore) is not value:
                    held[key] = value

        self._restore.append(restore)
        for key, value in before.items():
            self._value(value, f"{name}.{key}")
        for key, slot in _slots(type(owner)).items():
            value = getattr(owner, key, _slots)
            self._restore.append(partial(_put_slot_back, owner, key, slot, value))
            self._value(value, f"{name}.{key}")

    def _class(self, cls: type) -> None:
        if id(cls) in self._seen:
            return
        self._seen.add(id(cls))
        held = {key: value for key, value in vars(cls).items() if not key.startswith("__")}
        plain = {key: v for key, v in held.items() if not inspect.isroutine(v) and not hasattr(v, "__get__")}

        def restore() -> None:
            for key in vars(cls).keys() - held.keys():
                if not key.startswith("__"):
                    delattr(cls, key)
            for key, value in plain.items():
                if vars(cls).get(key, restore) is not value:
                    setattr(cls, key, value)

        self._restore.append(restore)
        for key, value in plain.items():
            self._value(value, f"{cls.__name__}.{key}")
        for key, value in vars(cls).items():
            method = getattr(value, "__func__", value)
            if isinstance(method, FunctionType) and id(method) not in self._seen:
                self._seen.add(id(method))
                self._function(method, f"{cls.__name__}.{key}")

    def _function(self, function: Any, name: str) -> None:
        """What a function can keep: its object, its closure, its defaults, its attributes, variables of its file."""
        if isinstance(function, partial):
            for part in (function.func, function.args, function.keywords):
                self._value(part, name)
            return
        owner = getattr(function, "__self__", None)
        if owner is not None or not inspect.isroutine(function):
            self._value(function if owner is None else owner, name)
        plain = getattr(function, "__func__", function)
        if not isinstance(plain, FunctionType):
            return
        self._value(plain.__dict__, name)
        for held in (plain.__defaults__, plain.__kwdefaults__):
            self._value(held, name)
        for cell in plain.__closure__ or ():
            try:
                value = cell.cell_contents
            except ValueError:  # not filled yet
                continue

            def restore(cell: Any = cell, value: Any = value) -> None:
                if cell.cell_contents is not value:
                    cell.cell_contents = value

            self._restore.append(restore)
            self._value(value, name)
        self._globals(plain)

    def _globals(self, function: FunctionType) -> None:
        variables = function.__globals__
        if str(variables.get("__name__")).split(".")[0] in _FOREIGN:
            return
        for name in function.__code__.co_names:
            value = variables.get(name, _slots)
            if value is _slots or inspect.ismodule(value) or isinstance(value, type) or inspect.isroutine(value):
                continue

            def restore(name: str = name, value: Any = value) -> None:
                if variables.get(name, _slots) is not value:
                    variables[name] = value

            self._restore.append(restore)
            self._value(value, f"the variable {name}")

    def _tensor(self, value: Tensor, name: str) -> None:
        if value.is_meta:
            return
        inference = value.is_inference()
        version = 0 if inference else value._version
        if not self._affordable(value.numel() * value.element_size()):
            self._watched.append((name, lambda: 0 if inference else value._version, version))
            return
        kept = value.detach().clone()
        told = not inference and (value.layout is not torch.strided or value.device.type != "cpu")

        def restore() -> None:
            if not inference and value._version == version and (told or _equal(value, kept)):
                return
            with torch.inference_mode(inference), torch.no_grad():
                if value.shape != kept.shape:
                    value.data = kept
                elif told or not _equal(value, kept):
                    value.copy_(kept)

        self._restore.append(restore)

    def _array(self, value: np.ndarray, name: str) -> None:
        if value.dtype == object:
            for part in value.ravel().tolist():
                self._value(part, name)
        if not value.flags.writeable:
            return
        if self._affordable(value.nbytes):
            kept = value.copy()
            self._restore.append(lambda: None if np.array_equal(value, kept) else np.copyto(value, kept))
        elif self._first:
            self._watched.append((name, lambda: _checksum(value), _checksum(value)))

    def _container(self, value: Any, name: str) -> None:
        if not self._affordable(8 * len(value)):
            self._watched.append((name, lambda: len(value), len(value)))
            return
        kept = value.copy()

        def restore() -> None:
            if len(value) == len(kept) and all(map(operator.is_, _entries(value), _entries(kept))):
                return
            value.clear()
            (value.extend if isinstance(value, (list, deque)) else value.update)(kept)

        self._restore.append(restore)
        parts = value.values() if isinstance(value, dict) else value
        if not set(map(type, parts)) <= set(_ATOMS):
            for part in parts:
                self._value(part, name)
        if _has_state(value):  # a class of the user's that is a list or a dict
            self._attributes(value, name)


def _has_state(value: Any) -> bool:
    """Whether this is an object of the user's with attributes of its own."""
    foreign = type(value).__module__.split(".")[0] in _FOREIGN
    return not foreign and not inspect.ismodule(value) and (hasattr(value, "__dict__") or bool(_slots(type(value))))


def _set_state(generator: torch.Generator, state: Tensor) -> None:
    generator.set_state(state)


def _slots(kind: type) -> dict[str, Any]:
    found = {key: one for cls in kind.__mro__ for key, one in vars(cls).items() if inspect.ismemberdescriptor(one)}
    return {} if kind.__module__.split(".")[0] in _FOREIGN else found


def _put_slot_back(owner: Any, key: str, slot: Any, value: Any) -> None:
    if getattr(owner, key, _slots) is not value:
        slot.__delete__(owner) if value is _slots else slot.__set__(owner, value)


def _equal(value: Tensor, kept: Tensor) -> bool:
    """Whether every number is the same; NaN is the same as NaN."""
    if torch.equal(value, kept):
        return True
    return value.shape == kept.shape and bool(((value == kept) | ((value != value) & (kept != kept))).all())


def _checksum(value: np.ndarray) -> int:
    return zlib.crc32(np.ascontiguousarray(value).view(np.uint8).data)


def _entries(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for key, part in value.items():
            yield key
            yield part
    else:
        yield from value


def _classes(kind: type) -> list[type]:
    """The user's own classes of a module: not those of torch."""
    return [cls for cls in kind.__mro__ if cls is not object and cls.__module__.split(".")[0] not in _FOREIGN]


def _hooks(module: nn.Module) -> list[Any]:
    own = [vars(module)["forward"]] if "forward" in vars(module) else []
    return own + [hook for name in _HOOKS for hook in vars(module)[name].values()]


def _place(generator: Any) -> tuple[int, int]:
    frame = generator.gi_frame
    return (-1, 0) if frame is None else (frame.f_lasti, hash(tuple(map(repr, frame.f_locals.values()))) % sys.maxsize)


def _reduced(iterator: Any) -> str:
    """Where an iterator stands, as far as it says."""
    try:
        return repr((operator.length_hint(iterator, -1), iterator.__reduce__()))
    except TypeError:
        return repr(iterator)
