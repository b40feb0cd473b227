"""Theory answers: what the page asks Python for, a moment after the last movement: errors, rates, when to stop."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from tiltmeter.analysis.crossings import crossings
from tiltmeter.analysis.phases import phases
from tiltmeter.explorer.stopping_told import stopping_told
from tiltmeter.explorer.theory_state import TheoryState
from tiltmeter.record.trajectory import Trajectory
from tiltmeter.theory.predict import predict

#: Curves of the second tier; on a fixed set also the losses, which then have no closed form in the page.
RATES = ("error", "positive_rate", "tpr", "fpr")
FIXED = ("loss", "training_loss")


def theory_answers(query: Mapping[str, str]) -> dict[str, Any]:
    """Curves, the sentence of `phases` and the rules of `stopping` for one state of the page.

    >>> theory_answers({"rho": "0.8", "variance": "0.5,1.5", "overlap": "0.5"})["sentence"]
    '- leads until t = 5.643 (larger variance), then + (more data).'
    """
    state = TheoryState.from_query(query)
    names = (*FIXED, *RATES) if state.samples is not None else ("loss", *RATES)
    theory = predict(state.problem, state.training, state.times, curves=names, data=state.data)
    told = _of_three(theory) if state.third is not None else _of_two(theory)
    return {
        "times": state.times.tolist(),
        "curves": {name: theory[name].transpose("time", "group").values.tolist() for name in names},
        **told,
        **stopping_told(theory),
    }


def _of_two(theory: Trajectory) -> dict[str, Any]:
    found = phases(theory)
    stretches = [
        {"start": one.start, "stop": one.stop, "leader": str(one.leader), "reason": one.reason} for one in found
    ]
    return {"sentence": str(found), "phases": stretches}


def _of_three(theory: Trajectory) -> dict[str, Any]:
    """Who is best off of all, between the crossings; causes are known for pairs of groups only."""
    loss = theory["loss"].transpose("time", "group")
    times, groups = loss.coords["time"].values, loss.coords["group"].values.tolist()
    edges = [float(times[0]), *(one.time for one in crossings(theory)), float(times[-1])]
    assert theory.evaluate is not None
    found: list[dict[str, Any]] = []
    for start, stop in pairwise(edges):
        if not stop > start:
            continue
        values = theory.evaluate(np.array([np.sqrt(start * stop)]))["loss"].transpose("time", "group").values[0]
        leader = str(groups[int(values.argmin())])
        if found and found[-1]["leader"] == leader:
            found[-1]["stop"] = stop
        else:
            found.append({"start": start, "stop": stop, "leader": leader, "reason": None})
    first, *others = found
    if not others:
        return {"sentence": f"{first['leader']} leads throughout.", "phases": found}
    said = [f"{first['leader']} leads until t = {first['stop']:.4g}"]
    said += [f"then {one['leader']} until t = {one['stop']:.4g}" for one in others[:-1]]
    return {"sentence": ", ".join([*said, f"then {others[-1]['leader']}"]) + ".", "phases": found}
