"""The interventions of an SGD or a recipe, checked where they enter."""

from __future__ import annotations

from typing import Any

from tiltmeter.arguments import checked_list
from tiltmeter.interventions.group_intervention import GroupIntervention
from tiltmeter.interventions.intervention import Intervention
from tiltmeter.interventions.kinds import ModelIntervention, StepIntervention


def checked_interventions(given: Any) -> tuple[Intervention, ...]:
    """Return a tuple of interventions, with at most one of each kind that cannot be combined."""
    if isinstance(given, Intervention):
        raise TypeError(f"`interventions` should be a tuple: write interventions=({type(given).__name__}(...),).")
    laws = tuple(checked_list("interventions", given, "a tuple of interventions"))
    for law in laws:
        if isinstance(law, type):
            raise TypeError(f"`interventions` should hold values. Found the class {law.__name__}: call it.")
        if not isinstance(law, Intervention):
            raise TypeError(f"`interventions` should hold interventions, as GroupDRO(). Found {type(law).__name__}.")
    for kind in (GroupIntervention, StepIntervention, ModelIntervention):
        found = [type(law).__name__ for law in laws if isinstance(law, kind)]
        if len(found) > 1:
            raise ValueError(f"`interventions` should hold at most one {kind.__name__}. Found {', '.join(found)}.")
    return laws
