"""Shown text: whatever names and values contain, as text that a terminal, a message or a notebook can show."""

from __future__ import annotations

import math
import re
import reprlib
import sys
import warnings
from collections.abc import Hashable, Sequence
from html import escape

#: Control characters except line feed and tab, line and paragraph separators (they end a text in expressions of Vega),
#: marks that reverse the direction of writing, halves of characters.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufffe\uffff]"
)


def visible(text: str) -> str:
    r"""The text with every character that is obeyed rather than shown written as its escape.

    >>> print(visible("a\x1b[31m\u202eb"))
    a\x1b[31m\u202eb
    """
    return _HIDDEN.sub(lambda found: repr(found[0])[1:-1] if found[0] != "\x7f" else r"\x7f", text)


def group_name(group: Hashable) -> str:
    """A group label as text; the parts of an intersection of attributes (a tuple) are joined.

    >>> group_name(("young", "rural")), group_name(1)
    ('young & rural', '1')
    """
    return visible(" & ".join(map(str, group)) if isinstance(group, tuple) else str(group))


class NotebookText:
    """Gives a result with a text (`__str__`) its HTML representation: the same words, escaped, tables aligned.

    >>> class Verdict(NotebookText):
    ...     def __str__(self):
    ...         return "a < b."
    >>> Verdict()._repr_html_()
    '<div><p>a &lt; b.</p></div>'
    """

    __slots__ = ()

    def _repr_html_(self) -> str:
        return text_html(str(self))


def text_html(text: str) -> str:
    """Text as HTML: its first line as a paragraph, further ones with their spaces kept; nothing in it becomes code."""
    first, *more = visible(text).split("\n")
    rest = "\n".join(more).rstrip()
    style = "background:none;border:0;margin:0;padding:0"
    table = f"<pre style='{style}'>{escape(rest)}</pre>" if rest else ""
    return f"<div><p>{escape(first)}</p>{table}</div>"


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


def warn_caller(text: str) -> None:
    """Warn at the line of the first caller outside this package, however deep the call."""
    level, frame = 1, sys._getframe(0)
    # A context manager of ours ends inside Python's contextlib.
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] in ("tiltmeter", "contextlib"):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, stacklevel=level)


def tell_caller(text: str) -> None:
    """The same inside a loop of the user's: where warnings are errors, it is written to stderr instead of raised."""
    try:
        warn_caller(text)
    except Warning:
        print(f"tiltmeter: {visible(text)}", file=sys.stderr)


def numbered(names: Sequence[str]) -> list[str]:
    """Return the names, with a number added to those that occur more than once.

    >>> numbered(["theory", "training", "training"])
    ['theory', 'training 1', 'training 2']
    """
    return [f"{name} {names[: i + 1].count(name)}" if names.count(name) > 1 else name for i, name in enumerate(names)]


def percent(share: float, digits: int | None = None) -> str:
    """A share in per cent, with one digit below 10 % unless told otherwise.

    >>> percent(0.0347), percent(0.431), percent(1.0), percent(float("nan")), percent(0.1, 1)
    ('3.5 %', '43 %', '100 %', 'no data', '10.0 %')
    """
    if not math.isfinite(share):
        return "no data"
    if math.isinf(100 * share):
        return f"{share:.3g}"  # no share: a damaged file may hold such a number
    places = (1 if abs(share) < 0.0995 else 0) if digits is None else digits
    return f"{minus(100 * share, places)} %"


def minus(value: float, digits: int) -> str:
    """A number with so many digits after the point, a true minus sign, and no minus before zero.

    >>> minus(-1.25, 1), minus(-0.01, 1)
    ('\N{MINUS SIGN}1.2', '0.0')
    """
    text = f"{value:.{digits}f}"
    if float(text) == 0:
        text = text.replace("-", "")
    return text.replace("-", "\N{MINUS SIGN}")
