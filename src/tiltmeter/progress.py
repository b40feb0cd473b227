"""Progress: lines on stderr, or below the cell of a notebook, for work that takes long; nothing for short work."""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self


class Progress:
    """Reports from time to time how much is done, but only after a few seconds.

    `say` describes what is done in words; the percentage and the remaining time are added.
    """

    def __init__(self, total: int, say: Callable[[int], str], patience: float = 3.0) -> None:
        self._total, self._say = total, say
        self._terminal = sys.stderr.isatty()
        self._cell = None if self._terminal else notebook_line()
        self._pause = 0.2 if self._terminal else 30.0 if self._cell is None else 1.0
        self._next = time.monotonic() + patience
        # Speed is measured after the first part, which may include compilation.
        self._began, self._done = 0.0, 0
        self._spoken = False

    def __call__(self, done: int) -> None:
        now = time.monotonic()
        if not self._done:
            self._began, self._done = now, done
        if now < self._next or not self._done < done < self._total:
            return
        self._next, self._spoken = now + self._pause, True
        left = (now - self._began) * (self._total - done) / (done - self._done)
        line = f"{self._say(done)} ({done / self._total:.0%}), {spell(left)} left"
        if self._cell is not None:
            self._cell(line)
            return
        print(
            f"\r{line:<60}" if self._terminal else line, end="" if self._terminal else "\n", file=sys.stderr, flush=True
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._spoken and self._cell is not None:
            self._cell("")
        elif self._spoken and self._terminal:
            print(f"\r{'':<60}\r", end="", file=sys.stderr, flush=True)


def in_notebook() -> bool:
    """Whether a cell of a notebook runs this."""
    module: Any = sys.modules.get("IPython")
    return module is not None and type(module.get_ipython()).__name__ == "ZMQInteractiveShell"


def notebook_line() -> Callable[[str], None] | None:
    """A line below the cell of a notebook, whose text can be changed; None outside of notebooks."""
    if not in_notebook():
        return None
    display = importlib.import_module("IPython.display").display
    handle: Any = None

    def show(text: str) -> None:
        nonlocal handle
        bundle = {"text/plain": text}
        if handle is None:
            handle = display(bundle, raw=True, display_id=True)
        else:
            handle.update(bundle, raw=True)

    return show


def spell(seconds: float) -> str:
    """A time in words.

    >>> spell(600)
    '10 min'
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
