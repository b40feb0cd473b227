"""TermLaw: a law of points that sees the whole batch, and may train a module of its own beside the model."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from tiltmeter.interventions.point_law import PointLaw


@dataclass(frozen=True, eq=False)
class Shown:
    """What a law of terms may see of a batch, as torch tensors; what it does not ask for is None.

    `group` holds codes, `x` the points as the model got them, `features` what went into its last linear layer, `own`
    the module that the law has beside the model. `labels` are the labels of the training data, smallest first.
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
class TermLaw(PointLaw):
    """Another loss for every point, and a term that is added to the mean over the batch.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Small(TermLaw):
    ...     def term(self, shown):
    ...         return shown.losses, 0.1 * shown.scores.square().mean()
    >>> Small().sees
    frozenset()

    A law of groups weighs the losses and not the term. A module of its own is trained in the same steps, by the same
    optimiser: its loss is a part of the term, and what belongs to the model must not depend on it (`detach`).
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

        Parameters that it should not learn have no `requires_grad`. All randomness comes from the law's fields.
        """
        return None

    @abstractmethod
    def term(self, shown: Shown) -> tuple[Any, Any]:
        """Losses (B,) in place of `shown.losses`, and a number that is added to the loss of the batch."""

    def each(self, losses: Any, scores: Any, y: Any) -> Any:  # noqa: ARG002
        raise TypeError(f"{type(self).__name__} sees more of a batch than losses and scores: `Steering` applies it.")
