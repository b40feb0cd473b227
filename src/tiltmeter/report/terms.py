"""Terms: what every curve is called on the page, what its number is a share of, and which way is better."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, replace
from typing import Literal

from tiltmeter.names import Better

#: What a yes does to a person; None: not declared.
Positive = Literal["benefit", "burden"]


@dataclass(frozen=True)
class Term:
    """`title` heads its row, `meaning` stands below it; `verb` tells it of a group: "the model finds 22% of ..."."""

    curve: str
    title: str
    meaning: str
    better: Better
    share: bool = True

    @property
    def direction(self) -> str:
        """Which way is better, in words."""
        return f"{self.better} is better" if self.better != "neither" else "neither way is better by itself"


_TERMS = (
    Term("tpr", "Found", "of the positives, said yes (tpr)", "higher"),
    Term("fpr", "Wrongly said yes", "of the negatives (fpr)", "lower"),
    Term("positive_rate", "Said yes", "of everyone (positive rate)", "higher"),
    Term("error", "Wrong decisions", "of everyone (error)", "lower"),
    Term("squared_error", "Squared error", "mean of (score - label) squared", "lower", share=False),
    Term("loss", "Loss", "what training makes small", "lower", share=False),
)
TERMS = {term.curve: term for term in _TERMS}


def term_of(curve: str, positive: Positive | None, better: Better | None = None) -> Term:
    """The term of a curve; saying yes more often is better or worse by what a yes does, and neither if undeclared.

    >>> term_of("positive_rate", "burden").better, term_of("positive_rate", None).better, term_of("mine", None).title
    ('lower', 'neither', 'mine')

    To be found is no advantage where a yes is a burden.
    """
    known = TERMS.get(curve)
    if known is None:
        return Term(curve, curve.replace("_", " "), "a curve of the run", better or "neither", share=False)
    if curve == "positive_rate":
        yes: Better = "neither" if positive is None else "higher" if positive == "benefit" else "lower"
        return replace(known, better=yes)
    if curve == "tpr" and positive == "burden":
        return replace(known, better="neither")
    return known


def headline_curve(curves: Container[str], positive: Positive | None, source: str) -> str:
    """The curve that the page is about: tpr for a benefit, fpr for a burden; undeclared, tpr where labels are two.

    >>> headline_curve({"loss", "error", "tpr", "fpr"}, "burden", "training"), headline_curve({"loss"}, None, "theory")
    ('fpr', 'loss')
    """
    if positive not in (None, "benefit", "burden"):
        raise ValueError(f'`positive` should be "benefit", "burden" or None. Found positive = {positive!r}.')
    if positive is not None:
        curve = "tpr" if positive == "benefit" else "fpr"
        if curve not in curves:
            raise ValueError(
                f'`positive` is for runs that decide between two labels. Found positive = "{positive}" and no {curve}.'
            )
        return curve
    order = (
        ("tpr", "error", "squared_error", "loss")
        if source in ("training", "predictions", "forecast")
        else ("loss", "error")
    )
    found = next((name for name in order if name in curves), None)
    if found is None:
        raise ValueError("The runs share none of the curves loss, error, squared_error: nothing to report.")
    return found
