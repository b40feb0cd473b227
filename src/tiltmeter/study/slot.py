"""Slot: one watched process that computes cells, replaced when it dies, ended when a cell takes too long."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from dataclasses import asdict
from pathlib import Path

from tiltmeter.child_process import module_command, module_environment
from tiltmeter.record.directory.lock import Lock
from tiltmeter.study.compute import Answer, Task
from tiltmeter.study.folder import Failure, Places

#: Linear algebra and torch read these when they are imported.
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "NUMBA_NUM_THREADS")

#: How often in a row a process may end before it is ready: it may be killed from outside, as any other.
STARTS = 5


class Slot:
    """Used by one thread; `close` may come from another and ends whatever is running."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._closed = False
        self._turn = threading.Lock()

    def compute(self, task: Task) -> Answer:
        """One cell, begun again in a new process whenever the old one dies; `compute` counts how often."""
        while True:
            process = self._ready()
            if process is None:
                return Answer("stopped")
            late = threading.Event()
            timer = threading.Timer(task.limit, _end, (process, late)) if task.limit is not None else None
            if timer is not None:
                timer.start()
            answer = _exchange(process, task)
            if timer is not None:
                timer.cancel()
            if answer is not None:
                return answer
            _kill(process)
            if self._closed:
                return Answer("stopped")
            if late.is_set():
                return _too_long(task)

    def close(self) -> None:
        """End the process; the cell in it can be computed another time."""
        with self._turn:
            self._closed = True
            process, self._process = self._process, None
        if process is not None:
            # It ends by itself when its input ends, and gives the cell back before.
            with contextlib.suppress(OSError):
                assert process.stdin is not None
                process.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(5.0)
            _kill(process)

    def _ready(self) -> subprocess.Popen[str] | None:
        with self._turn:
            if self._closed:
                return None
            for _ in range(STARTS):
                if self._process is not None and self._process.poll() is None:
                    return self._process
                self._process = _start()
        raise RuntimeError(
            f"A process for the cells could not be started: `{sys.executable}` ended at once, {STARTS} times in a row."
        )


def _start() -> subprocess.Popen[str] | None:
    """A process that waits for cells; None if it ended before it was ready."""
    process = subprocess.Popen(
        module_command("tiltmeter.study.slot_process"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        env={**module_environment(), **dict.fromkeys(ONE_THREAD, "1")},
        start_new_session=True,  # Ctrl-C reaches the driver alone, which then ends its slots
    )
    assert process.stdout is not None
    if process.stdout.readline():
        return process
    _kill(process)
    return None


def _exchange(process: subprocess.Popen[str], task: Task) -> Answer | None:
    """Ask and wait for the answer; None if the process ended instead."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(json.dumps(task.to_json()) + "\n")
        process.stdin.flush()
        line = process.stdout.readline()
        return Answer(**json.loads(line)) if line.endswith("\n") else None
    except (OSError, ValueError):  # a broken pipe, or one that `close` has closed
        return None


def _too_long(task: Task) -> Answer:
    places = Places(Path(task.place))
    sentence = f"It took longer than the limit of {task.limit:g} s."
    Failure(dict(task.settings), sentence, "", float(task.limit or 0.0)).write(places.failure(task.key))
    places.tries(task.key).unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        Lock(places.lock(task.key)).release()  # of the process that was ended
    return Answer("failed", float(task.limit or 0.0), sentence)


def _end(process: subprocess.Popen[str], late: threading.Event) -> None:
    late.set()
    _kill(process)


def _kill(process: subprocess.Popen[str]) -> None:
    """With everything that the cell started."""
    with contextlib.suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    process.wait()


def to_json(answer: Answer) -> dict[str, object]:
    """An answer for another machine."""
    return asdict(answer)
