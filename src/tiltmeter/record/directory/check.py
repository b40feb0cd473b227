"""Check: how a run directory is doing, in one report that never raises."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from tiltmeter.record.directory.journal import CURVES, read
from tiltmeter.record.directory.lock import writer
from tiltmeter.record.directory.small_files import END, LOCK, RUN, End, Ending, read_end, read_header

State: TypeAlias = Ending | Literal["running", "died", "unknown"]

#: One bad line can make many others unreadable; after this many the rest is only counted.
SHOWN = 20


@dataclass(frozen=True)
class Check:
    """What was found in a run directory. `state` is "unknown" where nothing says how the run ended."""

    path: Path
    state: State
    looks: int
    curves: tuple[str, ...]
    problems: tuple[str, ...]
    reason: str | None = None

    @property
    def ok(self) -> bool:
        """Whether everything can be read. A run that failed or died can still be in order."""
        return not self.problems

    def __str__(self) -> str:
        looks = "1 look" if self.looks == 1 else f"{self.looks} looks"
        names = f" of {', '.join(self.curves)}" if self.curves else ""
        reason = f" ({self.reason})" if self.reason else ""
        wrong = "; ".join(problem.rstrip(".") for problem in self.problems)
        verdict = f"Damaged: {wrong}." if wrong else "All is in order."
        return f"{self.path}: {self.state}{reason}, {looks}{names}. {verdict}"


def check(path: str | os.PathLike[str]) -> Check:
    """Look through a run directory and report its state and everything wrong with it.

    >>> str(check("runs/nowhere"))
    'runs/nowhere: unknown, 0 looks. Damaged: `path` should be a run directory. Found nothing at runs/nowhere.'
    """
    directory = Path(path)
    problems: list[str] = []
    try:
        read_header(directory)
    except (ValueError, OSError) as error:
        problems.append(str(error))
    state, end = _state(directory, problems)
    looks, curves = _contents(directory, end, problems)
    if len(problems) > SHOWN:
        problems[SHOWN:] = [f"and {len(problems) - SHOWN} more"]
    return Check(directory, state, looks, curves, tuple(problems), None if end is None else end.reason)


def _state(directory: Path, problems: list[str]) -> tuple[State, End | None]:
    if not os.path.exists(directory / RUN):
        return "unknown", None
    try:
        end = read_end(directory)
        if end is None:
            holder = writer(directory / LOCK)
            if holder is not None and holder.alive():
                return "running", None
            end = read_end(directory)  # the writer may have ended the run since
    except (ValueError, OSError) as error:
        problems.append(str(error))
        return "unknown", None
    return ("died", None) if end is None else (end.state, end)


def _contents(directory: Path, end: End | None, problems: list[str]) -> tuple[int, tuple[str, ...]]:
    def hear(line: int, fact: str) -> None:
        problems.append(f"{CURVES}, line {line}: {fact}")

    try:
        contents, _ = read(directory, hear)
        length = (directory / CURVES).stat().st_size
    except (ValueError, OSError) as error:
        if os.path.exists(directory / RUN):
            problems.append(str(error))
        return 0, ()
    if end is not None and length != end.bytes:
        problems.append(f"{CURVES} has {length} bytes where {END} says {end.bytes}")
    try:
        contents.gather()
    except (ValueError, TypeError) as error:
        problems.append(str(error))
    return contents.looks, contents.names
