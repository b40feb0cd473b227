"""cost_of_laws: what several interventions together cost, in gradient evaluations."""

from __future__ import annotations

from tiltmeter.interventions.data_law import DataLaw
from tiltmeter.interventions.intervention import Intervention
from tiltmeter.interventions.term_law import TermLaw


def cost_of(laws: tuple[Intervention, ...], groups: int, steps: int) -> float:
    """Gradient evaluations relative to plain training; the steps of scouts are added.

    >>> from tiltmeter.interventions import SAM, UPGrad
    >>> cost_of((SAM(), UPGrad()), groups=4, steps=100)
    10.0
    """
    found = 1.0
    for law in laws:
        found *= law.cost(groups)
    return found + sum(law.scout for law in laws if isinstance(law, (DataLaw, TermLaw))) / steps
