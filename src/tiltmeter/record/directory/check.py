"""Check: the state of a run directory, in one report that never raises an error."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from tiltmeter.arguments import checked_path
from tiltmeter.record.contents import Contents
from tiltmeter.record.directory.atomic_files import damage_of_archive
from tiltmeter.record.directory.journal import CURVES, read
from tiltmeter.record.directory.lock import live_writer
from tiltmeter.record.directory.point_records import stored_points
from tiltmeter.record.directory.small_files import CHECKPOINT, END, LOCK, RUN, End, Ending, read_end, read_header
from tiltmeter.record.layout import Time
from tiltmeter.shown_text import NotebookText, quoted, shortened, visible

State: TypeAlias = Ending | Literal["running", "died", "unknown"]

#: One bad line can make many others unreadable; after this many, the rest are only counted.
SHOWN = 20


@dataclass(frozen=True)
class Check(NotebookText):
    """What was found in a run directory. `state` is "unknown" if nothing says how the run ended.

    >>> from tempfile import TemporaryDirectory
    >>> import tiltmeter as tm
    >>> with TemporaryDirectory() as folder:
    ...     tm.save(tm.predict(*tm.theory.cases.no_crossing(), curves=("loss",)), f"{folder}/run")
    ...     result = tm.record.check(f"{folder}/run")
    >>> result.ok, result.state, result.evaluations
    (True, 'finished', 400)

    After a continuation, the evaluations after it are of the new course, and those of the abandoned one are dropped.

    Args:
        path: Run directory.
        state: How the run ended; "unknown" if nothing says so.
        evaluations: Complete evaluations.
        curves: Names of the curves.
        problems: What is wrong, one sentence each.
        reason: Why it failed; None: it did not.
        points: Names of the arrays with one value per point.
        evaluations_with_points: Evaluations that kept them.
        taken_up: Times at which the run was continued from an older state; None stands for the beginning.
    """

    path: Path
    state: State
    evaluations: int
    curves: tuple[str, ...]
    problems: tuple[str, ...]
    reason: str | None = None
    points: tuple[str, ...] = ()
    evaluations_with_points: int = 0
    taken_up: tuple[Time | None, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether everything can be read. This may be true of a run that failed or died."""
        return not self.problems

    def __str__(self) -> str:
        evaluations = "1 evaluation" if self.evaluations == 1 else f"{self.evaluations} evaluations"
        names = f" of {_listed(self.curves)}" if self.curves else ""
        reason = f" ({shortened(self.reason, 1000)})" if self.reason else ""
        points = f", {self.evaluations_with_points} with points ({_listed(self.points)})" if self.points else ""
        again = "".join(f" {_taken_up(time)}" for time in self.taken_up)
        wrong = "; ".join(problem.rstrip(".") for problem in self.problems)
        verdict = f"Damaged: {wrong}." if wrong else "No damage found."
        return visible(f"{self.path}: {self.state}{reason}, {evaluations}{names}{points}.{again} {verdict}")


def check(path: str | os.PathLike[str]) -> Check:
    """Look through a run directory and report its state and everything wrong with it.

    >>> str(check("runs/nowhere"))
    'runs/nowhere: unknown, 0 evaluations. Damaged: `path` should be a run directory. Found nothing at runs/nowhere.'

    Args:
        path: Run directory.
    """
    problems: list[str] = []
    directory = Path(str(path))
    try:
        directory = checked_path("path", path)
        read_header(directory)
    except Exception as error:  # whatever a crafted file makes the readers raise, here and below
        problems.append(_fact(error))
    state, end = _state(directory, problems)
    contents = _contents(directory, end, problems)
    if os.path.exists(directory / CHECKPOINT):
        damage = damage_of_archive(directory / CHECKPOINT)
        problems += [] if damage is None else [f"{CHECKPOINT}: {damage}"]
    if len(problems) > SHOWN:
        problems[SHOWN:] = [f"and {len(problems) - SHOWN} more"]
    reason = None if end is None else end.reason
    if contents is None:
        return Check(directory, state, 0, (), tuple(problems), reason)
    points = tuple(contents.points), contents.evaluations_with_points, contents.taken_up
    return Check(directory, state, contents.evaluations, contents.names, tuple(problems), reason, *points)


def _state(directory: Path, problems: list[str]) -> tuple[State, End | None]:
    if not os.path.exists(directory / RUN):
        return "unknown", None
    try:
        end = read_end(directory)
        if end is None:
            if live_writer(directory / LOCK) is not None:
                return "running", None
            end = read_end(directory)  # the writer may have ended the run since
    except Exception as error:
        problems.append(_fact(error))
        return "unknown", None
    return ("died", None) if end is None else (end.state, end)


def _contents(directory: Path, end: End | None, problems: list[str]) -> Contents | None:
    def hear(line: int, fact: str) -> None:
        problems.append(f"{CURVES}, line {line}: {fact}")

    try:
        contents, _ = read(directory, hear)
        length = (directory / CURVES).stat().st_size
    except Exception as error:
        if os.path.exists(directory / RUN):
            problems.append(_fact(error))
        return None
    if end is not None and length != end.bytes:
        problems.append(f"{CURVES} has {length} bytes where {END} says {quoted(end.bytes)}")
    try:
        contents.gather()
    except Exception as error:
        problems.append(shortened(_fact(error), 400))
    for column in contents.points.values():
        try:
            stored_points(column, directory).read()
        except Exception as error:
            problems.append(_fact(error))
    return contents


def _fact(error: Exception) -> str:
    return str(error) if isinstance(error, (ValueError, OSError)) else f"{type(error).__name__}: {error}"


def _taken_up(time: Time | None) -> str:
    where = "from its beginning" if time is None else f"after {time}"
    return f"It was continued {where}; the evaluations that it had there before were dropped."


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(shortened(name, 60) for name in names)
