"""An intervention on the command line, written as in Python: "GroupDRO(rate=5, by='draws')"."""

from __future__ import annotations

import ast
from dataclasses import fields

from tiltmeter.interventions.intervention import Intervention
from tiltmeter.interventions.stored import intervention_named
from tiltmeter.interventions.stored_fields import field_from_json


def intervention_from_text(text: str) -> Intervention:
    """The intervention that a text describes: a name, or a call with plain values; nothing in it is run.

    >>> intervention_from_text("GroupDRO(5, by='draws')")
    GroupDRO(by='draws', memory=64.0, every=1, rate=5, proportional=0.0, adjust=0.0, floor=0.0, begin='equal')
    >>> intervention_from_text("up-grad").cost(groups=2)
    3.0
    """
    form = "an intervention should be written as \"GroupDRO(rate=5, by='draws')\""
    name, bracket, rest = text.strip().partition("(")
    kind = intervention_named(name.strip())
    known = [field.name for field in fields(kind)]
    if not bracket:
        return kind()
    try:
        call = ast.parse(f"f({rest}", mode="eval").body
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            raise ValueError("not one call")
        positional = [ast.literal_eval(one) for one in call.args]
        named = {str(one.arg): ast.literal_eval(one.value) for one in call.keywords}
    except (SyntaxError, ValueError):
        raise ValueError(f"{form[0].upper()}{form[1:]}. Found {text!r}.") from None
    for key in named:
        if key not in known:
            raise KeyError(f"{kind.__name__} has no field {key!r}. There are: {', '.join(known)}.")
    return kind(*positional, **{key: field_from_json(one) for key, one in named.items()})
