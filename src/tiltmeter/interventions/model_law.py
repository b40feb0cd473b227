"""ModelLaw: what is delivered in place of the trained model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from tiltmeter.interventions.intervention import Intervention


@dataclass(frozen=True)
class ModelLaw(Intervention, ABC):
    """Another model, made of the trained one and data with groups; training itself is left alone.

    A curve at step s is that of the model that would be delivered if training stopped there.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class AsItIs(ModelLaw):
    ...     def deliver(self, model, data):
    ...         return model
    >>> AsItIs().needs
    'held-out groups'
    """

    needs = "held-out groups"
    changes = "the model that is delivered"
    #: Whether the scores of what it delivers are logits, whatever the loss of the training.
    logits: ClassVar[bool] = False

    @abstractmethod
    def deliver(self, model: Any, data: Any) -> Any:
        """The module to deliver in place of `model`, which is not changed: the same architecture with other values.

        All chance comes from a seed among its own fields. It is called in evaluation mode and without gradients.
        """
