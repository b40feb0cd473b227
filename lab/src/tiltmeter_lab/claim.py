"""Claim: a published sentence, the number that tests it, the rule, and the verdict."""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape
from typing import Literal

Verdict = Literal["holds", "does not hold", "not run"]
Rule = Literal["at least", "at most", "so"]

#: Verdicts are called close if the statistic is less than this many standard errors from the threshold.
CLOSE = 2.0


@dataclass(frozen=True)
class Claim:
    """A published finding with its verdict: it `holds` if the statistic is on the right side of the threshold.

    >>> print(Claim("Groups differ", statistic=0.2, what="gap in error", threshold=0.01))
    Holds: Groups differ (gap in error 0.2, at least 0.01 asked).

    `error` is the standard error of the statistic if known, `seeds` the number of runs behind it. A `safe` claim should
    hold at any scale, and the tests assert it. Claims that depend on scale or luck are `safe=False`: they are reported
    but not asserted. A statistic of NaN means that the claim was not tested. `where` says in words where it does not
    hold, or what limits it. The rule "so" is for yes-or-no questions; see `whether`.
    """

    sentence: str
    statistic: float
    what: str
    threshold: float
    where: str = ""
    rule: Rule = "at least"
    error: float | None = None
    seeds: int = 1
    safe: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "where", " ".join(self.where.split("\n")))  # one cell of a table

    @property
    def verdict(self) -> Verdict:
        """What was found."""
        if math.isnan(self.statistic) or math.isnan(self.threshold):
            return "not run"
        return "holds" if self.holds else "does not hold"

    @property
    def holds(self) -> bool:
        """Whether the statistic meets the rule."""
        return self.statistic <= self.threshold if self.rule == "at most" else self.statistic >= self.threshold

    @property
    def reason(self) -> str:
        """Why there is no verdict, if there is none."""
        few = " One seed has no standard error: take at least 2." if self.seeds == 1 else ""
        return self.where or f"The statistic has no value in these runs.{few}"

    @property
    def close(self) -> bool:
        """Whether it is within two standard errors of the threshold: other seeds might give another verdict."""
        return bool(self.error) and abs(self.statistic - self.threshold) < CLOSE * float(self.error or 0.0)

    @property
    def decision(self) -> str:
        """The verdict, and whether it is a close one."""
        return f"{self.verdict}, but within two standard errors of the threshold" if self.close else self.verdict

    @property
    def measured(self) -> str:
        """The number, with its standard error; yes or no for a question."""
        if self.rule == "so":
            return "yes" if self.holds else "no"
        known = self.error is not None and math.isfinite(self.error)
        return f"{self.statistic:.3g}{f' ± {self.error:.2g}' if known else ''}"

    @property
    def asked(self) -> str:
        """What the number should be."""
        return "yes" if self.rule == "so" else f"{self.rule} {self.threshold:.3g}"

    def _repr_html_(self) -> str:
        return f"<p>{escape(str(self))}</p>"

    def __str__(self) -> str:
        if self.verdict == "not run":
            return f"Not run: {self.sentence}. {self.reason}"
        found = f"? {self.measured}" if self.rule == "so" else f" {self.measured}, {self.asked} asked"
        text = f"{self.decision.capitalize()}: {self.sentence} ({self.what}{found})."
        return f"{text} {self.where}" if self.where else text


def whether(sentence: str, so: bool, what: str, where: str = "", *, seeds: int = 1, safe: bool = True) -> Claim:
    """Return a claim that is tested by a yes-or-no question, `what`; `safe` as for `Claim`.

    >>> print(whether("Losses cross", False, "does the lead change", "+ leads throughout."))
    Does not hold: Losses cross (does the lead change? no). + leads throughout.
    """
    return Claim(sentence, float(so), what, 1.0, where, rule="so", seeds=seeds, safe=safe)


def not_run(sentence: str, why: str) -> Claim:
    """A claim that could not be tested here, with the reason.

    >>> print(not_run("Curves cross on CelebA", "Needs the images."))
    Not run: Curves cross on CelebA. Needs the images.
    """
    return Claim(sentence, math.nan, "", 0.0, why, safe=False)
