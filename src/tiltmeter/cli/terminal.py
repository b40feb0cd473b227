"""terminal: output of the verbs, without control sequences from names."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any

from tiltmeter.visible_text import visible

#: The only codes that reach a terminal: the bold headers of our own tables and, on stderr, the start of the line that
#: progress rewrites.
BOLD, REWRITE = ("\x1b[1m", "\x1b[0m"), ("\r",)


class VisibleStream:
    """A stream that writes text with its control characters made visible."""

    def __init__(self, stream: Any, kept: tuple[str, ...]) -> None:
        self._stream, self._kept = stream, kept

    def write(self, text: str) -> int:
        parts = [text]
        for code in self._kept:
            parts = [piece for part in parts for piece in _cut(part, code, self._kept)]
        self._stream.write("".join(part if part in self._kept else visible(part) for part in parts))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def safe_output() -> Iterator[None]:
    """Within this context, printed text cannot control the terminal, and a warning is one sentence."""

    def told(message: Warning | str, *_: object, **__: object) -> None:
        print(f"tiltmeter: {message}", file=sys.stderr)

    out: Any = VisibleStream(sys.stdout, BOLD)
    err: Any = VisibleStream(sys.stderr, REWRITE)
    with redirect_stdout(out), redirect_stderr(err), warnings.catch_warnings():
        warnings.showwarning = told
        yield


def print_table(table: Any) -> None:
    """Print a table whose cells are plain text: brackets are not markup, and colons are not emoji."""
    from rich.console import Console

    Console(highlight=False, markup=False, emoji=False).print(table)


def _cut(text: str, code: str, kept: tuple[str, ...]) -> list[str]:
    """The text cut around every occurrence of the code."""
    if text in kept:
        return [text]
    pieces: list[str] = []
    for place, piece in enumerate(text.split(code)):
        pieces += [code, piece] if place else [piece]
    return [piece for piece in pieces if piece]
