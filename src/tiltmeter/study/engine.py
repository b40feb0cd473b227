"""Engine: what carries tasks to processes. One file per kind: slots, any executor of the standard library, Dask."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Protocol

from tiltmeter.study.compute import Answer, Task


class Engine(Protocol):
    """Where the cells of a study are computed."""

    @property
    def width(self) -> int:
        """How many tasks to hand over at a time."""
        ...

    @property
    def workers(self) -> int | None:
        """How many are computed at the same time, for estimates; None if only the engine knows."""
        ...

    def submit(self, task: Task) -> Future[Answer]:
        """Compute a cell some time."""
        ...

    def check(self) -> None:
        """Raise if nothing will ever be answered any more."""
        ...

    def close(self) -> None:
        """End what is running."""
        ...
