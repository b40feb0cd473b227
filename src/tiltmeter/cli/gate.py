"""`tiltmeter gate`: fail a CI job when a gap between groups is too large, or may be."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Literal

from tiltmeter.cli.run_input import PredictionColumns, read_trajectories
from tiltmeter.cli.terminal import Json, print_json
from tiltmeter.record.directory.reader import read_run
from tiltmeter.record.directory.small_files import RUN

#: Exit codes; 2 is bad input.
CODES = {"within": 0, "gap": 1, "inconclusive": 3}


def gate(
    run: Path,
    *,
    gap: float,
    curve: str | None = None,
    level: float = 0.05,
    inconclusive: Literal["fail", "pass"] = "fail",
    columns: PredictionColumns = PredictionColumns(),
    json: Json = False,
) -> int:
    """Exit with 0 if every gap is clearly within what is allowed, 1 if one is clearly larger, 3 if it is inconclusive.

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
        How often a verdict may be wrong, over all pairs of groups together.
    inconclusive
        Whether a run whose held-out points cannot tell fails (exit code 3) or passes (0).
    """
    from tiltmeter.fairness.gate import bias_gate
    from tiltmeter.leaders.leaders import asked_of
    from tiltmeter.record.labelled import label_to_json

    if (run / RUN).exists():
        refuse_unfinished(run)
    (trajectory,) = read_trajectories([run], columns).values()
    if curve is None:
        question = asked_of(trajectory)
        curve = question.asked if question is not None else "error" if "error" in trajectory else "loss"
    answer = bias_gate(trajectory, curve, gap, level)
    code = 0 if answer.verdict == "inconclusive" and inconclusive == "pass" else CODES[answer.verdict]
    if json:
        rows = [{**asdict(one), "pair": [label_to_json(label) for label in one.pair]} for one in answer.gaps]
        result = {"passed": code == 0, "verdict": answer.verdict, "sentence": str(answer), "gaps": rows}
        print_json(result)
    else:
        print(answer)
    return code


def refuse_unfinished(run: Path) -> None:
    """Raise a ValueError unless the run is whole: what was lost of another may be what the gate asks for."""
    state = read_run(run).state
    if state != "finished":
        how = {"running": "is still running", "failed": "failed", "interrupted": "was interrupted"}.get(state, "died")
        raise ValueError(f"The gate judges finished runs only. {run} {how}: `tiltmeter show {run}` says what is there.")
