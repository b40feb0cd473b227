"""choices: make an object with the options from a file, each checked against the type of its field."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, get_type_hints

from tiltmeter.cli.toml_schema import check_table


def made(kind: Any, given: Mapping[str, Any], table: str) -> Any:
    """The frozen dataclass with these options of the table, or an error that says what they should be.

    >>> from tiltmeter.measures.named.line_spectrum import LineSpectrum
    >>> made(LineSpectrum, {"paths": ["within"], "lines": 8}, "measure").paths
    ('within',)
    >>> made(LineSpectrum, {"lines": "many"}, "measure")
    Traceback (most recent call last):
    TypeError: [measure]: `lines` should be a whole number. Found lines = 'many'.
    """
    hints = get_type_hints(kind)
    known = {field.name: hints[field.name] for field in fields(kind) if field.init and not field.name.startswith("_")}
    checked = check_table(given, known, f"[{table}]")
    return kind(**{key: _tuples(value) for key, value in checked.items()})


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
