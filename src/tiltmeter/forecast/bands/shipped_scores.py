"""shipped_scores: the scores of the trainings that calibrate the bands, shipped with the package."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from tiltmeter.forecast.bands.conformal import conformal_factor
from tiltmeter.forecast.bands.kind import Kind

#: Differences between groups, or the values of groups.
What = Literal["gap", "level"]
#: Curves whose bands are calibrated.
CURVES = ("loss", "error", "positive_rate", "tpr", "fpr")
FILE = "scores.json"


@cache
def shipped_scores() -> Mapping[str, Any]:
    """Return the table that `tiltmeter.experiments.shared.band_table` wrote: its origin, and scores by task."""
    found: Mapping[str, Any] = json.loads(files(__package__).joinpath(FILE).read_text(encoding="utf-8"))
    return found


def factor(kind: Kind, curve: str, what: What, level: float) -> float:
    """Return the factor of a band that misses a whole curve with probability `level`; infinite where not calibrated."""
    scores = shipped_scores()["scores"].get(kind, {}).get(curve, {}).get(what, ())
    return conformal_factor(scores, level)
