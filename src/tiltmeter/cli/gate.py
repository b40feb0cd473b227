"""`tiltmeter gate`: fail a CI job when a bias is shown."""

from __future__ import annotations

import json as machine
from dataclasses import asdict
from pathlib import Path

from tiltmeter.cli.flags import Json


def gate(run: Path, *, gap: float, curve: str = "loss", level: float = 0.05, json: Json = False) -> int:
    """Exit with code 1 if a gap between groups is shown to be larger than allowed at the last look, else with 0.

    Parameters
    ----------
    run
        The run directory.
    gap
        The largest gap that is allowed.
    curve
        The curve in which groups are compared.
    level
        Chance of failing a run without such a gap, over all pairs of groups together.
    """
    from tiltmeter.analysis.bias_gate import bias_gate
    from tiltmeter.record import Trajectory, load
    from tiltmeter.record.labelled import label_to_json

    found = load(run)
    if not isinstance(found, Trajectory):
        raise ValueError(f"{run} holds a dataset, not a run over time.")
    answer = bias_gate(found, curve, gap, level)
    if json:
        rows = [{**asdict(one), "pair": [label_to_json(label) for label in one.pair]} for one in answer.gaps]
        print(machine.dumps({"passed": answer.passed, "sentence": str(answer), "gaps": rows}, indent=2))
    else:
        print(answer)
    return 0 if answer.passed else 1
