"""ProgressLine: how far a study is, on stderr: done, failed, left, and an estimate of the time."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

from tiltmeter.progress import spell
from tiltmeter.study.time_left import seconds_left


class ProgressLine:
    """One line that is overwritten on a terminal; elsewhere one line every half minute, if something changed."""

    def __init__(self, total: int, done: int, shown: bool) -> None:
        self._total, self._before = total, done
        self._shown = shown
        self._terminal = sys.stderr.isatty()
        self._next = time.monotonic() + (0.0 if self._terminal else 3.0)
        self._times: list[tuple[Mapping[str, Any], float]] = []
        self._failed = 0
        self._said: tuple[int, int, int] | None = None

    def done(self, settings: Mapping[str, Any], seconds: float) -> None:
        """A cell is complete; 0 seconds if another driver computed it."""
        self._before += 1
        if seconds > 0:
            self._times.append((settings, seconds))

    def failed(self, settings: Mapping[str, Any], error: str) -> None:
        """A cell failed, which is told at once."""
        self._failed += 1
        if self._shown:
            named = ", ".join(f"{name} = {value}" for name, value in settings.items())
            self._print(f"failed: {named}: {error}", end="\n")

    def due(self) -> bool:
        """Whether it is time to say how far it is."""
        return self._shown and time.monotonic() >= self._next

    def tell(self, left: Sequence[Mapping[str, Any]], workers: int | None) -> None:
        """Say how far it is."""
        self._next = time.monotonic() + (1.0 if self._terminal else 30.0)
        now = (self._before, self._failed, len(left))
        if now == self._said and not self._terminal:
            return
        self._said = now
        line = f"{self._before} of {self._total} cells done, {self._failed} failed, {len(left)} left"
        if self._times and left:
            line += f", about {spell(seconds_left(self._times, left) / (workers or 1))}"
        self._print(line, end="" if self._terminal else "\n")

    def close(self) -> None:
        """Clear the line."""
        if self._shown and self._terminal:
            self._print("", end="\r")

    def _print(self, line: str, end: str) -> None:
        print(f"\r{line:<78}" if self._terminal else line, end=end, file=sys.stderr, flush=True)
