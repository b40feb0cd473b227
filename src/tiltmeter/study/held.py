"""held: one process at a time computes a result, and writes it so that it is there whole or not at all."""

from __future__ import annotations

import contextlib
import os
import shutil
import threading
from collections.abc import Iterator, Mapping
from typing import Any

import xarray as xr

from tiltmeter.record import Trajectory, save
from tiltmeter.record.directory.atomic_files import write_json
from tiltmeter.record.directory.lock import BEAT, Lock
from tiltmeter.study.folder import CELL, Places

#: Seconds of silence after which a process on another host counts as dead. Locks are touched every minute.
PATIENCE = 600.0


@contextlib.contextmanager
def held(places: Places, key: str) -> Iterator[bool]:
    """Hold the lock of a cell and give True if it is to be computed, False if its result is there.

    `BlockingIOError` if another live process computes it. The lock of a dead one is taken over, and what it left half
    written is removed.
    """
    try:
        lock = Lock(places.lock(key), PATIENCE)
    except BlockingIOError:
        raise
    except OSError as error:
        raise OSError(f"{places.lock(key)} could not be written: {error.strerror or error}.") from error
    try:
        if places.result(key).exists():
            yield False
            return
        shutil.rmtree(places.aside(key), ignore_errors=True)
        with _beating(lock):
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
        write_json(aside / "result" / CELL, said)
        try:
            # Onto a directory that is not empty this fails, and one that exists was renamed whole.
            os.rename(aside / "result", target)
        except OSError:
            if not target.exists():
                raise
    finally:
        shutil.rmtree(aside, ignore_errors=True)


@contextlib.contextmanager
def _beating(lock: Lock) -> Iterator[None]:
    """Show other hosts that this process lives, for as long as the function takes."""
    over = threading.Event()

    def beat() -> None:
        while not over.wait(BEAT / 2):
            lock.beat()

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
