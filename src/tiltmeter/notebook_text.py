"""NotebookText: results that a notebook shows as their text."""

from __future__ import annotations

from html import escape

from tiltmeter.visible_text import visible


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
