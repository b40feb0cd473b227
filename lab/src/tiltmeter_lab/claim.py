"""Claim: a sentence, the number that tests it with its 95 % interval, and the verdict that these allow."""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape
from typing import Literal

from scipy import stats

Verdict = Literal["clear", "contradicted", "undecided", "measured", "not run"]
VERDICTS: tuple[Verdict, ...] = ("clear", "contradicted", "undecided", "measured", "not run")
Rule = Literal["at least", "at most", "so"]

#: An effect of this many standard errors is clear (at 5 %) in four runs of five.
POWER = 2.8
LEVEL = 0.05


@dataclass(frozen=True)
class Claim:
    """A finding and its verdict, which the 95 % interval of the statistic decides.

    >>> print(Claim("Groups differ", 0.2, "gap in error", 0.01, error=0.02, seeds=10, neutral=0.0))
    Clear: Groups differ (gap in error 0.2, 0.155 to 0.245; at least 0.01 asked).

    A claim has an asked size, the `threshold`, and a `neutral` value, that of no effect (by default the threshold).
    It is *clear* if the whole interval lies beyond neutral on the claimed side, and "smaller than asked" if it also
    stays short of the threshold. It is *contradicted* if the whole interval lies on the other side of neutral, and
    *undecided* otherwise. A number without an error is only *measured*; an `error` of 0 marks exact results.

    `trials` marks a share of so many trials, with Wilson's interval. Otherwise the interval is the statistic and t
    times its `error`, with `freedom` degrees of freedom (default: `seeds` - 1). The rule "so" is for yes-or-no
    questions; see `whether`. A statistic of NaN means that the claim was not tested. `where` says in words what limits
    it. A `safe` claim should meet its threshold at any scale, and the tests assert it.
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
    neutral: float | None = None
    trials: int | None = None
    freedom: float | None = None
    opposite: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "where", " ".join(self.where.split("\n")))  # one cell of a table

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval of the statistic; None if its error is not known."""
        if self.trials is not None:
            return wilson(self.statistic, self.trials)
        if self.error is None or not math.isfinite(self.error) or self.rule == "so":
            return None
        freedom = self.freedom if self.freedom is not None else self.seeds - 1 if self.seeds > 1 else math.inf
        half = float(stats.t.ppf(1 - LEVEL / 2, freedom)) * self.error if self.error else 0.0
        return self.statistic - half, self.statistic + half

    @property
    def verdict(self) -> Verdict:
        """What these runs allow to say."""
        if math.isnan(self.statistic) or math.isnan(self.threshold):
            return "not run"
        if self.rule == "so":
            return "clear" if self.holds else "contradicted" if self.opposite else "undecided"
        if self.interval is None:
            return "measured"
        near, far = self._claimed_side(self._neutral)
        if near > 0 or (near == 0 and self._neutral == self.threshold):
            return "clear"
        return "contradicted" if far < 0 else "undecided"

    @property
    def _neutral(self) -> float:
        return self.threshold if self.neutral is None else self.neutral

    def _claimed_side(self, value: float) -> tuple[float, float]:
        """How far the ends of the interval lie beyond a value on the claimed side, the nearer end first."""
        assert self.interval is not None
        low, high = self.interval
        return (value - high, value - low) if self.rule == "at most" else (low - value, high - value)

    @property
    def holds(self) -> bool:
        """Whether the statistic itself meets the threshold, whatever its error."""
        return self.statistic <= self.threshold if self.rule == "at most" else self.statistic >= self.threshold

    @property
    def smaller(self) -> bool:
        """Whether the effect is clear, and clearly short of the asked size."""
        return self.verdict == "clear" and self.interval is not None and self._claimed_side(self.threshold)[1] < 0

    @property
    def power(self) -> str:
        """What an undecided run could have shown, and how many seeds the asked size needs."""
        if self.verdict != "undecided" or self.interval is None:
            return ""
        error = self.error or (self.interval[1] - self.interval[0]) / (2 * float(stats.norm.ppf(1 - LEVEL / 2)))
        if not error:  # all seeds agree on no effect
            return ""
        shown = f"the smallest effect that these runs could show is {POWER * error:.2g}"
        size = abs(self.threshold - self._neutral)
        about = "the asked size" if size else "the effect seen"
        size = size or abs(self.statistic - self._neutral)
        if not size:
            return shown
        kind, count = ("trials", self.trials) if self.trials else ("seeds", self.seeds)
        needed = math.ceil(count * (POWER * error / size) ** 2)
        if needed <= count:
            return shown
        return f"{shown}; {about} needs about {needed:,} {kind}"

    @property
    def reason(self) -> str:
        """Why there is no verdict, if there is none."""
        few = " One seed has no standard error: take at least 2." if self.seeds == 1 else ""
        return self.where or f"The statistic has no value in these runs.{few}"

    @property
    def decision(self) -> str:
        """The verdict, with what qualifies it."""
        if self.smaller:
            return "clear, but smaller than asked"
        return f"undecided: {self.power}" if self.power else self.verdict

    @property
    def measured(self) -> str:
        """The number with its 95 % interval; yes or no for a question."""
        if self.rule == "so":
            return "yes" if self.holds else "no"
        ends = "" if self.interval is None or self.interval[0] == self.interval[1] else self.interval
        return f"{self.statistic:.3g}{f', {ends[0]:.3g} to {ends[1]:.3g}' if ends else ''}"

    @property
    def asked(self) -> str:
        """What the number should be."""
        return "yes" if self.rule == "so" else f"{self.rule} {self.threshold:.3g}"

    def _repr_html_(self) -> str:
        return f"<p>{escape(str(self))}</p>"

    def __str__(self) -> str:
        if self.verdict == "not run":
            return f"Not run: {self.sentence}. {self.reason}"
        number = f"? {self.measured}" if self.rule == "so" else f" {self.measured}; {self.asked} asked"
        text = f"{self.verdict.capitalize()}: {self.sentence} ({self.what}{number})."
        notes = "smaller than asked" if self.smaller else self.power
        text += f" {notes[0].upper()}{notes[1:]}." if notes else ""
        return f"{text} {self.where}" if self.where else text


def wilson(share: float, trials: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share.

    >>> [round(end, 2) for end in wilson(0.0, 2)]
    [0.0, 0.66]
    """
    z = float(stats.norm.ppf(1 - LEVEL / 2)) ** 2
    middle = (share + z / (2 * trials)) / (1 + z / trials)
    half = math.sqrt(z * (share * (1 - share) / trials + z / (4 * trials**2))) / (1 + z / trials)
    return (0.0 if share == 0 else middle - half), (1.0 if share == 1 else middle + half)


def whether(
    sentence: str, so: bool, what: str, where: str = "", *, seeds: int = 1, safe: bool = True, opposite: bool = False
) -> Claim:
    """Return a claim that is tested by a yes-or-no question, `what`; `safe` as for `Claim`.

    >>> print(whether("Losses cross", False, "does the lead change", "+ leads throughout."))
    Undecided: Losses cross (does the lead change? no). + leads throughout.

    A "no" may be want of power, so it is undecided, unless the `opposite` is shown.
    """
    return Claim(sentence, float(so), what, 1.0, where, rule="so", seeds=seeds, safe=safe, opposite=opposite)


def not_run(sentence: str, why: str) -> Claim:
    """A claim that could not be tested here, with the reason.

    >>> print(not_run("Curves cross on CelebA", "Needs the images."))
    Not run: Curves cross on CelebA. Needs the images.
    """
    return Claim(sentence, math.nan, "", 0.0, why, safe=False)
