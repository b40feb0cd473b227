"""`tiltmeter gate`: fail a CI job when a gap between groups is too large, or may be."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from tiltmeter.cli.run_input import PredictionColumns, read_trajectories
from tiltmeter.cli.terminal import Json, Switch, print_json
from tiltmeter.record.directory.reader import read_run
from tiltmeter.record.directory.small_files import RUN

#: Exit codes; 2 is bad input.
CODES = {"passes": 0, "fails": 1, "cannot tell": 3}


def gate(
    run: Path,
    *,
    gap: float,
    curve: str | None = None,
    level: float = 0.05,
    strict: Switch = False,
    measured: Switch = False,
    unclear: Literal["fail", "pass"] = "fail",
    columns: PredictionColumns = PredictionColumns(),
    json: Json = False,
) -> int:
    """Exit with 0 if every gap is clearly within what is allowed, 1 if one is clearly larger, 3 if it cannot be told.

    Invalid input exits with 2.

    Parameters
    ----------
    run
        The run directory, or a table of predictions.
    gap
        The largest gap that is allowed.
    curve
        The curve in which groups are compared (default: the one that the question of the data asks for, else error).
    level
        How often limits may be wrong, over all groups together.
    strict
        Judge the upper limit: what cannot be told fails.
    measured
        Judge the measured gap, whatever its limits.
    unclear
        Whether a run whose held-out points cannot tell fails (exit code 3) or passes (0).
    """
    from tiltmeter.fairness.gate import gate as judged_gate

    if strict and measured:
        raise ValueError("--strict judges the upper limit, --measured the measured gap: choose one.")
    if (run / RUN).exists():
        refuse_unfinished(run)
    (trajectory,) = read_trajectories([run], columns).values()
    answer = judged_gate(trajectory, gap, curve, level, "strict" if strict else "measured" if measured else "limits")
    code = 0 if answer.verdict == "cannot tell" and unclear == "pass" else CODES[answer.verdict]
    if json:
        print_json({**answer.to_json(), "passed": code == 0})
    else:
        print(answer)
    return code


def refuse_unfinished(run: Path) -> None:
    """Raise a ValueError unless the run is whole: what was lost of another may be what the gate asks for."""
    state = read_run(run).state
    if state != "finished":
        how = {"running": "is still running", "failed": "failed", "interrupted": "was interrupted"}.get(state, "died")
        raise ValueError(f"The gate judges finished runs only. {run} {how}: `tiltmeter show {run}` says what is there.")
