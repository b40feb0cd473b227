"""DataLaw: changes the training data, possibly after a first training run (the scout)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

from tiltmeter.interventions.intervention import Intervention
from tiltmeter.record.labelled import JSON


@dataclass(frozen=True)
class DataLaw(Intervention, ABC):
    """Other training data, made before training starts.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Halved(DataLaw):
    ...     def data(self, data, snapshot):
    ...         return data.take(range(0, len(data), 2))
    >>> Halved().scout
    0

    With `scout` > 0, a copy of the untrained model is first trained without interventions for that many steps, and
    `data` sees a snapshot of its outputs on the training points. The model itself then starts from its own initial
    weights. The steps of the scout count as cost.
    """

    changes = "the data"
    scout: int = field(default=0, kw_only=True)

    def __post_init__(self) -> None:
        if isinstance(self.scout, bool) or self.scout != int(self.scout) or self.scout < 0:
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
