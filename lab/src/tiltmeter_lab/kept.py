"""Kept: the runs of one experiment in a directory, written by the protocol of a study's cells.

An interrupted experiment can continue, and two processes never make a run twice.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import tiltmeter as tm
from tiltmeter.record.directory.atomic_files import read_sealed_json, write_sealed_json
from tiltmeter_lab.study.compute import held, keep_result
from tiltmeter_lab.study.folder import CELL, WORK, Places

#: The files with the setting, and with the date and duration of runs that are put together from cells.
SETTING, MADE = "setting.json", "made.json"
#: Seconds between two evaluations whether another process has finished a run.
WAIT = 0.5


class RunPlaces(Places):
    """The folder of an experiment: the cells of a study, but under the names of its runs."""

    def result(self, key: str) -> Path:
        return self.root / key


def silent(text: str) -> None:
    """Report nothing."""


class Kept:
    """The `keep` of an experiment: loads a run that is complete in the directory, else makes and saves it.

    >>> import tempfile
    >>> from tiltmeter import predict
    >>> from tiltmeter.theory import cases
    >>> from tiltmeter_lab.claim import Claim
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     keep = Kept(Path(folder), Claim("any frozen dataclass", 1.0, "", 0.0))
    ...     run = keep("theory", lambda: predict(*cases.no_bias(), curves=("loss",)))
    ...     keep.names, keep.fresh, sorted(path.name for path in Path(folder).iterdir())
    (('theory',), 1, ['setting.json', 'theory', 'work'])

    A directory belongs to one setting of one version; any other is refused, so that runs are never mixed. A run is
    always returned as read back from disk, so that the second time gives the same numbers as the first.
    """

    def __init__(self, place: Path, setting: Any, tell: Callable[[str], None] = silent, partial: bool = False) -> None:
        self.place, self._tell = place, tell
        self._places = RunPlaces(place)
        #: Whether to judge what is complete, without computing more.
        self.partial = partial
        #: Of the runs made of cells: how many seeds are complete, and how many were planned.
        self.counts: dict[str, tuple[int, int]] = {}
        self.fresh = 0
        self._files: dict[str, str] = {}
        # Through JSON and back, so that tuples and lists, or different number types, compare as equal.
        asked = json.loads(json.dumps({"setting": asdict(setting), "version": tm.__version__}, default=repr))
        (place / WORK).mkdir(parents=True, exist_ok=True)
        if not (place / SETTING).exists():
            write_sealed_json(place / SETTING, asked)
        held = read_sealed_json(place / SETTING, "the setting of an experiment")
        if any(held.get(key) != value for key, value in asked.items()):
            raise ValueError(
                f"{place} holds runs of another setting ({_difference(held, asked)}): choose another --to, or remove "
                "that folder."
            )
        self._made: dict[str, dict[str, Any]] = {}
        if (place / MADE).exists():
            self._made = read_sealed_json(place / MADE, "when runs were made")

    @property
    def tells(self) -> bool:
        """Whether somebody listens."""
        return self._tell is not silent

    @property
    def names(self) -> tuple[str, ...]:
        """The directories of the runs asked for so far."""
        return tuple(self._files)

    @property
    def seconds(self) -> float:
        """The time that it took to make these runs, in this call or an earlier one."""
        return sum(float(self._said(file).get("seconds", 0.0)) for file in self._files)

    @property
    def date(self) -> str:
        """The day of the last of them."""
        days = [str(said["date"]) for said in map(self._said, self._files) if "date" in said]
        return max(days, default=today())

    def _said(self, file: str) -> dict[str, Any]:
        """How long a run took and when it was made."""
        if file not in self._made:
            cell = self._places.result(file) / CELL
            self._made[file] = read_sealed_json(cell, "a cell") if cell.exists() else {}
        return self._made[file]

    def __call__(self, name: str, make: Callable[[], tm.Trajectory]) -> tm.Trajectory:
        file = self._listed(name)
        where = self._places.result(file)
        if not where.exists() and self.partial:
            raise ValueError(f"The run {name!r} is not there, and it is not made of parts that could be: run it whole.")
        waiting = False
        while not where.exists():
            try:
                self._make(name, file, make)
            except BlockingIOError as error:
                if not waiting:
                    self._tell(f"{name}: {error}")
                waiting = True
                time.sleep(WAIT)
        loaded = tm.load(where)
        assert isinstance(loaded, tm.Trajectory)
        return loaded

    def _make(self, name: str, file: str, make: Callable[[], tm.Trajectory]) -> None:
        """Make the run, unless another process is at it (`BlockingIOError`) or has just made it."""
        with held(self._places, file) as mine:
            if not mine:
                return
            began = time.perf_counter()
            try:
                made = make()
            except BlockingIOError as error:  # not our lock: nothing to wait for
                raise RuntimeError(f"The run {name!r} of an experiment failed: {error}") from error
            if not isinstance(made, tm.Trajectory):
                raise TypeError(
                    f"The run {name!r} of an experiment should be a Trajectory. Found {type(made).__name__}."
                )
            took = time.perf_counter() - began
            keep_result(self._places, file, made, {"run": name}, took, date=today())
            self.fresh += 1
            self._tell(f"{name}: {took:.1f} s")

    def collected(
        self, name: str, run: tm.Trajectory, seconds: float, planned: int, done: int | None = None
    ) -> tm.Trajectory:
        """Take note of a run that was put together from complete cells of a study, maybe not all that were planned."""
        file = self._listed(name)
        self.counts[name] = (len(run.origin.seeds) if done is None else done, planned)
        self._made.setdefault(file, {"date": today()})["seconds"] = round(seconds, 3)
        write_sealed_json(self.place / MADE, self._made)
        return run

    def _listed(self, name: str) -> str:
        """The directory of a run, which no other run of this experiment may have."""
        file = file_name(name)
        if file in self._files:
            raise ValueError(f"Two runs of this experiment are kept as {file!r}: {self._files[file]!r} and {name!r}.")
        self._files[file] = name
        return file


def beside(keep: Any, name: str, setting: Any) -> Any:
    """Return the `keep` of another experiment at the same scale, whose runs are shared, not made twice.

    A `keep` without a directory shares nothing and is returned itself.
    """
    if not isinstance(keep, Kept):
        return keep
    return Kept(keep.place.parent.parent / name / keep.place.name, setting, keep._tell)


def file_name(name: str) -> str:
    """Return a name that is valid on every file system.

    >>> file_name("width 32, lr 0.1")
    'width-32-lr-0.1'
    """
    safe = re.sub(r"[^A-Za-z0-9.+_-]+", "-", name).strip("-.")
    if not safe or safe in (SETTING, MADE, WORK):
        raise ValueError(f"The name of a run should hold letters or digits. Found {name!r}.")
    return safe


def today() -> str:
    """The date, in UTC."""
    return datetime.now(UTC).date().isoformat()


def _difference(held: dict[str, Any], asked: dict[str, Any]) -> str:
    """Describe the first difference between two settings."""
    if held.get("version") != asked["version"]:
        return f"version {held.get('version')}, now {asked['version']}"
    one, two = held.get("setting", {}), asked["setting"]
    name = next(key for key in (*two, *one) if one.get(key) != two.get(key))
    return f"{name} = {one.get(name)}, now {two.get(name)}"
