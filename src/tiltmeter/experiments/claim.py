"""Claim: a published sentence, the number that tests it, the rule, and the verdict."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

Verdict = Literal["holds", "does not hold", "not run"]


@dataclass(frozen=True)
class Claim:
    """A finding and whether it was found: `holds` where the statistic lies on the right side of the bar.

    `error` is the standard error of the statistic where it is known, `seeds` how many runs stand behind it. A claim
    that is `safe` is one that should hold at any scale, and the tests assert it; the others are reported. A statistic
    of NaN means that it was not run. `where` says in words where it does not hold, or what limits it.

    >>> print(Claim("Groups differ", statistic=0.2, what="gap in error", bar=0.01))
    Holds: Groups differ (gap in error 0.2, at least 0.01 asked).
    """

    sentence: str
    statistic: float
    what: str
    bar: float
    where: str = ""
    rule: Literal["at least", "at most"] = "at least"
    error: float | None = None
    seeds: int = 1
    safe: bool = True

    @property
    def verdict(self) -> Verdict:
        """What was found."""
        if math.isnan(self.statistic):
            return "not run"
        return "holds" if self.holds else "does not hold"

    @property
    def holds(self) -> bool:
        """Whether it was run and found."""
        return self.statistic >= self.bar if self.rule == "at least" else self.statistic <= self.bar

    def __str__(self) -> str:
        if self.verdict == "not run":
            return f"Not run: {self.sentence}. {self.where}".strip()
        spread = "" if self.error is None else f" ± {self.error:.2g}"
        text = (
            f"{self.verdict.capitalize()}: {self.sentence} "
            f"({self.what} {self.statistic:.3g}{spread}, {self.rule} {self.bar:.3g} asked)."
        )
        return f"{text} {self.where}" if self.where else text


def not_run(sentence: str, why: str) -> Claim:
    """A claim that could not be tested here, with the reason.

    >>> print(not_run("Curves cross on CelebA", "Needs the images."))
    Not run: Curves cross on CelebA. Needs the images.
    """
    return Claim(sentence, math.nan, "", 0.0, why, safe=False)
