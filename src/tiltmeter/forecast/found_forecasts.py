"""FoundForecasts: forecasts of several recipes by name, and what could not be forecast, with the reason."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

from tiltmeter.record import Trajectory

Name = TypeVar("Name", bound=Hashable)


@dataclass(frozen=True)
class FoundForecasts(Generic[Name]):
    """`runs` are the forecasts, `refused` the errors of recipes that the route cannot forecast."""

    runs: Mapping[Name, Trajectory]
    refused: Mapping[Name, Exception]

    def all_of_them(self) -> Mapping[Name, Trajectory]:
        """The forecasts of all recipes; the error of the first that has none is raised."""
        for error in self.refused.values():
            raise error
        return self.runs


class ForecastCollector(Generic[Name]):
    """Collects forecasts and refusals in any order; short-lived."""

    def __init__(self) -> None:
        self.runs: dict[Name, Trajectory] = {}
        self._refused: dict[Name, Exception] = {}

    @property
    def done(self) -> int:
        """How many recipes are dealt with."""
        return len(self.runs) + len(self._refused)

    @contextmanager
    def refusing(self, *names: Name) -> Iterator[None]:
        """An error in this block is the reason why these recipes, as far as they have none, have no forecast."""
        try:
            yield
        except (ValueError, TypeError) as error:
            self._refused |= {name: error for name in names if name not in self.runs and name not in self._refused}

    def found(self, names: Mapping[Name, object]) -> FoundForecasts[Name]:
        """All that was collected, in the order of these names."""
        runs, refused = ({name: kept[name] for name in names if name in kept} for kept in (self.runs, self._refused))
        return FoundForecasts(runs, refused)  # type: ignore[arg-type]
