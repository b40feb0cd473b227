"""Check: the state of a run directory, in one report that never raises an error."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from tiltmeter.notebook_text import NotebookText
from tiltmeter.record.directory.contents import Contents
from tiltmeter.record.directory.journal import CURVES, read
from tiltmeter.record.directory.layout import Time
from tiltmeter.record.directory.lock import live_writer
from tiltmeter.record.directory.small_files import END, LOCK, RUN, End, Ending, read_end, read_header
from tiltmeter.record.quoted import quoted, shortened

State: TypeAlias = Ending | Literal["running", "died", "unknown"]

#: One bad line can make many others unreadable; after this many, the rest are only counted.
SHOWN = 20


@dataclass(frozen=True)
class Check(NotebookText):
    """What was found in a run directory. `state` is "unknown" if nothing says how the run ended.

    `taken_up` holds the times at which the run was continued from an older state: the looks after it are of the new
    course, and those of the abandoned one are dropped. None stands for the beginning.
    """

    path: Path
    state: State
    looks: int
    curves: tuple[str, ...]
    problems: tuple[str, ...]
    reason: str | None = None
    points: tuple[str, ...] = ()
    looks_with_points: int = 0
    taken_up: tuple[Time | None, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether everything can be read. This may be true of a run that failed or died."""
        return not self.problems

    def __str__(self) -> str:
        looks = "1 look" if self.looks == 1 else f"{self.looks} looks"
        names = f" of {_listed(self.curves)}" if self.curves else ""
        reason = f" ({shortened(self.reason, 1000)})" if self.reason else ""
        points = f", {self.looks_with_points} with points ({_listed(self.points)})" if self.points else ""
        again = "".join(f" {_taken_up(time)}" for time in self.taken_up)
        wrong = "; ".join(problem.rstrip(".") for problem in self.problems)
        verdict = f"Damaged: {wrong}." if wrong else "No damage found."
        return f"{self.path}: {self.state}{reason}, {looks}{names}{points}.{again} {verdict}"


def check(path: str | os.PathLike[str]) -> Check:
    """Look through a run directory and report its state and everything wrong with it.

    >>> str(check("runs/nowhere"))
    'runs/nowhere: unknown, 0 looks. Damaged: `path` should be a run directory. Found nothing at runs/nowhere.'
    """
    directory = Path(path)
    problems: list[str] = []
    unchecked: int | None = None
    try:
        unchecked = read_header(directory).unchecked
    except (ValueError, OSError) as error:
        problems.append(str(error))
    state, end = _state(directory, unchecked == 0, problems)
    contents = _contents(directory, unchecked, end, problems)
    if len(problems) > SHOWN:
        problems[SHOWN:] = [f"and {len(problems) - SHOWN} more"]
    reason = None if end is None else end.reason
    if contents is None:
        return Check(directory, state, 0, (), tuple(problems), reason)
    points = tuple(contents.points), contents.looks_with_points, contents.taken_up
    return Check(directory, state, contents.looks, contents.names, tuple(problems), reason, *points)


def _state(directory: Path, sealed: bool, problems: list[str]) -> tuple[State, End | None]:
    if not os.path.exists(directory / RUN):
        return "unknown", None
    try:
        end = read_end(directory, sealed)
        if end is None:
            if live_writer(directory / LOCK) is not None:
                return "running", None
            end = read_end(directory, sealed)  # the writer may have ended the run since
    except (ValueError, OSError) as error:
        problems.append(str(error))
        return "unknown", None
    return ("died", None) if end is None else (end.state, end)


def _contents(directory: Path, unchecked: int | None, end: End | None, problems: list[str]) -> Contents | None:
    def hear(line: int, fact: str) -> None:
        problems.append(f"{CURVES}, line {line}: {fact}")

    try:
        contents, _ = read(directory, hear, unchecked)
        length = (directory / CURVES).stat().st_size
    except (ValueError, OSError) as error:
        if os.path.exists(directory / RUN):
            problems.append(str(error))
        return None
    if end is not None and length != end.bytes:
        problems.append(f"{CURVES} has {length} bytes where {END} says {quoted(end.bytes)}")
    try:
        contents.gather()
    except (ValueError, TypeError) as error:
        problems.append(shortened(str(error), 400))
    for column in contents.points.values():
        try:
            column.stored(directory).read()
        except (ValueError, TypeError) as error:
            problems.append(str(error))
    return contents


def _taken_up(time: Time | None) -> str:
    where = "from its beginning" if time is None else f"after {time}"
    return f"It was continued {where}; the looks that it had there before were dropped."


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(shortened(name, 60) for name in names)
