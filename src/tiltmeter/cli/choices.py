"""choices: make an object with the options from a file, each checked against the type of its field."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

WORDS: dict[Any, str] = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}


def made(kind: Any, given: Mapping[str, Any], table: str) -> Any:
    """The frozen dataclass with these options of the table, or an error that says what they should be.

    >>> from tiltmeter.measures.named.line_spectrum import LineSpectrum
    >>> made(LineSpectrum, {"paths": ["within"], "lines": 8}, "measure").paths
    ('within',)
    >>> made(LineSpectrum, {"lines": "many"}, "measure")
    Traceback (most recent call last):
    TypeError: [measure]: `lines` should be a whole number. Found lines = 'many'.
    """
    hints = get_type_hints(kind)
    words = {
        field.name: _words(hints[field.name]) for field in fields(kind) if field.init and not field.name.startswith("_")
    }
    for key, value in given.items():
        if key not in words:
            known = ", ".join(name for name, said in words.items() if said)
            raise KeyError(f"[{table}]: unknown key {key!r}. There are: {known or 'none'}.")
        if not words[key]:
            raise TypeError(f"[{table}]: `{key}` is a Python object, which a file cannot contain.")
        if not _fits(value, hints[key]):
            raise TypeError(f"[{table}]: `{key}` should be {words[key]}. Found {key} = {value!r}.")
    return kind(**{key: _tuples(value) for key, value in given.items()})


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _fits(value: Any, hint: Any) -> bool:
    origin = get_origin(hint)
    if hint is Any:
        return True
    if origin in (Union, UnionType):
        return any(_fits(value, part) for part in get_args(hint))
    if origin is Literal:
        return value in get_args(hint)
    if origin is tuple:
        return isinstance(value, list) and all(_fits(one, get_args(hint)[0]) for one in value)
    if origin is not None and issubclass(origin, Mapping):
        return isinstance(value, dict) and all(_fits(one, get_args(hint)[1]) for one in value.values())
    if hint is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return hint in WORDS and isinstance(value, hint) and (hint is bool or not isinstance(value, bool))


def _words(hint: Any) -> str:
    """What a file should contain for this type of field, in words; empty if a file cannot contain it."""
    origin = get_origin(hint)
    if hint is Any:
        return "a value"
    if origin in (Union, UnionType):
        return " or ".join(filter(None, (_words(part) for part in get_args(hint) if part is not NoneType)))
    if origin is Literal:
        return " or ".join(f'"{one}"' for one in get_args(hint))
    if origin is tuple:
        inner = _words(get_args(hint)[0])
        return f"a list, each {inner}" if inner else ""
    if origin is not None and issubclass(origin, Mapping):
        return "a table" if _words(get_args(hint)[1]) else ""
    return WORDS.get(hint, "")
