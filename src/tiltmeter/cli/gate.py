"""`tiltmeter gate`: fail a CI job when a bias is shown."""

from __future__ import annotations

import json as machine
from dataclasses import asdict
from pathlib import Path

from tiltmeter.cli.run_input import PredictionColumns, read_trajectories
from tiltmeter.cli.terminal import Json, Switch


def gate(
    run: Path,
    *,
    gap: float,
    curve: str = "loss",
    level: float = 0.05,
    within: Switch = False,
    columns: PredictionColumns = PredictionColumns(),
    json: Json = False,
) -> int:
    """Exit with code 1 if a gap between groups is shown to be larger than allowed at the last evaluation, else with 0.

    With too few held-out points nothing is shown, and the run passes. `--within` fails such a run.

    Parameters
    ----------
    run
        The run directory, or a table of predictions.
    gap
        The largest gap that is allowed.
    curve
        The curve in which groups are compared.
    level
        Chance of failing a run without such a gap (with --within, of passing one with it), over all pairs of groups
        together.
    within
        Fail unless every gap is shown to be within what is allowed.
    """
    from tiltmeter.fairness.gate import bias_gate
    from tiltmeter.record.labelled import label_to_json

    (trajectory,) = read_trajectories([run], columns).values()
    answer = bias_gate(trajectory, curve, gap, level)
    passed = answer.within if within else answer.passed
    if json:
        rows = [{**asdict(one), "pair": [label_to_json(label) for label in one.pair]} for one in answer.gaps]
        print(machine.dumps({"passed": passed, "sentence": str(answer), "gaps": rows}, indent=2))
    else:
        print(answer)
        if not answer.shown and not passed:
            print(f"Failed: --within asks that a gap above {gap:g} is ruled out.")
    return 0 if passed else 1
