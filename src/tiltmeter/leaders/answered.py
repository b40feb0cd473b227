"""Answered: what a forecast said of the gap at the end, kept with the training, which answers it when it is over."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tiltmeter.leaders.judgement import promised_limits
from tiltmeter.leaders.promised_gaps import gap_band
from tiltmeter.pairs import groups_of
from tiltmeter.record.labelled import JSON, label_from_json, label_to_json
from tiltmeter.record.trajectory import Trajectory

if TYPE_CHECKING:
    from tiltmeter.leaders.leaders import Leaders


def gap_forecast(judged: Leaders, ahead: Trajectory) -> dict[str, JSON]:
    """What a forecast says of the gap of its headline at the end: its value and promised limits; else nothing."""
    chosen, band = judged.chosen, gap_band(ahead, judged.curve)
    if chosen is None or band is None or not judged.headline.clear:
        return {}
    low, high = promised_limits(chosen, groups_of(ahead[chosen.curve]), band[1], band[2])[:, -1].tolist()
    pair = [label_to_json(group) for group in chosen.pair]
    return {"curve": chosen.curve, "pair": pair, "gap": float(chosen.gap[-1]), "low": low, "high": high}


def forecast_answered(judged: Leaders) -> str:
    """Whether the forecast that was kept with a training held; "" where none was kept.

    A gap that lies outside the forecast's own limits has missed it. A forecast that named nobody promised no gap.
    """
    from tiltmeter.leaders.headline import in_points

    told: Any = None if judged.run is None else judged.run.origin.settings.get("forecast")
    if not isinstance(told, Mapping) or judged.basis == "forecast":
        return ""
    if not told:
        return "No forecast was made."
    try:
        pair = tuple(label_from_json(label) for label in told["pair"])
        gap, low, high = (float(told[name]) for name in ("gap", "low", "high"))
        one = judged[str(told["curve"]), (pair[0], pair[1])]
    except (KeyError, TypeError, ValueError, IndexError):  # what stands in a file may be anything
        return ""
    came, sign = float(one.gap[-1]), -1.0 if gap < 0 else 1.0
    held = low - 1e-9 <= came <= high + 1e-9
    ends = sorted((sign * low, sign * high))
    said, limits = in_points(one.curve, sign * gap, unit=True), [in_points(one.curve, end) for end in ends]
    between = "" if np.isclose(low, high) else f" ({limits[0]} to {limits[1]})"
    return (
        f"The forecast {'held' if held else 'missed'}: {said} were forecast{between}, "
        f"{in_points(one.curve, sign * came)} came."
    )
