"""Check: the state of a run directory, in one report that never raises an error."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from tiltmeter.arguments import checked_path
from tiltmeter.record.directory.archives import damage_of_checkpoint
from tiltmeter.record.directory.journal import CURVES
from tiltmeter.record.directory.reader import RunReader, State
from tiltmeter.record.directory.small_files import CHECKPOINT, RUN
from tiltmeter.record.layout import Time
from tiltmeter.shown_text import NotebookText, shortened, visible

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
        dropped: What does not verify at the end of a run that died or is going on; None: nothing.
        left_out: How many planned evaluations were not taken, to stay within the budget of a probe.
        missing_until: Evaluations before this time were lost, and the run went on without them; None: none were.
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
    dropped: str | None = None
    missing_until: Time | None = None
    left_out: int = 0

    @property
    def ok(self) -> bool:
        """Whether everything can be read. This may be true of a run that failed or died."""
        return not self.problems and self.dropped is None

    def __str__(self) -> str:
        evaluations = "1 evaluation" if self.evaluations == 1 else f"{self.evaluations} evaluations"
        names = f" of {_listed(self.curves)}" if self.curves else ""
        reason = f" ({shortened(self.reason, 1000)})" if self.reason else ""
        points = f", {self.evaluations_with_points} with points ({_listed(self.points)})" if self.points else ""
        lost = "" if self.missing_until is None else f" Evaluations before {self.missing_until} were lost."
        spared = f" {self.left_out:,} planned ones were left out." if self.left_out else ""
        again = spared + lost + "".join(f" {_taken_up(time)}" for time in self.taken_up)
        wrong = "; ".join(problem.rstrip(".") for problem in self.problems)
        dropped = "" if self.dropped is None else f"{self.dropped}. "
        verdict = f"{dropped}Damaged: {wrong}." if wrong else dropped.rstrip() or "No damage found."
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

    def hear(line: int, fact: str) -> None:
        problems.append(f"{CURVES}, line {line}: {fact}" if line else fact)

    run = RunReader(directory, hear)
    try:
        directory = checked_path("path", path)
        run.update()
        run.contents.gather()
        state = run.state
    except Exception as error:  # whatever a crafted file makes the readers raise
        problems.append(shortened(_fact(error), 1000))
        state = "unknown" if run.end is None else run.end.state
    if os.path.lexists(directory / CHECKPOINT) and os.path.exists(directory / RUN):
        damage = damage_of_checkpoint(directory / CHECKPOINT)
        problems += [] if damage is None else [f"{CHECKPOINT}: {damage}"]
    if len(problems) > SHOWN:
        problems[SHOWN:] = [f"and {len(problems) - SHOWN} more"]
    found = run.contents
    return Check(
        directory,
        state,
        found.evaluations,
        found.names,
        tuple(problems),
        None if run.end is None else run.end.reason,
        tuple(found.points),
        found.evaluations_with_points,
        found.taken_up,
        None if run.dropped is None else str(run.dropped),
        found.missing_until,
        len(found.left_out),
    )


def _fact(error: Exception) -> str:
    return str(error) if isinstance(error, (ValueError, OSError)) else f"{type(error).__name__}: {error}"


def _taken_up(time: Time | None) -> str:
    where = "from its beginning" if time is None else f"after {time}"
    return f"It was continued {where}; the evaluations that it had there before were dropped."


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(shortened(name, 60) for name in names)
