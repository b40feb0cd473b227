"""Claim: which part makes a difference between two groups, in one sentence."""

from __future__ import annotations

from tiltmeter.analysis.base_rate_split import BaseRateSplit


def claim(split: BaseRateSplit) -> str:
    """Which part makes the difference."""
    gap, base, within = split.gap, split.base_rates, split.within_labels
    what = f"the difference in {split.curve}"
    if not gap.shown:
        return f"Base rates and decisions leave no shown difference in {split.curve}."
    if base.shown and base.value * gap.value > 0 and not (within.shown and within.value * gap.value > 0):
        return f"Base rates make {what}."
    if within.shown and within.value * gap.value > 0 and not (base.shown and base.value * gap.value > 0):
        return f"Decisions within labels make {what}, not base rates."
    return f"Base rates and decisions within labels both make {what}."
