"""Point interventions: what the loss of each point is."""

from __future__ import annotations

import copy
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tiltmeter.interventions.kinds import PointIntervention, Shown, TermIntervention
from tiltmeter.interventions.shared.by_group import attribute_codes
from tiltmeter.interventions.shared.log_losses import log_losses, one_number_a_point
from tiltmeter.interventions.shared.shares import checked_per_group


@dataclass(frozen=True)
class CVaR(PointIntervention):
    """The mean over the worst share `alpha` of every batch, the conditional value at risk (Levy et al. 2020).

    >>> import torch
    >>> CVaR(0.5).each(torch.tensor([0.1, 0.4, 0.2, 0.3]), None, None)
    tensor([0.0000, 0.8000, 0.0000, 0.6000])

    The losses of the k = alpha B worst points are multiplied by B / k, the others by 0, so that the mean over the batch
    is the mean over the worst. If k is not whole, the point at the edge counts in part.

    The worst points are not a group: wrong labels have the largest losses of all, and it trains on those.

    Args:
        alpha: Share of every batch that counts, the points with the largest losses.
    """

    title = "only the points with the largest losses of a batch count"
    cannot = "tell a hard point from one with a wrong label"
    pointwise = False

    alpha: float = 0.5

    def __post_init__(self) -> None:
        if isinstance(self.alpha, bool) or not 0.0 < self.alpha <= 1.0:
            raise ValueError(f"`alpha` should lie above 0 and be at most 1. Found alpha = {self.alpha!r}.")

    def each(self, losses: Any, scores: Any, y: Any) -> Any:  # noqa: ARG002
        import torch

        counted = self.alpha * len(losses)
        order = torch.argsort(losses.detach(), descending=True, stable=True)
        places = torch.empty_like(order)
        places[order] = torch.arange(len(order), device=order.device)
        share = (counted - places.to(losses.dtype)).clamp(0.0, 1.0)
        return losses * share / self.alpha


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
    title = "a differentiable penalty on unequal rates of groups, from the package fairret"
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


@dataclass(frozen=True)
class GradientReversal(TermIntervention):
    """An adversary learns the attribute from the last features, and the model unlearns it, Ganin et al. (2016).

    >>> GradientReversal(strength=0.5, hidden=16).needs
    'training groups'

    The adversary minimises its cross-entropy A; the gradient of A with respect to the features goes into the model
    times -`strength`. It is linear, or has one layer of `hidden` units. In a loop of one's own the optimiser gets its
    parameters too: `[*model.parameters(), *steer.parameters()]`.

    Minimising against one adversary is not the same as hiding the attribute from all of them, and runs differ from
    seed to seed far more than plain ones. If the attribute goes along with the label, hiding one hides the other.

    Args:
        strength: How much the model unlearns, as a factor on the adversary's gradient.
        attribute: Which attribute each group has; None: the group itself.
        hidden: Units of the adversary's hidden layer; 0: it is linear.
        seed: Seed of the adversary's initial weights.
    """

    needs = "training groups"
    sees = frozenset({"groups", "features"})
    title = "features from which an adversary cannot tell an attribute"
    cannot = "hide an attribute that goes along with the label and keep the label"

    strength: float = 0.1
    attribute: Mapping[Hashable, Hashable] | None = None
    hidden: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        checked_per_group(self.strength, "strength", 0.0)
        if isinstance(self.hidden, bool) or self.hidden != int(self.hidden) or self.hidden < 0:
            raise ValueError(f"`hidden` should be a number of units, at least 0. Found hidden = {self.hidden!r}.")

    def module(self, model: Any, data: Any) -> Any:
        import torch

        from tiltmeter.interventions.shared.last_features import last_layer

        layer = last_layer(model, "GradientReversal")
        codes = attribute_codes(self.attribute, data.groups)
        classes = int(codes.max()) + 1
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            if self.hidden:
                head = [torch.nn.Linear(layer.in_features, self.hidden), torch.nn.ReLU()]
                made = torch.nn.Sequential(*head, torch.nn.Linear(self.hidden, classes))
            else:
                made = torch.nn.Sequential(torch.nn.Linear(layer.in_features, classes))
        made.register_buffer("codes", torch.as_tensor(np.asarray(codes, dtype=np.int64)))
        return made.to(layer.weight.device, layer.weight.dtype)

    def term(self, shown: Shown) -> tuple[Any, Any]:
        import torch

        wanted = shown.own.codes[shown.group]
        against = shown.features
        # The value and the gradient of the adversary are its own; to the features it goes with the sign turned.
        turned = (1.0 + self.strength) * against.detach() - self.strength * against
        return shown.losses, torch.nn.functional.cross_entropy(shown.own(turned), wanted)


@dataclass(frozen=True)
class GeneralisedCrossEntropy(PointIntervention):
    """(1 - p^q) / q in place of -log p, with p the probability of a point's own label, Zhang and Sabuncu (2018).

    >>> import torch
    >>> GeneralisedCrossEntropy(0.7).each(-torch.log(torch.tensor([0.9, 0.2])), None, None)
    tensor([0.1016, 0.9655])

    q -> 0 is the usual loss, q = 1 the mean absolute error. Its gradient is p^q times the usual one, so that training
    follows what is easy. That makes it robust to wrong labels, and it *amplifies* a bias: it is what the biased network
    of LfF is trained with.

    A smaller value is not a better fit: the scale of the loss is another one.

    Args:
        q: Between 0, the usual loss, and 1, the mean absolute error.
    """

    title = "points that the model finds hard count less"
    cannot = "help a group whose points are hard: it counts them less"
    log_loss = True

    q: float = 0.7

    def __post_init__(self) -> None:
        if isinstance(self.q, bool) or not 0.0 < self.q <= 1.0:
            raise ValueError(f"`q` should lie above 0 and be at most 1. Found q = {self.q!r}.")

    def each(self, losses: Any, scores: Any, y: Any) -> Any:  # noqa: ARG002
        return -(-self.q * losses).expm1() / self.q


@dataclass(frozen=True)
class LfF(TermIntervention):
    """A point counts by its relative difficulty L_b / (L_b + L), learning from failure, Nam et al. (2020).

    >>> LfF(q=0.7).cost(groups=4)
    2.0

    L is the loss of the model and L_b that of a second network, a copy of the untrained model. The second one is
    trained on the same batches with `GeneralisedCrossEntropy(q)`, so that it follows what is easy, which is taken for
    the bias. In a loop of one's own the optimiser gets its parameters too: `[*model.parameters(),
    *steer.parameters()]`.

    A point counts about half where both networks agree, so that training is slower than plain training at the same
    learning rate. The moving averages of the published code are left out. It fails where the bias is so easy that both
    networks learn it at once.

    Args:
        q: Exponent of the loss of the second network, see `GeneralisedCrossEntropy`.
    """

    sees = frozenset({"inputs"})
    log_loss = True
    title = "points that a biased network beside the model finds hard count more"
    cannot = "tell the bias from whatever else is easy to learn"

    q: float = 0.7

    def __post_init__(self) -> None:
        GeneralisedCrossEntropy(self.q)  # checks q

    def cost(self, groups: int) -> float:  # noqa: ARG002
        return 2.0

    def module(self, model: Any, data: Any) -> Any:  # noqa: ARG002
        return copy.deepcopy(model)

    def term(self, shown: Shown) -> tuple[Any, Any]:
        biased = one_number_a_point(shown.own(shown.x), len(shown.losses), "LfF")
        easy = log_losses(biased, shown.y, shown.labels)
        both = easy.detach() + shown.losses.detach()
        difficulty = easy.detach() / both.clamp(min=1e-12)
        return difficulty * shown.losses, GeneralisedCrossEntropy(self.q).each(easy, biased, shown.y).mean()
