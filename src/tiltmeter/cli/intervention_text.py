"""An intervention on the command line, written as in Python: "GroupDRO(rate=5, by='draws')"."""

from __future__ import annotations

import ast
from dataclasses import fields
from typing import Any

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
    name, bracket, rest = text.strip().partition("(")
    kind = intervention_named(name.strip())
    known = [field.name for field in fields(kind)]
    if not bracket:
        return kind()
    try:
        positional, named = plain_arguments(rest.rstrip().removesuffix(")") if rest.rstrip().endswith(")") else "(")
    except ValueError:
        raise ValueError(
            f"An intervention should be written as \"GroupDRO(rate=5, by='draws')\". Found {text!r}."
        ) from None
    for key in named:
        if key not in known:
            raise KeyError(f"{kind.__name__} has no field {key!r}. There are: {', '.join(known)}.")
    return kind(*positional, **{key: field_from_json(one) for key, one in named.items()})


def plain_arguments(text: str) -> tuple[list[Any], dict[str, Any]]:
    """What stands between the brackets of a call, as plain values; nothing in it is run.

    >>> plain_arguments("5, by='draws'")
    ([5], {'by': 'draws'})
    """
    try:
        call = ast.parse(f"f({text})", mode="eval").body
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            raise ValueError("not one call")
        return [ast.literal_eval(part) for part in call.args], {
            str(part.arg): ast.literal_eval(part.value) for part in call.keywords
        }
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ValueError(f"not plain values: {text!r}") from None
