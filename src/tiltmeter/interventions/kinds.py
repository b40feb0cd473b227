"""Kinds: what an intervention may change beside the weights of groups: points, batches, data, steps, the model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from tiltmeter.interventions.intervention import Intervention, Needs
from tiltmeter.record.labelled import JSON


@dataclass(frozen=True)
class BatchIntervention(Intervention, ABC):
    """Another batch in place of the one that was drawn: mixed, paired or augmented points.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Reversed(BatchIntervention):
    ...     def batch(self, x, y, group, rng):
    ...         return x[::-1], y[::-1], group[::-1]
    >>> Reversed().changes
    'the batches'
    """

    changes = "the batches"

    @abstractmethod
    def batch(self, x: Any, y: Any, group: Any, rng: np.random.Generator) -> tuple[Any, Any, Any]:
        """Return x, y and group codes of the batch to train on; all random numbers come from `rng`."""


@dataclass(frozen=True)
class DataIntervention(Intervention, ABC):
    """Other training data, made before training starts.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Halved(DataIntervention):
    ...     def data(self, data, snapshot):
    ...         return data.take(range(0, len(data), 2))
    >>> Halved().scout
    0

    With `scout` > 0, a copy of the untrained model is first trained without interventions for that many steps, and
    `data` sees a snapshot of its outputs on the training points. The model itself then starts from its own initial
    weights. The steps of the scout count as cost.

    Args:
        scout: Steps for which a copy is first trained plainly, to look at its outputs; 0: none.
    """

    changes = "the data"
    scout: int = field(default=0, kw_only=True)

    def __post_init__(self) -> None:
        if isinstance(self.scout, bool) or self.scout % 1 != 0 or self.scout < 0:  # infinity too leaves a rest
            raise ValueError(f"`scout` should be a number of steps, at least 0. Found scout = {self.scout!r}.")

    @property
    def routes(self) -> tuple[str, ...]:
        return ("train",) if self.scout else ("train", "ensemble", "forecast")

    @abstractmethod
    def data(self, data: Any, snapshot: Any) -> Any:
        """GroupedData in place of `data`; `snapshot` is None without a scout."""

    def account(self, before: Any, after: Any, snapshot: Any) -> dict[str, JSON]:  # noqa: ARG002
        """What the run should note of what was done, such as how well a set was guessed; nothing as a rule."""
        return {}


@dataclass(frozen=True)
class ModelIntervention(Intervention, ABC):
    """Another model, made from the trained one and data with groups; training itself is not changed.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class AsItIs(ModelIntervention):
    ...     def deliver(self, model, data):
    ...         return model
    >>> AsItIs().needs
    'validation groups'

    A curve at step s describes the model that would be delivered if training stopped there.
    """

    needs = "validation groups"
    changes = "the model that is delivered"
    #: Whether the scores of what it delivers are logits, whatever the loss of the training.
    logits: ClassVar[bool] = False
    #: Whether it delivers `GroupScores`, which answers by the group of a point; the model then stays as it is.
    by_group: ClassVar[bool] = False

    def check(self, data: Any) -> None:
        """Refuse held-out points that it cannot fit, before anything is trained; all are taken as a rule."""

    def answers(self, data: Any) -> tuple[Hashable, ...]:
        """The groups whose points `GroupScores` can answer once it is fitted to these data."""
        return tuple(data.groups)

    @abstractmethod
    def deliver(self, model: Any, data: Any) -> Any:
        """Return the module to deliver instead of `model`, which is not changed: the same architecture, other values
        (or `GroupScores` around it, if it is `by_group`).

        All randomness comes from a seed among its own fields. It is called in evaluation mode and without gradients.
        """


@dataclass(frozen=True)
class StepIntervention(Intervention, ABC):
    """Wraps the optimiser, for instance in one that takes the gradient at another point.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Same(StepIntervention):
    ...     def optimizer(self, made):
    ...         return made
    >>> Same().needs
    'no groups'
    """

    needs: ClassVar[Needs] = "no groups"
    changes = "the steps of the optimiser"
    #: Whether it asks for the gradient of one group after the other: `step(closure, groups)` with `closure(group)`.
    by_group: ClassVar[bool] = False

    @abstractmethod
    def optimizer(self, made: Any) -> Any:
        """A torch optimizer in place of `made`; it is stepped with a closure, and with the codes of the groups in the
        batch if it is `by_group`.
        """


@dataclass(frozen=True)
class PointIntervention(Intervention, ABC):
    """Another loss for every point of a batch, from its loss, its score and its label; it needs no group labels.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Doubled(PointIntervention):
    ...     def each(self, losses, scores, y):
    ...         return 2.0 * losses
    >>> Doubled().each(0.5, 0.0, 1.0)
    1.0
    """

    needs: ClassVar[Needs] = "no groups"
    changes = "the loss of points"
    #: Whether it reads a loss as minus the logarithm of a probability, so that the loss must be one.
    log_loss: ClassVar[bool] = False
    #: Whether a point's new loss depends on that point alone, and not on the others of its batch.
    pointwise: ClassVar[bool] = True

    @property
    def routes(self) -> tuple[str, ...]:
        return "train", "ensemble"

    @abstractmethod
    def each(self, losses: Any, scores: Any, y: Any) -> Any:
        """Losses (B,) in place of `losses` (B,), as torch tensors; the mean over the batch is then taken."""


@dataclass(frozen=True, eq=False)
class Shown:
    """What an intervention of terms may see of a batch, as torch tensors; what it does not ask for is None.

    >>> import torch
    >>> losses, scores = torch.tensor([0.1, 0.7]), torch.tensor([2.0, -1.0])
    >>> shown = Shown(losses, scores, y=torch.ones(2), labels=(-1.0, 1.0))
    >>> shown.losses[shown.scores < 0], shown.group  # an intervention that does not ask for groups gets none
    (tensor([0.7000]), None)

    Args:
        losses: Loss of every point.
        scores: What the model gave for every point.
        y: Label of every point.
        labels: Labels of the training data, smallest first.
        group: Group of every point as a number; None if not needed.
        x: Points as the model got them; None if not needed.
        features: What went into the last linear layer; None if not needed.
        own: Module that the intervention trains beside the model; None if it has none.
    """

    losses: Any
    scores: Any
    y: Any
    labels: tuple[float, ...]
    group: Any = None
    x: Any = None
    features: Any = None
    own: Any = None


@dataclass(frozen=True)
class TermIntervention(PointIntervention):
    """Another loss for every point, and a term that is added to the mean over the batch.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Small(TermIntervention):
    ...     def term(self, shown):
    ...         return shown.losses, 0.1 * shown.scores.square().mean()
    >>> Small().sees
    frozenset()

    An intervention of groups weighs the losses and not the term. A module of its own is trained in the same steps, by
    the same optimiser: its loss is a part of the term, and what belongs to the model must not depend on it (`detach`).
    """

    #: What it needs beside losses, scores and labels: of "groups", "inputs", "input gradients" and "features".
    sees: ClassVar[frozenset[str]] = frozenset()
    #: Whether it compares the groups of a batch with one another, so that none should be missing.
    compares_groups: ClassVar[bool] = False

    @property
    def routes(self) -> tuple[str, ...]:
        return ("train",)

    @property
    def scout(self) -> int:
        """The steps for which a copy of the model is trained first, to become its own module; 0: none is."""
        return 0

    def module(self, model: Any, data: Any) -> Any:  # noqa: ARG002
        """The module beside the model, made from the untrained model and the training data; None as a rule.

        Parameters that it should not learn have no `requires_grad`. All randomness comes from the intervention's
        fields."""
        return None

    @abstractmethod
    def term(self, shown: Shown) -> tuple[Any, Any]:
        """Losses (B,) in place of `shown.losses`, and a number that is added to the loss of the batch."""

    def each(self, losses: Any, scores: Any, y: Any) -> Any:  # noqa: ARG002
        raise TypeError(f"{type(self).__name__} sees more of a batch than losses and scores: `Steering` applies it.")
