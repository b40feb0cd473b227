"""Question: what the decision of a task means to the people it is about, and which number answers it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

Kind: TypeAlias = Literal["burden", "benefit"]
#: The rates that can answer a question, the first one asked first.
ASKED: dict[Kind, tuple[str, ...]] = {
    "burden": ("fpr", "positive_rate", "error", "tpr"),
    "benefit": ("tpr", "positive_rate", "error", "fpr"),
}


@dataclass(frozen=True)
class Question:
    """What a positive decision means: `decision` in the past tense, and the `outcome` that it foretells.

    >>> question = Question(decision="flagged", outcome="reoffended", kind="burden")
    >>> question.asked, question.gloss("fpr")
    ('fpr', 'flagged among those who did not reoffend')

    A *burden* (flagged, denied, searched) is asked first whom it meets wrongly, a *benefit* (approved, admitted, found)
    whom it misses. Without words for decision and outcome, the usual terms are said without a gloss.

    Args:
        decision: What a positive decision does to a person, in the past tense: "flagged", "approved".
        outcome: What it foretells, in the past tense: "reoffended", "repaid".
        kind: "burden" (asked first whom it meets wrongly) or "benefit" (asked first whom it misses).
        curve: Another curve that answers the question; None: the one of the kind.
    """

    decision: str | None = None
    outcome: str | None = None
    kind: Kind = "benefit"
    curve: str | None = None

    def __post_init__(self) -> None:
        for name in ("decision", "outcome"):
            text = getattr(self, name)
            if text is not None and (not isinstance(text, str) or not text.strip()):
                raise ValueError(f"`{name}` should be a word or two, as in {name}='approved'. Found {name} = {text!r}.")
        if (self.decision is None) != (self.outcome is None):
            missing = "outcome" if self.outcome is None else "decision"
            raise ValueError(f"`decision` and `outcome` go together. Found no {missing}.")
        if not isinstance(self.kind, str) or self.kind not in ASKED:
            raise ValueError(f'`kind` should be "burden" or "benefit". Found kind = {self.kind!r}.')
        if self.curve is not None and not isinstance(self.curve, str):
            raise TypeError(f"`curve` should be the name of a curve. Found curve = {self.curve!r}.")

    @property
    def asked(self) -> str:
        """The curve that answers the question."""
        return self.curve or ASKED[self.kind][0]

    @property
    def curves(self) -> tuple[str, ...]:
        """All rates, in the order in which they answer the question."""
        return tuple(dict.fromkeys((self.asked, *ASKED[self.kind])))

    def gloss(self, curve: str) -> str:
        """What a curve counts, in the words of the task; "" for a curve that counts no decisions."""
        if self.decision is None or self.outcome is None:
            return ""
        missed = _without(self.outcome)
        return {
            "fpr": f"{self.decision} among those who {missed}",
            "tpr": f"{self.decision} among those who {self.outcome}",
            "positive_rate": self.decision,
            "error": "decided wrongly",
        }.get(curve, "")

    def sentence(self, curve: str, first: str, second: str) -> str:
        """Two shares of a curve in the words of the task; "" where there are none.

        >>> Question("flagged", "reoffended", "burden").sentence("fpr", "28 % of a", "14 % of b")
        'Of those who did not reoffend, 28 % of a and 14 % of b were flagged.'
        """
        if self.decision is None or self.outcome is None or curve not in ("fpr", "tpr", "positive_rate"):
            return ""
        counted = {"fpr": f"Of those who {_without(self.outcome)}, ", "tpr": f"Of those who {self.outcome}, "}
        return f"{counted.get(curve, '')}{first} and {second} were {self.decision}."

    def who(self, curve: str) -> str:
        """Of whom a rate is a share: "reoffended", "did not reoffend", or "" where it is a share of all."""
        if self.outcome is None:
            return ""
        return {"tpr": self.outcome, "fpr": _without(self.outcome)}.get(curve, "")

    def shares(self, curve: str) -> str:
        """A share of a curve in the words of the task, to be filled in; "" where there are none.

        >>> Question("flagged", "reoffended", "burden").shares("fpr").format(share="23 %", are="are")
        '23 % of those who did not reoffend are flagged'
        """
        if self.decision is None or curve not in ("fpr", "tpr", "positive_rate"):
            return ""
        who = self.who(curve)
        return f"{{share}}{f' of those who {who}' if who else ''} {{are}} {self.decision}"

    def better(self, curve: str) -> str | None:
        """Which way is better for a person where the question decides that; None: as for every task."""
        return "lower" if curve == "positive_rate" and self.kind == "burden" else None

    def to_json(self) -> dict[str, str | None]:
        return asdict(self)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Question:
        """The question that `to_json` wrote, or that a [question] table of a TOML file asks."""
        known = ("decision", "outcome", "kind", "curve")
        for name in stored:
            if name not in known:
                raise KeyError(f"A question has no field {name!r}. There are: {', '.join(known)}.")
        return cls(**stored)


def checked_question(question: Any) -> Question | None:
    """Return the question, or raise an error that shows what one looks like."""
    if question is None or isinstance(question, Question):
        return question
    example = 'tm.Question("approved", "repaid")'
    raise TypeError(f"`question` should be a Question, as {example}. Found {type(question).__name__}.")


def _without(outcome: str) -> str:
    """The outcome, denied.

    >>> _without("reoffended"), _without("repaid"), _without("qualified"), _without("high income")
    ('did not reoffend', 'did not repay', 'did not qualify', 'not: high income')
    >>> _without("graduated")  # whether "graduat" or "graduate" is the verb cannot be seen from the word
    'had not graduated'
    """
    irregular = {"repaid": "repay", "paid": "pay", "left": "leave", "died": "die", "had": "have", "won": "win"}
    first, _, rest = outcome.partition(" ")
    more = f" {rest}" if rest else ""
    if first in irregular:
        return f"did not {irregular[first]}{more}"
    if not first.endswith("ed") or len(first) <= 4:
        return f"not: {outcome}"
    stem = first[:-2]
    if stem.endswith("i"):
        return f"did not {stem[:-1]}y{more}"
    if stem[-1] == stem[-2] and stem[-1] in "bdgmnprt":
        return f"did not {stem[:-1]}{more}"
    whole = stem.endswith(("er", "ay", "oy", "ow", "it")) or (stem[-2] not in "aeiou" and stem[-1] in "cdfhkmnpstwx")
    return f"did not {stem}{more}" if whole else f"had not {outcome}"
