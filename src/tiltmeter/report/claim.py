"""Claim: which part makes a difference between two groups, in one sentence."""

from __future__ import annotations

from tiltmeter.fairness.why import BaseRateSplit


def claim(split: BaseRateSplit) -> str:
    """Which part makes the difference.

    >>> from tiltmeter.fairness.estimate import Estimate
    >>> parts = Estimate(0.06, 0.05, 0.07), Estimate(0.07, 0.06, 0.08), Estimate(-0.01, -0.02, 0.01)
    >>> claim(BaseRateSplit("error", ("men", "women"), *parts, 0.05))
    'Base rates make the difference in error.'
    """
    gap, base, within = split.gap, split.base_rates, split.within_labels
    what = f"the difference in {split.curve}"
    if not gap.shown:
        return f"No difference in {split.curve} is shown that base rates or decisions could make."
    by_rates, by_decisions = (part.shown and part.value * gap.value > 0 for part in (base, within))
    if by_rates and by_decisions:
        return f"Base rates and decisions within labels both make {what}."
    if by_rates:
        return f"Base rates make {what}."
    if by_decisions:
        return f"Decisions within labels make {what}, not base rates."
    return f"It is not shown whether base rates or decisions within labels make {what}."
