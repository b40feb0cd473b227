"""Claim: a published sentence, the number that tests it, the rule, and the verdict."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Claim:
    """A finding and whether it was found: `holds` where the statistic lies at or above the bar.

    `where` says in words where it does not hold, or what limits it.

    >>> print(Claim("Groups differ", statistic=0.2, what="gap in error", bar=0.01))
    Holds: Groups differ (gap in error 0.2, at least 0.01 asked).
    """

    sentence: str
    statistic: float
    what: str
    bar: float
    where: str = ""

    @property
    def holds(self) -> bool:
        """The verdict."""
        return self.statistic >= self.bar

    def __str__(self) -> str:
        verdict = "Holds" if self.holds else "Does not hold"
        text = f"{verdict}: {self.sentence} ({self.what} {self.statistic:.3g}, at least {self.bar:g} asked)."
        return f"{text} {self.where}" if self.where else text
