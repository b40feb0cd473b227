"""Theory answers: what the page asks Python for, a moment after the last movement: errors, rates, when to stop."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tiltmeter.analysis.phases import phases
from tiltmeter.analysis.stopping import stopping
from tiltmeter.explorer.theory_state import TheoryState
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
    found = phases(theory)
    answer: dict[str, Any] = {
        "times": state.times.tolist(),
        "curves": {name: theory[name].transpose("time", "group").values.tolist() for name in names},
        "sentence": str(found),
        "phases": [
            {"start": one.start, "stop": one.stop, "leader": str(one.leader), "reason": one.reason} for one in found
        ],
        "stopping": [],
    }
    try:
        advice = stopping(theory)
    except ValueError as error:
        return {**answer, "stopping_refused": str(error)}
    for rule, word in zip(advice.rules, ("smallest gap", "best mean", "best worst group"), strict=True):
        answer["stopping"].append(
            {"rule": word, "time": rule.time, "gap": rule.gap, "mean": rule.mean, "worst": rule.worst}
        )
    return answer
