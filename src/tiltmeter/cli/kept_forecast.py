"""A forecast of a file of `tiltmeter train`, kept beside it until the training answers it."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tiltmeter.leaders.leaders import leaders
from tiltmeter.record import Trajectory
from tiltmeter.record.labelled import JSON

#: Tables of the file that do not change the training.
ASIDE = ("forecast", "evaluations")


def keep_forecast(config: Path, tables: Mapping[str, Mapping[str, Any]], ahead: Trajectory) -> None:
    """Write what the forecast says of the gap at the end beside the file that it is about."""
    kept = {"of": _fingerprint(tables), "gap": leaders(ahead).gap_forecast}
    try:
        _place(config).write_text(json.dumps(kept, indent=1), encoding="utf-8")
    except OSError as error:
        print(f"The forecast is not kept for `train` to answer: {error.strerror}.", file=sys.stderr)


def kept_forecast(config: Path, tables: Mapping[str, Mapping[str, Any]]) -> dict[str, JSON] | None:
    """What was forecast of this training; None if nothing was, or of other settings."""
    try:
        kept = json.loads(_place(config).read_text(encoding="utf-8"))
        gap = kept["gap"] if kept["of"] == _fingerprint(tables) else None
    except (OSError, ValueError, KeyError, TypeError):  # none, or not ours: a training needs no forecast
        return None
    return gap if isinstance(gap, dict) else None


def _place(config: Path) -> Path:
    return config.with_suffix(".forecast.json")


def _fingerprint(tables: Mapping[str, Mapping[str, Any]]) -> str:
    """The settings of the training, as a checksum."""
    settings = {name: table for name, table in tables.items() if name not in ASIDE}
    return hashlib.sha256(json.dumps(settings, sort_keys=True, default=str).encode()).hexdigest()
