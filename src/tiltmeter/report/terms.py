"""Terms: what every curve is called on the page, what its number is a share of, and which way is better."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tiltmeter.fairness.estimate import Estimate
from tiltmeter.names import Better
from tiltmeter.question import Question
from tiltmeter.report.wording import between, number, percents, points
from tiltmeter.shown_text import percent


@dataclass(frozen=True)
class Term:
    """`title` heads its row, `meaning` stands below it in the words of the task, or in plain ones."""

    curve: str
    title: str
    meaning: str
    better: Better
    share: bool = True

    @property
    def name(self) -> str:
        """What it is called within a sentence."""
        return self.title[:1].lower() + self.title[1:]

    def told(self, value: float, digits: int | None = None) -> str:
        """A value of it: a share as a percentage."""
        return percent(value, digits) if self.share else number(value)

    def size(self, difference: float) -> str:
        """The size of a difference: points of a share."""
        return points(difference) if self.share else number(difference)

    def limits(self, estimate: Estimate) -> str:
        """The limits of a value or of a difference."""
        return between(estimate) if self.share else f"{number(estimate.low)} to {number(estimate.high)}"

    def row(self, *values: float) -> list[str]:
        """Several values with the same digits."""
        return percents(*values) if self.share else list(map(number, values))


_TERMS = (
    Term("tpr", "True positive rate", "positive cases found", "higher"),
    Term("fpr", "False positive rate", "negative cases called positive", "lower"),
    Term("positive_rate", "Selection rate", "called positive", "higher"),
    Term("error", "Error rate", "decided wrongly", "lower"),
    Term("squared_error", "Squared error", "mean of (score - label) squared", "lower", share=False),
    Term("loss", "Loss", "what training makes small", "lower", share=False),
)
TERMS = {term.curve: term for term in _TERMS}


def term_of(curve: str, question: Question | None, better: Better | None = None) -> Term:
    """The term of a curve; the question gives its words and, where a decision is a burden, its direction.

    >>> term_of("positive_rate", Question(kind="burden")).better, term_of("mine", None).title
    ('lower', 'mine')
    >>> term_of("fpr", Question("flagged", "reoffended", "burden")).meaning
    'flagged among those who did not reoffend'
    """
    known = TERMS.get(curve)
    if known is None:
        return Term(curve, curve.replace("_", " "), "a curve of the run", better or "neither", share=False)
    if question is None:
        return known
    turned = question.better(curve)
    way: Better = "lower" if turned == "lower" else known.better
    return replace(known, meaning=question.gloss(curve) or known.meaning, better=way)
