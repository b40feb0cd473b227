"""FairnessPenalty: a differentiable penalty on unequal rates of groups, from the package fairret."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tiltmeter.interventions.kinds import Shown, TermIntervention
from tiltmeter.interventions.shared.shares import checked_per_group

#: Statistics of fairret, and the points of a group that each of them counts.
STATISTICS = {
    "PositiveRate": "all",
    "Accuracy": "all",
    "TruePositiveRate": "positive",
    "FalsePositiveRate": "negative",
}
PENALTIES = ("NormLoss", "LSELoss")


@dataclass(frozen=True)
class FairnessPenalty(TermIntervention):
    """loss + strength * penalty(statistic of every group over that of all), a fairret of Buyl et al. (2024).

    >>> FairnessPenalty("TruePositiveRate", strength=0.5).needs
    'training groups'

    With `penalty="NormLoss"` it is the sum over groups of `|rate of the group / rate of all - 1|`, with "LSELoss" a
    smooth maximum of these. Rates are means of probabilities, not of decisions. It needs fairret:
    `pip install "tiltmeter[fairness]"`.

    Groups are compared within a batch, so batches should hold enough points of each: draw them equally, with
    `Balanced(by="draws")` beside it. A group without a point (or without a positive one, where the statistic needs it)
    is left out of the term of that batch.

    Equal rates are not equal errors, and held-out points may have other rates.

    Args:
        statistic: Rate that should be equal, by its name in fairret, such as "PositiveRate".
        penalty: How differences are added up: "NormLoss" for their sum, "LSELoss" for a smooth maximum.
        strength: How much the term counts beside the loss; 0 is plain training.
    """

    needs = "training groups"
    sees = frozenset({"groups"})
    log_loss = True
    compares_groups = True
    cannot = "compare groups that are missing from a batch, or several classes"

    statistic: str = "PositiveRate"
    penalty: str = "NormLoss"
    strength: float = 1.0

    def __post_init__(self) -> None:
        for name, known in (("statistic", STATISTICS), ("penalty", PENALTIES)):
            if getattr(self, name) not in known:
                raise ValueError(f"`{name}` should be one of {', '.join(known)}. Found {getattr(self, name)!r}.")
        checked_per_group(self.strength, "strength", 0.0)

    @property
    def routes(self) -> tuple[str, ...]:
        return "train", "ensemble"

    def module(self, model: Any, data: Any) -> Any:  # noqa: ARG002
        return _fairret(self)  # before training, so that a missing package is told at once

    def term(self, shown: Shown) -> tuple[Any, Any]:
        import torch

        if shown.scores.ndim != 1:
            raise ValueError("FairnessPenalty compares rates of one positive label. Found several scores a point.")
        positive = shown.y == shown.labels[-1]
        counted = {"all": torch.ones_like(positive), "positive": positive, "negative": ~positive}
        here = torch.unique(shown.group[counted[STATISTICS[self.statistic]]])
        if len(here) < 2:
            return shown.losses, 0.0
        sens = (shown.group[:, None] == here).to(shown.scores.dtype)
        chosen = sens.sum(1) > 0
        labels = () if self.statistic == "PositiveRate" else (positive[chosen, None].to(shown.scores.dtype),)
        found = shown.own(shown.scores[chosen, None], sens[chosen], *labels)
        return shown.losses, self.strength * found


def _fairret(law: FairnessPenalty) -> Any:
    try:
        from fairret import loss, statistic  # type: ignore[import-untyped]
    except ImportError:
        raise ImportError('FairnessPenalty needs fairret: pip install "tiltmeter[fairness]".') from None
    return getattr(loss, law.penalty)(getattr(statistic, law.statistic)())
