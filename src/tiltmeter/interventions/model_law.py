"""ModelLaw: what is delivered in place of the trained model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, ClassVar

from tiltmeter.interventions.intervention import Intervention


@dataclass(frozen=True)
class ModelLaw(Intervention, ABC):
    """Another model, made from the trained one and data with groups; training itself is not changed.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class AsItIs(ModelLaw):
    ...     def deliver(self, model, data):
    ...         return model
    >>> AsItIs().needs
    'held-out groups'

    A curve at step s describes the model that would be delivered if training stopped there.
    """

    needs = "held-out groups"
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
