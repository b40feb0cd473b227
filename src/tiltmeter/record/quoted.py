"""Values quoted in messages, shortened, whatever they contain."""

from __future__ import annotations

import reprlib

_REPR = reprlib.Repr()
_REPR.maxlevel, _REPR.maxstring, _REPR.maxother, _REPR.maxlong = 4, 60, 60, 40
_REPR.maxlist = _REPR.maxtuple = _REPR.maxdict = 6


def quoted(value: object, limit: int = 80) -> str:
    """Return a value as Python writes it, shortened to fit in a sentence.

    >>> quoted("loss")
    "'loss'"
    >>> len(quoted(["x" * 1000] * 1000))
    80
    """
    try:
        return shortened(_REPR.repr(value), limit)
    except (ValueError, RecursionError):  # an integer of thousands of digits, or deeply nested brackets
        return f"a very long {type(value).__name__}"


def shortened(text: str, limit: int = 200) -> str:
    """Return text on one line, shortened to this many characters, without control characters."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text[: 4 * limit]).split())
    return line if len(line) <= limit else line[: limit - 3] + "..."
