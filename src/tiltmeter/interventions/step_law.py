"""StepLaw: what a step of the optimiser becomes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from tiltmeter.interventions.intervention import Intervention


@dataclass(frozen=True)
class StepLaw(Intervention, ABC):
    """An optimiser around the one that was given, such as one that looks at the gradient somewhere else.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Same(StepLaw):
    ...     def optimizer(self, made):
    ...         return made
    >>> Same().needs
    'no groups'
    """

    needs = "no groups"
    changes = "the steps of the optimiser"

    @abstractmethod
    def optimizer(self, made: Any) -> Any:
        """A torch optimizer in place of `made`; it is stepped with a closure."""
