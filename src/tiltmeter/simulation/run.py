"""Run: the state of all seeds, which `simulate` advances from look to look, whatever the method."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from tiltmeter.record.labelled import JSON
from tiltmeter.simulation.setting import Setting


class Looked(Protocol):
    """What the seeds show at one time."""

    def blanked(self, where: np.ndarray) -> Any:
        """NaN for the seeds `where`: they have diverged."""


class Run(Protocol):
    """The state of all seeds, changed in place. `stopped` holds the step at which a seed diverged, else -1."""

    stopped: np.ndarray

    @property
    def cost(self) -> float:
        """About how many nanoseconds one step of one seed takes."""

    def advance(self, first: int, stop: int, rates: np.ndarray, weights: np.ndarray, threads: int | None) -> None:
        """Make the updates first..stop of every seed that has not diverged."""

    def look(self) -> Looked:
        """What the seeds show now."""


class Method(Protocol):
    """How to simulate: Chain() or Direct(), on how many threads, and whether progress is shown on stderr."""

    @property
    def threads(self) -> int | None:
        """The number of threads; None: all cores."""

    @property
    def progress(self) -> bool:
        """Whether work of more than a few seconds shows its progress on stderr."""

    def begin(self, setting: Setting, seeds: tuple[int, ...]) -> Run:
        """Check that the method can treat the setting, and place all seeds at their start."""

    def to_json(self) -> dict[str, JSON]:
        """Return what is noted in the origin of a trajectory."""


def generators(seeds: tuple[int, ...], route: int) -> Sequence[np.random.Generator]:
    """Return one independent random generator per seed, so that seed 7 is always the same run.

    The seeds are those that `SeedSequence(0).spawn` gives. `route` makes the generators of different methods
    independent, so that their results can be compared as independent samples. The result is a numba list, for compiled
    loops.
    """
    from numba.typed import List

    streams = (np.random.SeedSequence(0, spawn_key=(seed, route)) for seed in seeds)
    found: Sequence[np.random.Generator] = List(np.random.Generator(np.random.PCG64(stream)) for stream in streams)
    return found
