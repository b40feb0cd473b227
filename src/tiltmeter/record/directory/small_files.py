"""The small files of a run directory: `run.json`, which marks it as a run, and `end.json`, which says how it ended."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

from tiltmeter.record.directory.atomic_files import file_is_intact, read_file, write_sealed_json
from tiltmeter.record.directory.journal import ARRAYS, CURVES
from tiltmeter.record.labelled import JSON
from tiltmeter.record.layout import plain
from tiltmeter.record.origin import Origin
from tiltmeter.record.trajectory import CLOCKS, Clock
from tiltmeter.shown_text import quoted, shortened

#: Format 2 added checksums, points beside the curves and rewinding.
FORMAT = 3
RUN = "run.json"
END = "end.json"
LOCK = "lock"
#: What a training goes on from; written and read by `tiltmeter.training`.
CHECKPOINT = "checkpoint.pt"
#: Folders of other kinds, by the file that they have, and what reads them.
OTHERS = {
    "tangent.json": "It holds kernels: `tm.results.load_tangent` reads them.",
    "study.json": "It holds a study: `tiltmeter study status` reads it.",
}

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
    """How a run ended. `bytes` is the length of `curves.jsonl`, so that a later truncation is detected."""

    state: Ending
    bytes: int
    reason: str | None = None
    diverged: JSON = None


def write_header(directory: Path, header: TrajectoryHeader | DatasetHeader) -> None:
    write_sealed_json(directory / RUN, {"format": FORMAT, **header.to_json()})


def read_header(directory: Path) -> TrajectoryHeader | DatasetHeader:
    """Return what `run.json` says; raise an error for anything that is not a run, or has a newer format."""
    if not directory.exists():
        raise FileNotFoundError(f"`path` should be a run directory. Found nothing at {directory}.")
    if not directory.is_dir():
        raise NotADirectoryError(f"`path` should be a run directory. Found a file at {directory}.")
    if not (directory / RUN).exists():
        curves = directory / CURVES
        # A writer that died before its run began leaves an empty file.
        if (curves.exists() and curves.stat().st_size) or (directory / ARRAYS).exists() or (directory / END).exists():
            raise ValueError(f"{directory} was a run once, but its {RUN} is missing.")
        other = next((f" {how}" for file, how in OTHERS.items() if (directory / file).exists()), "")
        raise ValueError(f"{directory} is not a run directory: it has no {RUN}.{other}")
    said = _read_object(directory / RUN, "Nothing else says what the run holds.")
    number = said.get("format")
    if isinstance(number, int) and not isinstance(number, bool) and number != FORMAT and number > 0:
        raise ValueError(
            f"{directory} was written by {'a newer' if number > FORMAT else 'an earlier'} tiltmeter: format "
            f"{quoted(number)}, this one reads format {FORMAT}. "
            + ("Upgrade tiltmeter to read it." if number > FORMAT else "Record the run again.")
        )
    try:
        if number != FORMAT or isinstance(number, bool) or said["holds"] not in ("trajectory", "dataset"):
            raise ValueError(f"Found format {quoted(number)} holding {quoted(said.get('holds'))}")
        if "crc" not in said:
            raise ValueError("Its checksum is missing")
        if said["holds"] == "dataset":
            return DatasetHeader(plain(said["attrs"]))
        if said["clock"] not in CLOCKS:
            raise ValueError(f"Found clock {quoted(said['clock'])}")
        if not isinstance(said["origin"], dict):
            raise ValueError(f"Found origin {quoted(said['origin'])}")
        return TrajectoryHeader(said["clock"], Origin.from_json(said["origin"]))
    except KeyError as error:
        raise ValueError(f"{directory / RUN} is not a run.json of format {FORMAT}. {error} is missing.") from None
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        fact = shortened(str(error)).rstrip(".")
        raise ValueError(f"{directory / RUN} is not a run.json of format {FORMAT}. {fact}.") from None


def write_end(directory: Path, end: End) -> None:
    said = {"state": end.state, "reason": end.reason, "diverged": end.diverged, "bytes": end.bytes}
    write_sealed_json(directory / END, said)


def read_end(directory: Path) -> End | None:
    """Return what `end.json` says; None for a run that is going on or died."""
    path = directory / END
    if not path.exists():
        return None
    cure = "Delete it to treat the run as one that died."
    said = _read_object(path, cure)
    state, length = said.get("state"), said.get("bytes")
    if state not in ENDINGS or not isinstance(length, int) or not isinstance(said.get("reason"), str | None):
        raise ValueError(f"{path} is damaged: it says neither how the run ended nor where. {cure}")
    if "crc" not in said:
        raise ValueError(f"{path} is damaged: its checksum is missing. {cure}")
    return End(cast(Ending, state), length, said.get("reason"), said.get("diverged"))


def _read_object(path: Path, cure: str) -> dict[str, Any]:
    text = read_file(path)
    try:
        said = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is damaged: {error}. {cure}") from None
    if not isinstance(said, dict):
        raise ValueError(f"{path} is damaged: it should hold an object. {cure}")
    if "crc" in said and not file_is_intact(text):
        raise ValueError(f"{path} is damaged: its checksum does not match, it was changed after it was written. {cure}")
    return said
