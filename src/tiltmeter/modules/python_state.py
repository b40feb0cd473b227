"""Python state: what a model keeps outside parameters and buffers.

What hangs on its modules themselves is put back after an evaluation: tensors, numbers and other plain values that an
attribute names, and random generators. Everything else that a forward pass can reach may belong to others, as a list
that a background thread fills: it is not touched. Whether evaluating the model changes any of it is asked twice before
the training begins, and said.
"""

from __future__ import annotations

import inspect
import os
import random
import sys
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from types import FunctionType, MethodType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

#: What every module has; torch itself takes care of these, or `untouched` does.
_OWN = frozenset(vars(nn.Module()))
_ATOMS = (type(None), bool, int, float, complex, str, bytes, type)
#: Objects of these packages and of the standard library are not followed: they belong to the training, not to a model.
_PACKAGES = """torch numpy pandas xarray scipy sklearn tiltmeter lightning lightning_fabric pytorch_lightning
transformers accelerate ignite skorch wandb mlflow tensorboard aim comet_ml neptune"""
_FOREIGN = frozenset(_PACKAGES.split()) | (sys.stdlib_module_names - {"collections", "types", "functools"})
#: So many objects are looked at for one comparison.
OBJECTS = 200_000

Undo = Callable[[], None]


def attributes_to_put_back(modules: Iterable[nn.Module]) -> list[Undo]:
    """What undoes every change to the attributes of these modules; objects behind them are left alone."""
    undo: list[Undo] = []
    for module in modules:
        held = module.__dict__
        if len(held) > len(_OWN):
            undo.append(partial(_rebind, held, {key: held[key] for key in held.keys() - _OWN}))
            undo += [one for key in held.keys() - _OWN if (one := _undo(held[key])) is not None]
    return undo


def _rebind(held: dict[str, Any], before: dict[str, Any]) -> None:
    for key in held.keys() - before.keys() - _OWN:
        del held[key]
    for key, value in before.items():
        if held.get(key, before) is not value:
            held[key] = value


def _undo(value: Any) -> Undo | None:
    if isinstance(value, Tensor) and not value.is_meta:
        inference = value.is_inference()
        return partial(_write_back, value, value.detach().clone(), inference, 0 if inference else value._version)
    if isinstance(value, torch.Generator):
        return partial(_set_state, value, value.get_state())
    if isinstance(value, np.random.Generator):
        return partial(setattr, value.bit_generator, "state", value.bit_generator.state)
    if isinstance(value, np.random.RandomState):
        return partial(value.set_state, value.get_state(legacy=False))
    if isinstance(value, random.Random):
        return partial(value.setstate, value.getstate())
    return None


def _set_state(generator: torch.Generator, state: Tensor) -> None:
    generator.set_state(state)


def _write_back(value: Tensor, kept: Tensor, inference: bool, version: int) -> None:
    if not inference and value._version == version and value.layout is torch.strided and value.device.type != "cpu":
        return  # to compare there would wait for the device
    with torch.inference_mode(inference), torch.no_grad():
        if value.shape != kept.shape:
            value.data = kept
        elif not same_numbers(value, kept):
            value.copy_(kept)


def same_numbers(value: Tensor, kept: Tensor) -> bool:
    """Whether every number is the same; NaN is the same as NaN."""
    if value.layout is not torch.strided:
        return False
    return torch.equal(value, kept) or bool(((value == kept) | ((value != value) & (kept != kept))).all())


def state_within_reach(modules: Iterable[nn.Module]) -> tuple[dict[str, int], bool]:
    """A checksum of everything that a forward pass of these modules may change and that is not put back, by its name,
    and whether that was too much to look at.

    Followed are attributes (also in slots), containers, closures, default arguments, class attributes and the global
    variables that the user's own methods name, to any depth; and the settings of the process.
    """
    known = list(modules)
    walk = _Walk({id(module) for module in known})
    found = {"os.environ": zlib.crc32(repr(sorted(os.environ.items())).encode("utf-8", "surrogateescape"))}
    found["the settings of torch and NumPy"] = hash(
        (os.getcwd(), torch.get_default_dtype(), torch.get_num_threads(), tuple(sorted(np.geterr().items())))
    )
    for module in known:
        kind = type(module).__name__
        for key, value in list(vars(module).items()):
            if key not in _OWN:
                found[f"{kind}.{key}"] = walk.checksum(value)
        for cls in _own_classes(type(module)):
            for key, value in list(vars(cls).items()):
                if not key.startswith("__") or inspect.isroutine(value):
                    found[f"{cls.__name__}.{key}"] = walk.checksum(value)
        hooks = [hook for name in ("_forward_hooks", "_forward_pre_hooks") for hook in vars(module)[name].values()]
        found[f"a hook of {kind}"] = walk.checksum(tuple(hooks))
    while walk.variables:
        name, value = walk.variables.popitem()
        found[f"the variable {name}"] = walk.checksum(value)
    return found, walk.count > OBJECTS


class _Walk:
    """Goes through what values hold, each object once."""

    def __init__(self, seen: set[int]) -> None:
        self._seen, self.count = seen, 0
        self._alive: list[Any] = []  # an object that is gone may leave its number to the next
        #: Global variables that functions name, to be looked at under their own names.
        self.variables: dict[str, Any] = {}

    def checksum(self, value: Any) -> int:
        todo, found = deque([value]), 0
        while todo and self.count <= OBJECTS:
            one = todo.popleft()
            if not isinstance(one, _ATOMS):
                if id(one) in self._seen:
                    continue
                self._seen.add(id(one))
                self._alive.append(one)
                self.count += 1
            text, parts = self._parts(one)
            found = zlib.crc32(text, zlib.crc32(type(one).__name__.encode(), found))
            todo.extend(parts)
        return found

    def _parts(self, value: Any) -> tuple[bytes, Iterable[Any]]:
        """What a value says of itself, as bytes, and what it holds."""
        if isinstance(value, _ATOMS):
            return repr(value).encode("utf-8", "surrogatepass"), ()
        if isinstance(value, Tensor):
            plain = value.layout is torch.strided and value.device.type == "cpu" and not value.is_meta
            return _bytes(value.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy()) if plain else b"", ()
        if isinstance(value, np.ndarray):
            return (str(value.shape).encode(), value.ravel().tolist()) if value.dtype == object else (_bytes(value), ())
        if isinstance(value, dict):
            return str(len(value)).encode(), [*value.copy().keys(), *value.copy().values(), *_state(value)]
        if isinstance(value, (list, tuple, set, frozenset, deque)):
            return str(len(value)).encode(), [*list(value), *_state(value)]
        if isinstance(value, (FunctionType, MethodType, partial)) or inspect.isroutine(value):
            return b"", list(self._of_function(value))
        if isinstance(value, (staticmethod, classmethod, property)):
            made = (value.fget, value.fset) if isinstance(value, property) else (value.__func__,)
            return b"", [one for one in made if one is not None]
        if inspect.isgenerator(value):
            frame = value.gi_frame
            return b"" if frame is None else repr((frame.f_lasti, frame.f_locals)).encode("utf-8", "replace"), ()
        if hasattr(type(value), "__next__") and type(value).__module__ in ("itertools", "builtins"):
            try:
                return repr(value.__reduce__()).encode("utf-8", "replace"), ()
            except TypeError:
                return repr(value).encode("utf-8", "replace"), ()
        try:
            return _bytes(np.frombuffer(value, np.uint8)), ()  # bytearray, array.array and other buffers
        except (TypeError, ValueError, BufferError, AttributeError):
            return b"", _state(value)

    def _of_function(self, function: Any) -> Iterator[Any]:
        if isinstance(function, partial):
            yield from (function.func, function.args, function.keywords)
            return
        owner = getattr(function, "__self__", None)
        if owner is not None and not inspect.ismodule(owner):
            yield owner
        plain = getattr(function, "__func__", function)
        if not isinstance(plain, FunctionType):
            return
        yield from (plain.__dict__, plain.__defaults__, plain.__kwdefaults__)
        for cell in plain.__closure__ or ():
            try:
                yield cell.cell_contents
            except ValueError:  # not filled yet
                continue
        variables = plain.__globals__
        if str(variables.get("__name__")).split(".")[0] not in _FOREIGN:
            for name in plain.__code__.co_names:
                value = variables.get(name, _Walk)
                # Functions of the same file are called by the forward pass, and name variables of their own.
                if isinstance(value, FunctionType):
                    yield value
                elif value is not _Walk and not inspect.ismodule(value) and not isinstance(value, type):
                    self.variables.setdefault(name, value)


def _bytes(array: np.ndarray) -> bytes:
    data = np.ascontiguousarray(array).view(np.uint8).ravel() if array.size else np.zeros(0, np.uint8)
    return zlib.crc32(data.data).to_bytes(4, "little") + str(array.shape).encode()


def _state(value: Any) -> list[Any]:
    """The attributes of an object of the user's; nothing of objects of other packages."""
    kind = type(value)
    if kind.__module__.split(".")[0] in _FOREIGN and not isinstance(value, nn.Module):
        return []
    slots = {key: one for cls in kind.__mro__ for key, one in vars(cls).items() if inspect.ismemberdescriptor(one)}
    held = [getattr(value, key, None) for key in slots if not key.startswith("__")]
    hidden = [slot.__get__(value) for key, slot in slots.items() if key.startswith("_") and _is_set(slot, value)]
    return [*vars(value).values(), *held, *hidden] if hasattr(value, "__dict__") else [*held, *hidden]


def _is_set(slot: Any, owner: Any) -> bool:
    try:
        slot.__get__(owner)
    except AttributeError:
        return False
    return True


def _own_classes(kind: type) -> list[type]:
    """The user's own classes of a module: not those of torch."""
    return [cls for cls in kind.__mro__ if cls is not object and cls.__module__.split(".")[0] not in _FOREIGN]
