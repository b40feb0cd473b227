"""The small files of a run directory: `run.json`, which reveals it, and `end.json`, which says how it ended."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

from tiltmeter.record.directory.atomic_files import write_json
from tiltmeter.record.directory.journal import ARRAYS, CURVES
from tiltmeter.record.labelled import JSON
from tiltmeter.record.origin import Origin
from tiltmeter.record.trajectory import CLOCKS, Clock

FORMAT = 1
RUN = "run.json"
END = "end.json"
LOCK = "lock"

Ending: TypeAlias = Literal["finished", "failed", "interrupted"]
ENDINGS: tuple[Ending, ...] = ("finished", "failed", "interrupted")


@dataclass(frozen=True)
class TrajectoryHeader:
    """A run that holds curves."""

    clock: Clock
    origin: Origin

    def to_json(self) -> dict[str, JSON]:
        return {"holds": "trajectory", "clock": self.clock, "origin": self.origin.to_json()}


@dataclass(frozen=True)
class DatasetHeader:
    """A directory in the same form that holds a dataset instead."""

    attrs: dict[str, Any]

    def to_json(self) -> dict[str, JSON]:
        return {"holds": "dataset", "attrs": self.attrs}


@dataclass(frozen=True)
class End:
    """How a run ended. `bytes` is the length of `curves.jsonl`, so that a later cut shows."""

    state: Ending
    bytes: int
    reason: str | None = None
    diverged: JSON = None


def write_header(directory: Path, header: TrajectoryHeader | DatasetHeader) -> None:
    write_json(directory / RUN, {"format": FORMAT, **header.to_json()})


def read_header(directory: Path) -> TrajectoryHeader | DatasetHeader:
    """What `run.json` says; a sentence for everything that is no run, or one from the future."""
    if not directory.exists():
        raise FileNotFoundError(f"`path` should be a run directory. Found nothing at {directory}.")
    if not directory.is_dir():
        raise NotADirectoryError(f"`path` should be a run directory. Found a file at {directory}.")
    if not (directory / RUN).exists():
        curves = directory / CURVES
        # An empty file is what a writer leaves that died before its run began.
        if (curves.exists() and curves.stat().st_size) or (directory / ARRAYS).exists() or (directory / END).exists():
            raise ValueError(f"{directory} was a run once, but its {RUN} is missing.")
        raise ValueError(f"{directory} is not a run directory: it has no {RUN}.")
    said = _read_object(directory / RUN, "Nothing else says what the run holds.")
    number = said.get("format")
    if isinstance(number, int) and number > FORMAT:
        raise ValueError(
            f"{directory} was written by a newer tiltmeter: format {number}, this one reads up to {FORMAT}. "
            "Upgrade tiltmeter to read it."
        )
    try:
        if number != FORMAT or said["holds"] not in ("trajectory", "dataset"):
            raise ValueError(f"Found format {number!r} holding {said.get('holds')!r}")
        if said["holds"] == "dataset":
            return DatasetHeader(dict(said["attrs"]))
        if said["clock"] not in CLOCKS:
            raise ValueError(f"Found clock {said['clock']!r}")
        return TrajectoryHeader(said["clock"], Origin.from_json(said["origin"]))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        fact = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise ValueError(f"{directory / RUN} is not a run.json of format {FORMAT}. {fact}.") from None


def write_end(directory: Path, end: End) -> None:
    said = {"state": end.state, "reason": end.reason, "diverged": end.diverged, "bytes": end.bytes}
    write_json(directory / END, said)


def read_end(directory: Path) -> End | None:
    """What `end.json` says; None while the run goes on, or after it died."""
    path = directory / END
    if not path.exists():
        return None
    cure = "Delete it to treat the run as one that died."
    said = _read_object(path, cure)
    state, length = said.get("state"), said.get("bytes")
    if state not in ENDINGS or not isinstance(length, int):
        raise ValueError(f"{path} is damaged: it says neither how the run ended nor where. {cure}")
    return End(cast(Ending, state), length, said.get("reason"), said.get("diverged"))


def _read_object(path: Path, cure: str) -> dict[str, Any]:
    try:
        said = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is damaged: {error}. {cure}") from None
    if not isinstance(said, dict):
        raise ValueError(f"{path} is damaged: it should hold an object. {cure}")
    return said
