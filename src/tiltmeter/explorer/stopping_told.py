"""Stopping, told: the three rules of `stopping` with what they cost, and what their numbers mean."""

from __future__ import annotations

from typing import Any

from tiltmeter.analysis.stopping import stopping
from tiltmeter.record.trajectory import Trajectory
from tiltmeter.visible_text import visible

WORDS = ("smallest gap", "best mean", "best worst group")


def stopping_told(trajectory: Trajectory, curve: str = "loss") -> dict[str, Any]:
    """The rules and a note on them, or why there are none."""
    try:
        advice = stopping(trajectory, curve=curve)
    except ValueError as error:
        return {"stopping": [], "stopping_refused": visible(str(error))}
    note = f"Among the looks whose mean {curve} is within {advice.within:.0%} of the best."
    if advice.judged == "same points":
        note += " Chosen and measured on the same points, so these numbers are too good."
    rules = [
        {"rule": word, "time": rule.time, "gap": rule.gap, "mean": rule.mean, "worst": rule.worst}
        for rule, word in zip(advice.rules, WORDS, strict=True)
    ]
    return {"stopping": rules, "stopping_note": visible(note)}
