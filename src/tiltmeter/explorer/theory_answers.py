"""Theory answers: what the page asks Python for, a moment after the last movement: errors, rates, when to stop."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tiltmeter.explorer.run_judgement import stopping_told
from tiltmeter.explorer.theory_state import TheoryState
from tiltmeter.leaders.leaders import leaders
from tiltmeter.record.trajectory import Trajectory
from tiltmeter.theory.dynamics.predict import predict

#: Curves of the second tier; on a fixed set also the losses, which then have no closed form in the page.
RATES = ("error", "positive_rate", "tpr", "fpr")
FIXED = ("loss", "training_loss")


def theory_answers(query: Mapping[str, str]) -> dict[str, Any]:
    """Curves, the sentence of `phases` and the rules of `stopping` for one state of the page.

    >>> theory_answers({"rho": "0.8", "variance": "0.5,1.5", "overlap": "0.5"})["sentence"]
    'Group - has the lower loss until t = 5.643 (larger variance), then group + (more data).'
    """
    state = TheoryState.from_query(query)
    names = (*FIXED, *RATES) if state.samples is not None else ("loss", *RATES)
    theory = predict(state.problem, state.training, state.times, curves=names, data=state.data)
    told = _led(theory)
    return {
        "times": state.times.tolist(),
        "curves": {name: theory[name].transpose("time", "group").values.tolist() for name in names},
        **told,
        **stopping_told(theory),
    }


def _led(theory: Trajectory) -> dict[str, Any]:
    """Who leads in turn, and why; causes are known for pairs of groups only."""
    led = leaders(theory, "loss")
    stretches = [
        {"start": phase.start, "stop": phase.stop, "leader": str(phase.leader), "reason": phase.reason}
        for phase in led.phases
    ]
    return {"sentence": led.headline.line, "phases": stretches}
