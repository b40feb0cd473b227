"""Colours: which class of the style every group has, the same in all pictures of a page."""

from __future__ import annotations

from tiltmeter.report.findings import Findings
from tiltmeter.report.headline import MANY


def colours(found: Findings) -> list[str]:
    """The class of every group: its colour, or grey where many groups leave room for the worst and the best only."""
    if len(found.groups) < MANY:
        return [f"g{place}" for place in range(len(found.groups))]
    worst, best = found.extremes
    return ["g0" if place == worst else "g1" if place == best else "rest" for place in range(len(found.groups))]
