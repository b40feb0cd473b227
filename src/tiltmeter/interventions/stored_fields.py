"""The fields of an intervention as plain JSON: numbers, text, tuples, numbers by group, and schedules."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from tiltmeter.record.labelled import JSON, label_from_json, label_to_json
from tiltmeter.schedules import schedule_from_json, schedule_to_json


def field_to_json(value: Any) -> JSON:
    """One field.

    >>> field_to_json({"+": 0.3, "-": float("inf")})
    {'by_group': [['+', 0.3], ['-', {'float': 'inf'}]]}
    """
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": repr(value)}
    if isinstance(value, Mapping):
        return {"by_group": [[label_to_json(group), field_to_json(one)] for group, one in value.items()]}
    if isinstance(value, (tuple, list)):
        return [field_to_json(one) for one in value]
    if callable(value):
        return schedule_to_json(value)
    return label_to_json(value)


def field_from_json(value: JSON) -> Any:
    """The field that `field_to_json` wrote; a table of a TOML file counts as numbers by group."""
    if isinstance(value, list):
        return tuple(field_from_json(one) for one in value)
    if not isinstance(value, dict):
        return value
    if "schedule" in value:
        return schedule_from_json(value)
    if list(value) == ["float"]:
        return label_from_json(value)
    if list(value) == ["by_group"]:
        pairs: Any = value["by_group"]
        return {label_from_json(group): field_from_json(one) for group, one in pairs}
    return {group: field_from_json(one) for group, one in value.items()}
