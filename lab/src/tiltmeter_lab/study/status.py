"""Status: how a study is doing."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tiltmeter.progress import spell
from tiltmeter.record.directory.atomic_files import read_sealed_json
from tiltmeter.record.directory.lock import live_writer
from tiltmeter.shown_text import NotebookText
from tiltmeter_lab.study.folder import CELL, CELLS, FAILED, WORK, Places
from tiltmeter_lab.study.grid import Cell, text


def seconds_left(done: Sequence[tuple[Mapping[str, Any], float]], left: Sequence[Mapping[str, Any]]) -> float:
    """Seconds of work in the cells that are left, judged by those that are done.

    >>> done = [({"width": width, "depth": depth}, width * depth / 10) for width in (1, 10) for depth in (1, 2)]
    >>> round(seconds_left(done, [{"width": 10, "depth": 2}]), 1)
    2.0

    Every value of every factor multiplies the time (least squares on logarithms, slightly shrunk). A value that no
    complete cell has counts as average.
    """
    if not done or not left:
        return 0.0
    recent = done[-2000:]
    columns = {level: place for place, level in enumerate(dict.fromkeys(p for s, _ in recent for p in _levels(s)))}
    seen = _design([settings for settings, _ in recent], columns)
    logs = np.log(np.maximum([seconds for _, seconds in recent], 1e-4))
    mean = logs.mean()
    gram = seen.T @ seen + 1e-3 * np.eye(len(columns))
    effects = np.linalg.solve(gram, seen.T @ (logs - mean)) if columns else np.zeros(0)
    # The mean of a log-normal time lies above its median.
    spread = float(np.var(logs - mean - seen @ effects))
    return float(np.exp(mean + _design(left, columns) @ effects + spread / 2).sum())


def _levels(settings: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(name, text(value)) for name, value in settings.items() if name != "seed"]


def _design(cells: Sequence[Mapping[str, Any]], columns: Mapping[tuple[str, str], int]) -> np.ndarray:
    found = np.zeros((len(cells), len(columns)))
    for row, settings in enumerate(cells):
        for level in _levels(settings):
            if level in columns:
                found[row, columns[level]] = 1.0
    return found


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


@dataclass(frozen=True)
class Status(NotebookText):
    """Counts of cells. `other_code` were made by another text of the file with the cell function; `strangers` are
    complete cells of settings that are not part of this study (any more).
    """

    total: int
    done: int
    failed: int
    running: int
    other_code: int = 0
    strangers: int = 0

    @property
    def left(self) -> int:
        """Cells without a result and without a failure."""
        return self.total - self.done - self.failed

    @property
    def complete(self) -> bool:
        """Whether every cell has a result."""
        return self.done == self.total

    def __str__(self) -> str:
        said = f"{self.done} of {self.total} cells done, {self.failed} failed, {self.left} left"
        said += f" ({self.running} running)." if self.running else "."
        if self.other_code:
            said += f" {self.other_code} were made by another version of the file with the cell function."
        if self.strangers:
            said += f" {self.strangers} more are there with settings that this study does not ask for."
        return said

    def to_json(self) -> dict[str, Any]:
        names = ("total", "done", "failed", "running", "left", "other_code", "strangers")
        return {name: getattr(self, name) for name in names}


def status_of(cells: Sequence[Cell], places: Places, fingerprint: str | None) -> Status:
    """From listings of the folders; with a fingerprint, every complete cell is asked which code made it."""
    keys = {cell.key for cell in cells}
    found = places.keys(CELLS)
    done = keys & found
    failed = (keys & places.keys(FAILED)) - done
    running = {key for key in keys & places.keys(WORK) if key not in done and live_writer(places.lock(key)) is not None}
    other = 0 if fingerprint is None else sum(_maker(places, key) != fingerprint for key in done)
    return Status(len(keys), len(done), len(failed - running), len(running), other, len(found - keys))


def _maker(places: Places, key: str) -> str | None:
    try:
        return str(read_sealed_json(places.result(key) / CELL, "a cell")["fingerprint"])
    except (OSError, ValueError, KeyError):
        return None
