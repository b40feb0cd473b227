"""compute: one cell of a study, by the same protocol whatever process or machine it runs on.

Look whether the result is there. Claim the cell by its lock; look again. Count the try. Call the function. Write the
result aside and rename it. A death at any instant leaves either the whole result or none, and a lock of a dead process,
which the next one takes over.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import xarray as xr

from tiltmeter.record import Trajectory, save
from tiltmeter.record.directory.atomic_files import sync_folder, write_atomically, write_sealed_json
from tiltmeter.record.directory.lock import Lock
from tiltmeter_lab.study.folder import CELL, Failure, Places
from tiltmeter_lab.study.function_reference import FunctionReference

#: "busy": another process computes it; "storage": the result could not be written; "stopped": the engine was closed;
#: "lost": no answer came, as from a dead worker.
State: TypeAlias = Literal["done", "failed", "busy", "storage", "stopped", "lost"]


@dataclass(frozen=True)
class Task:
    """What a worker is told: plain JSON."""

    place: str
    key: str
    settings: Mapping[str, Any]
    cell: FunctionReference
    fingerprint: str
    tries: int
    limit: float | None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Task:
        return cls(**{**value, "cell": FunctionReference(**value["cell"])})


@dataclass(frozen=True)
class Answer:
    """What a worker says: how it went, the seconds of the function, and a sentence where there is something to say."""

    state: State
    seconds: float = 0.0
    error: str = ""


def compute(task: Task) -> Answer:
    """Compute one cell, unless its result is there or another process is at it."""
    places = Places(Path(task.place))
    if places.result(task.key).exists():
        return Answer("done")
    try:
        with held(places, task.key) as mine:
            return _claimed(task, places) if mine else Answer("done")
    except BlockingIOError as error:
        return Answer("busy", error=str(error))
    except OSError as error:
        return Answer("storage", error=str(error))


def _claimed(task: Task, places: Places) -> Answer:
    begun = tries_so_far(places, task.key)
    if begun >= task.tries:
        times = "once" if begun == 1 else f"{begun} times"
        sentence = f"The process that computed it died {times}, for example killed or out of memory."
        Failure(dict(task.settings), sentence, "", 0.0).write(places.failure(task.key))
        places.tries(task.key).unlink(missing_ok=True)
        return Answer("failed", error=sentence)
    write_atomically(places.tries(task.key), str(begun + 1).encode())
    began = time.perf_counter()
    try:
        result = task.cell.find()(dict(task.settings))
        if not isinstance(result, (Trajectory, xr.Dataset)):
            kind = type(result).__name__
            raise TypeError(f"A cell function should return a Trajectory or an xarray.Dataset. Found {kind}.")
    except Exception as error:
        seconds = time.perf_counter() - began
        sentence = " ".join(f"{type(error).__name__}: {error}".split())
        Failure(dict(task.settings), sentence, traceback.format_exc(), seconds).write(places.failure(task.key))
        places.tries(task.key).unlink(missing_ok=True)
        return Answer("failed", seconds, sentence)
    seconds = time.perf_counter() - began
    _keep(task, places, result, seconds)
    return Answer("done", seconds)


def _keep(task: Task, places: Places, result: Trajectory | xr.Dataset, seconds: float) -> None:
    try:
        keep_result(places, task.key, result, dict(task.settings), seconds, task.fingerprint)
    except BaseException:
        # The function is not to blame: the try does not count.
        with contextlib.suppress(OSError):
            take_back(places, task.key)
        raise
    for path in (places.tries(task.key), places.failure(task.key)):
        path.unlink(missing_ok=True)


def tries_so_far(places: Places, key: str) -> int:
    """How many processes began this cell and died."""
    try:
        return int(places.tries(key).read_bytes())
    except (FileNotFoundError, ValueError):
        return 0


def take_back(places: Places, key: str) -> None:
    """A try that ended for no fault of the cell does not count."""
    begun = tries_so_far(places, key)
    if begun > 1:
        write_atomically(places.tries(key), str(begun - 1).encode())
    else:
        places.tries(key).unlink(missing_ok=True)


@contextlib.contextmanager
def held(places: Places, key: str) -> Iterator[bool]:
    """Hold the lock of a cell and give True if it is to be computed, False if its result is there.

    `BlockingIOError` if another live process computes it. The lock of a dead one is taken over, and what it left half
    written is removed.
    """
    try:
        lock = Lock(places.lock(key))
    except BlockingIOError:
        raise
    except OSError as error:
        raise OSError(f"{places.lock(key)} could not be written: {error.strerror or error}.") from error
    try:
        if places.result(key).exists():
            yield False
            return
        shutil.rmtree(places.aside(key), ignore_errors=True)
        yield True
    finally:
        with contextlib.suppress(OSError):
            lock.release()


def keep_result(
    places: Places,
    key: str,
    result: Trajectory | xr.Dataset,
    settings: Mapping[str, Any],
    seconds: float,
    fingerprint: str = "",
    **more: Any,
) -> None:
    """Write the result of a cell aside, with what it is and how long it took, and rename it when it is whole."""
    aside, target = places.aside(key), places.result(key)
    try:
        save(result, aside / "result")
        said = {"settings": dict(settings), "seconds": round(seconds, 4), "fingerprint": fingerprint, **more}
        write_sealed_json(aside / "result" / CELL, said)
        try:
            # Onto a directory that is not empty this fails, and one that exists was renamed whole.
            os.rename(aside / "result", target)
            sync_folder(target.parent)
        except OSError:
            if not target.exists():
                raise
    finally:
        shutil.rmtree(aside, ignore_errors=True)
