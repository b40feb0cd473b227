"""Statements: what is shown about groups in a run, with its error rate."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tiltmeter.analysis.difference import ALL, Difference
from tiltmeter.analysis.pairs import Pair
from tiltmeter.notebook_text import NotebookText
from tiltmeter.visible_text import group_name

#: The source of the limits.
Basis = Literal["points", "standard errors", "seeds", "values", "forecast"]
#: What the statements are about: the networks that were trained, or all seeds of their recipe.
Scope = Literal["run", "runs", "recipe"]

_SCOPES: dict[Scope, str] = {"run": "In this run", "runs": "In these runs", "recipe": "For this recipe"}


@dataclass(frozen=True, eq=False)
class Standing(NotebookText):
    """The differences of all chosen curves and groups; all statements hold together at `level`.

    `reasons` says why a curve, or a group in a curve, is not tested; `notes` holds other remarks. As text, there is a
    sentence for each difference (with six groups or more: for those that are shown). `one_of` says among how many pairs
    of groups the only one was chosen: the error rate does not cover this choice.
    """

    differences: tuple[Difference, ...]
    level: float
    scope: Scope
    basis: Basis
    looks: int
    reasons: Mapping[str, str]
    notes: tuple[str, ...] = ()
    one_of: int = 1

    def of(self, curve: str) -> tuple[Difference, ...]:
        """The differences in one curve."""
        return tuple(one for one in self.differences if one.curve == curve)

    def __getitem__(self, key: tuple[str, Pair] | str) -> Difference:
        """The difference in a curve between two groups, the first minus the second."""
        parts: Sequence[Any] = (key,) if isinstance(key, str) else key
        if len(parts) != 2 or isinstance(parts[1], str) or len(parts[1]) != 2:
            curve, pair = next(((one.curve, one.pair) for one in self.differences), ("loss", ("a", "b")))
            raise KeyError(f"Ask for a curve and two groups: found[{curve!r}, {pair!r}]. Found {key!r}.")
        curve, pair = str(parts[0]), tuple(parts[1])
        for one in self.of(curve):
            if one.pair == pair:
                return one
            if one.pair == pair[::-1]:
                return one.reversed
        known = ", ".join(f"[{one.curve!r}, {one.pair!r}]" for one in self.differences)
        raise KeyError(f"No difference in {curve} between {pair[0]} and {pair[1]}. There are: {known or 'none'}.")

    @property
    def against_all(self) -> bool:
        """Whether each group is compared with all together."""
        return any(one.pair[1] == ALL for one in self.differences)

    def could_be_worst(self, curve: str, look: int = -1) -> tuple[Hashable, ...]:
        """Return the groups that may be the worst off at one look: those not shown to be better than another.

        From six groups on, those not shown to be better than the mean of all. A single group is shown to be the worst.
        """
        groups = dict.fromkeys(group for one in self.of(curve) for group in one.pair if group != ALL)
        ahead = {one.leader[look] for one in self.of(curve) if one.judged}
        return tuple(group for group in groups if group not in ahead)

    @property
    def family(self) -> str:
        """What the error rate covers, in words."""
        curves = len({one.curve for one in self.differences})
        kinds = f"{curves} curves" if curves > 1 else "one curve"
        count = len({one.pair for one in self.differences})
        groups = f", {count} {'groups' if self.against_all else 'pairs'}" if count > 1 else ""
        looks = f"all {self.looks} looks" if self.looks > 1 else "one look"
        if self.basis == "forecast":
            each = "each curve by itself" if curves > 1 else "one curve"
            band = f"{looks}, {each}{groups}, {100 * (1 - self.level):g} % band"
            return f"{band} of one pair of {self.one_of}" if self.one_of > 1 else band
        chosen = f" if this one of {self.one_of} pairs was chosen before looking" if self.one_of > 1 else ""
        return f"{looks}, {kinds}{groups} together, {100 * self.level:g} %{chosen}"

    def __str__(self) -> str:
        if self.basis == "values":
            head, tail = "As recorded, without errors", ""
        else:
            head, tail = "As forecast" if self.basis == "forecast" else _SCOPES[self.scope], f" ({self.family})"
        pairs = len({one.pair for one in self.differences})
        sentences = [one.sentence(than=pairs > 1 or self.one_of > 1) for one in self._told() if one.judged]
        between = "\n" if pairs > 1 else " "  # one line for each pair
        text = ""
        if sentences:
            first = between if pairs > 1 else " "
            text = f"{head}{tail}:{first}{between.join([sentences[0], *map(_capital, sentences[1:])])}"
        for curve in dict.fromkeys(one.curve for one in self.differences if self.against_all):
            worst = self.could_be_worst(curve)
            text += f"{between}Could be worst in {curve} at the end: {_listed(worst)}."
        more = [f"{name}: {why}." for name, why in self.reasons.items()] + [f"{note}." for note in self.notes]
        return between.join([text, *more]).strip() or "Nothing to compare."

    def _told(self) -> list[Difference]:
        if not self.against_all:
            return list(self.differences)
        shown = [one for one in self.differences if one.sign.any()]
        quiet = [
            c for c in dict.fromkeys(one.curve for one in self.differences) if not any(s.curve == c for s in shown)
        ]
        return shown + [next(one for one in self.differences if one.curve == curve) for curve in quiet]


def _listed(names: Sequence[Hashable]) -> str:
    return ", ".join(map(group_name, names)) or "none"


def _capital(sentence: str) -> str:
    """A sentence that begins with a word of ours with a capital; a group's name stays as it is."""
    return f"No{sentence[2:]}" if sentence.startswith("no difference") else sentence
