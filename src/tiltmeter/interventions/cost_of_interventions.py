"""cost_of_interventions: what several interventions together cost, in gradient evaluations."""

from __future__ import annotations

from tiltmeter.interventions.intervention import Intervention
from tiltmeter.interventions.kinds import DataIntervention, TermIntervention


def cost_of(laws: tuple[Intervention, ...], groups: int, steps: int) -> float:
    """Gradient evaluations relative to plain training; the steps of scouts are added.

    >>> from tiltmeter.interventions import SAM, UPGrad
    >>> cost_of((SAM(), UPGrad()), groups=4, steps=100)
    10.0
    """
    found = 1.0
    for law in laws:
        found *= law.cost(groups)
    return found + sum(law.scout for law in laws if isinstance(law, (DataIntervention, TermIntervention))) / steps
