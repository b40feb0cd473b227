"""Arguments: what the front doors take, checked in one way and refused in one form."""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from tiltmeter.shown_text import quoted

Kind = TypeVar("Kind")
#: More than any machine trains or simulates.
MOST_SEEDS = 10**8
#: What most doors take.
A_RUN = "a Trajectory, as of a Probe, `train` or `load`"
#: What chooses steps.
WHEN = "a choice of steps, as tm.record.every(1000)"


def checked_kind(name: str, value: Any, kind: type[Kind] | tuple[type[Kind], ...], wanted: str) -> Kind:
    """Return the value if it is of this kind.

    >>> checked_kind("title", 3, str, "a text")
    Traceback (most recent call last):
    TypeError: `title` should be a text. Found int.
    """
    if not isinstance(value, kind):
        raise TypeError(f"`{name}` should be {wanted}. Found {type(value).__name__}.")
    return value


def checked_flag(name: str, value: Any) -> bool:
    """Return a value that is True or False, of Python or of NumPy.

    >>> checked_flag("strict", "x")
    Traceback (most recent call last):
    TypeError: `strict` should be True or False. Found strict = 'x'.
    """
    if isinstance(value, bool) or type(value).__name__ in ("bool_", "bool"):
        return bool(value)
    raise TypeError(f"`{name}` should be True or False. Found {name} = {quoted(value)}.")


def checked_choice(name: str, value: Any, choices: tuple[Any, ...]) -> None:
    """Refuse a value that is none of these.

    >>> checked_choice("missing", 3, ("drop", "error"))
    Traceback (most recent call last):
    ValueError: `missing` should be one of 'drop' and 'error'. Found missing = 3.
    """
    if not any(value is one or (isinstance(value, str) and value == one) for one in choices):
        *most, last = map(repr, choices)
        raise ValueError(f"`{name}` should be one of {', '.join(most)} and {last}. Found {name} = {quoted(value)}.")


def checked_scalar(name: str, value: Any) -> None:
    """Refuse an array where one value is meant."""
    if getattr(value, "ndim", 0) or getattr(value, "shape", ()):
        raise TypeError(f"`{name}` should be a single value. Found {type(value).__name__}.")


def checked_count(name: str, value: Any, most: int = 2**31) -> int:
    """Return a whole number from 1 on.

    >>> checked_count("chunk", 0)
    Traceback (most recent call last):
    ValueError: `chunk` should be a whole number from 1 to 2,147,483,648. Found chunk = 0.
    """
    try:
        whole = 0 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        whole = 0
    if not 1 <= whole <= most:
        raise ValueError(f"`{name}` should be a whole number from 1 to {most:,}. Found {name} = {quoted(value)}.")
    return whole


def checked_number(name: str, value: Any) -> float:
    """Return a finite number."""
    try:
        found = float(value) if not isinstance(value, (bool, str, bytes)) else math.nan
    except (TypeError, ValueError, OverflowError):
        found = math.nan
    if not math.isfinite(found):
        raise ValueError(f"`{name}` should be a finite number. Found {name} = {quoted(value)}.")
    return found


def checked_function(name: str, value: Any) -> None:
    """Refuse what cannot be called; None is no function and is fine."""
    if value is not None and not callable(value):
        raise TypeError(f"`{name}` should be a function, or None. Found {type(value).__name__}.")


def checked_list(name: str, value: Any, wanted: str) -> list[Any]:
    """Return the parts of a list, tuple or array; text, mappings and single values are none.

    >>> checked_list("features", 3, "a list of columns")
    Traceback (most recent call last):
    TypeError: `features` should be a list of columns. Found int.
    """
    if not isinstance(value, (str, bytes, Mapping)):
        try:
            return list(value)
        except TypeError:
            pass
    raise TypeError(f"`{name}` should be {wanted}. Found {type(value).__name__}.")


def checked_names(name: str, value: Any) -> list[str]:
    """Return a list of names of curves; text alone is none."""
    found = checked_list(name, value, "a list of names of curves")
    wrong = [one for one in found if not isinstance(one, str)]
    if wrong:
        raise TypeError(f"`{name}` should be a list of names of curves. Found {quoted(wrong[0])} in it.")
    return found


def checked_path(name: str, value: Any) -> Path:
    """Return the value as the path of a file or folder."""
    if not isinstance(value, (str, os.PathLike)):
        raise TypeError(f"`{name}` should be the path of a file or folder. Found {type(value).__name__}.")
    if not os.fspath(value):
        raise ValueError(f"`{name}` should be the path of a file or folder. Found an empty text.")
    try:
        path = Path(value)
        os.fsencode(path)
    except (TypeError, ValueError):
        raise ValueError(f"`{name}` should be a path that can be written. Found {quoted(value)}.") from None
    if any(len(os.fsencode(part)) > 255 for part in path.parts):
        raise ValueError(f"`{name}` should have names of at most 255 bytes. Found {quoted(value)}.")
    return path


def checked_share(name: str, value: Any) -> float:
    """Return a number strictly between 0 and 1.

    >>> checked_share("level", 1.5)
    Traceback (most recent call last):
    ValueError: `level` should lie strictly between 0 and 1. Found level = 1.5.
    """
    if isinstance(value, bool) or not _is_number(value) or not 0 < value < 1:
        raise ValueError(f"`{name}` should lie strictly between 0 and 1. Found {name} = {quoted(value)}.")
    return float(value)


def checked_seed(value: Any) -> int:
    """Return a whole number that torch and NumPy take as a seed."""
    if isinstance(value, bool) or not _is_number(value) or value != value // 1 or not 0 <= value < 2**63:
        raise ValueError(f"`seed` should be a whole number from 0 to 2**63 - 1. Found seed = {quoted(value)}.")
    return int(value)


def checked_seeds(value: Any) -> tuple[int, ...]:
    """Return the seeds that are meant: how many (0, 1, 2, ...), or which.

    >>> checked_seeds(3), checked_seeds([7, 8])
    ((0, 1, 2), (7, 8))
    """
    wanted = "`seeds` should be how many, or a list of different whole numbers from 0"
    if isinstance(value, (str, bytes, bool, Mapping)):
        raise TypeError(f"{wanted}. Found seeds = {quoted(value)}.")
    try:
        count = operator.index(value)
    except TypeError:
        try:
            found = tuple(-1 if isinstance(seed, bool) else operator.index(seed) for seed in value)
        except TypeError:
            raise TypeError(f"{wanted}. Found seeds = {quoted(value)}.") from None
    else:
        if not 1 <= count <= MOST_SEEDS:
            raise ValueError(f"`seeds` should lie between 1 and {MOST_SEEDS:,}. Found seeds = {quoted(value)}.")
        found = tuple(range(count))
    if not found or len(set(found)) < len(found) or min(found) < 0:
        raise ValueError(f"{wanted}. Found seeds = {quoted(value)}.")
    return found


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) or (hasattr(value, "dtype") and getattr(value, "ndim", 1) == 0)
