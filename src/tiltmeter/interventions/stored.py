"""Interventions from files: by class name and fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from difflib import get_close_matches
from importlib import import_module
from typing import Any

from tiltmeter.interventions import INTERVENTIONS
from tiltmeter.interventions.intervention import Intervention
from tiltmeter.interventions.stored_fields import field_from_json
from tiltmeter.plugins import PARTS, plugin


def stored_name(law: Intervention) -> str:
    """Return the class name of an intervention of this package; a user's intervention has its module too and cannot be
    rebuilt.

    >>> from tiltmeter.interventions import UPGrad
    >>> stored_name(UPGrad())
    'UPGrad'
    """
    kind = type(law)
    known = kind.__module__ in (INTERVENTIONS.get(kind.__name__), _of_the_lab().get(kind.__name__))
    return kind.__name__ if known else f"{kind.__module__}.{kind.__qualname__}"


def _of_the_lab() -> Mapping[str, str]:
    """The interventions of the laboratory and their modules, where it is installed."""
    return plugin(PARTS, "interventions") or {}


def intervention_named(name: str) -> type[Intervention]:
    """The class of this name; "group-dro" and "GroupDRO" are the same.

    >>> intervention_named("group-dro").__name__
    'GroupDRO'
    """
    homes = {**_of_the_lab(), **INTERVENTIONS}
    plain = {known.lower(): known for known in homes}
    asked = str(name).lower().replace("-", "").replace("_", "")
    if asked not in plain:
        near = get_close_matches(asked, plain, n=1)
        guess = f" Did you mean {plain[near[0]]}?" if near else ""
        raise KeyError(f"There is no intervention {name!r}.{guess} There are: {', '.join(homes)}.")
    found: type[Intervention] = getattr(import_module(homes[plain[asked]]), plain[asked])
    return found


def intervention_from_json(value: Mapping[str, Any]) -> Intervention:
    """Rebuild the intervention that `to_json` wrote, or that a table of a TOML file describes: `kind` and its fields.

    >>> from tiltmeter.interventions import Tilted
    >>> intervention_from_json({"kind": "Tilted", "strength": 2.0}) == Tilted(2.0)
    True
    """
    given = dict(value)
    if "kind" not in given:
        raise KeyError(f"A stored intervention should have a key `kind`. Found: {', '.join(map(repr, given))}.")
    name = given.pop("kind")
    if "." in str(name):
        raise ValueError(f"The intervention {name} is not part of tiltmeter and cannot be rebuilt from a file.")
    kind = intervention_named(name)
    known = [field.name for field in fields(kind)]
    for key in given:
        if key not in known:
            raise KeyError(f"{kind.__name__} has no field {key!r}. There are: {', '.join(known)}.")
    return kind(**{key: field_from_json(one) for key, one in given.items()})
