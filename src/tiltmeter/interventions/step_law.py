"""StepLaw: changes the step of the optimiser."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from tiltmeter.interventions.intervention import Intervention, Needs


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

    needs: ClassVar[Needs] = "no groups"
    changes = "the steps of the optimiser"
    #: Whether it asks for the gradient of one group after the other: `step(closure, groups)` with `closure(group)`.
    by_group: ClassVar[bool] = False

    @abstractmethod
    def optimizer(self, made: Any) -> Any:
        """A torch optimizer in place of `made`; it is stepped with a closure, and with the codes of the groups in the
        batch if it is `by_group`.
        """
