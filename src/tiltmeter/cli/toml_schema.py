"""toml_schema: checks of the tables of a TOML file, before they are used.

Every error names the file, the table and the key, what it should be, and what was found.
"""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

WORDS: dict[Any, str] = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}
_SHORT = reprlib.Repr()
_SHORT.maxlist = _SHORT.maxdict = 4
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 60


@dataclass(frozen=True)
class Between:
    """Numbers from `low` to `high`; without `low_too` the lowest itself is excluded."""

    low: float
    high: float = float("inf")
    low_too: bool = True

    def __contains__(self, value: float) -> bool:
        return (self.low <= value if self.low_too else self.low < value) and value <= self.high

    def __str__(self) -> str:
        if self.high == float("inf"):
            return f"of at least {self.low:,}" if self.low_too else f"above {self.low:,}"
        return f"from {self.low:,} to {self.high:,}" if self.low_too else f"above {self.low:,} and up to {self.high:,}"


def check_table(given: Any, hints: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return the table, after checking every key and the type of every value.

    >>> check_table({"hidden": [8, -3]}, {"hidden": tuple[Annotated[int, Between(1)], ...]}, "[model]")
    Traceback (most recent call last):
    TypeError: [model]: `hidden` should be a list, each a whole number of at least 1. Found hidden = [8, -3].
    """
    if not isinstance(given, Mapping):
        raise TypeError(f"{where} should be a table of keys and values. Found {short(given)}.")
    check_keys(given, [key for key, hint in hints.items() if words(hint)], where, also=hints)
    for key, value in given.items():
        if not words(hints[key]):
            raise TypeError(f"{where}: `{key}` is an object of Python, which a file cannot hold.")
        if not fits(value, hints[key]):
            raise TypeError(f"{where}: `{key}` should be {words(hints[key])}. Found {key} = {short(value)}.")
    return dict(given)


def check_keys(given: Iterable[Any], names: Iterable[str], where: str, also: Iterable[str] = ()) -> None:
    """Refuse a key that is not among the names, with the nearest name where there is one."""
    names = list(names)
    for key in given:
        if key not in names and key not in also:
            near = get_close_matches(str(key), names, 1, 0.6)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise KeyError(f"{where}: unknown key {short(key)}. There are: {', '.join(names) or 'none'}.{hint}")


def short(value: Any) -> str:
    """Return a value as a message shows it, shortened."""
    return _SHORT.repr(value)


def fits(value: Any, hint: Any) -> bool:
    """Whether a value of a file is of this kind."""
    origin = get_origin(hint)
    if hint is Any:
        return True
    if origin is Annotated:
        kind, limits = get_args(hint)
        return fits(value, kind) and value in limits
    if origin in (Union, UnionType):
        return any(fits(value, part) for part in get_args(hint))
    if origin is Literal:
        return value in get_args(hint)
    if origin is tuple:
        return isinstance(value, list) and all(fits(one, get_args(hint)[0]) for one in value)
    if origin is not None and issubclass(origin, Mapping):
        return isinstance(value, dict) and all(fits(one, get_args(hint)[1]) for one in value.values())
    if hint is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e300
    return hint in WORDS and isinstance(value, hint) and (hint is bool or not isinstance(value, bool))


def words(hint: Any) -> str:
    """Return in words what a file should hold for this type; empty if a file cannot hold it."""
    origin = get_origin(hint)
    if hint is Any:
        return "a value"
    if origin is Annotated:
        kind, limits = get_args(hint)
        return f"{words(kind)} {limits}"
    if origin in (Union, UnionType):
        return " or ".join(filter(None, (words(part) for part in get_args(hint) if part is not NoneType)))
    if origin is Literal:
        return " or ".join(f'"{one}"' for one in get_args(hint))
    if origin is tuple:
        inner = words(get_args(hint)[0])
        return f"a list, each {inner}" if inner else ""
    if origin is not None and issubclass(origin, Mapping):
        inner = words(get_args(hint)[1])
        return (f"a table, each {inner}" if inner != "a value" else "a table") if inner else ""
    return WORDS.get(hint, "")
