"""StepLaw: changes the step of the optimiser."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from tiltmeter.interventions.intervention import Intervention


@dataclass(frozen=True)
class StepLaw(Intervention, ABC):
    """Wraps the optimiser, for instance in one that takes the gradient at another point.

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
