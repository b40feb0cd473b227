"""Engine: what carries tasks to processes. One file per kind: slots, any executor of the standard library, Dask."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import uuid
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol

from tiltmeter.child_process import module_command, module_environment
from tiltmeter.record.directory.lock import Lock
from tiltmeter.shown_text import quoted
from tiltmeter_lab.study.compute import Answer, Task, compute
from tiltmeter_lab.study.folder import Failure, Places


class OnSlots:
    """As many processes as asked for, each watched by a thread of its own."""

    def __init__(self, jobs: int | None) -> None:
        if jobs is not None and (isinstance(jobs, bool) or not isinstance(jobs, int) or jobs < 1):
            raise ValueError(f"`jobs` should be a number of processes, at least 1. Found jobs = {quoted(jobs)}.")
        self.width = self.workers = jobs or cores()
        self._own = threading.local()
        self._slots: list[Slot] = []
        self._pool = ThreadPoolExecutor(self.width, thread_name_prefix="slot")

    def submit(self, task: Task) -> Future[Answer]:
        return self._pool.submit(self._compute, task)

    def check(self) -> None:
        """A slot that dies is replaced."""

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
        for slot in list(self._slots):
            slot.close()
        self._pool.shutdown(wait=True)

    def _compute(self, task: Task) -> Answer:
        if not hasattr(self._own, "slot"):
            self._own.slot = Slot()
            self._slots.append(self._own.slot)
        slot: Slot = self._own.slot
        return slot.compute(task)


def cores() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class OnExecutor:
    """The executor stays open: it belongs to the caller."""

    width = 1000
    workers = None

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._futures: list[Future[Answer]] = []

    def submit(self, task: Task) -> Future[Answer]:
        future = self._executor.submit(compute, task)
        self._futures = [one for one in self._futures if not one.done()] + [future]
        return future

    def check(self) -> None:
        """A broken executor answers with its own error."""

    def close(self) -> None:
        for future in self._futures:
            future.cancel()


_OWN = threading.local()


def compute_in_slot(task: dict[str, Any]) -> dict[str, object]:
    """What a worker does: plain JSON in and out, so that nothing but the name of this function is pickled."""
    if not hasattr(_OWN, "slot"):
        _OWN.slot = Slot()
    slot: Slot = _OWN.slot
    return to_json(slot.compute(Task.from_json(task)))


class OnDask:
    """The client stays open: it belongs to the caller."""

    width = 1000

    def __init__(self, client: Any) -> None:
        self._client = client
        self._waiting: dict[Future[Answer], Any] = {}
        self._asked: dict[str, int] = {}

    @property
    def workers(self) -> int | None:
        """Threads of all workers now; there may be more or fewer in a minute."""
        return sum(self._client.nthreads().values()) or None

    def submit(self, task: Task) -> Future[Answer]:
        # Two drivers that ask for the same cell share the task. Asked for again, it needs a name that Dask has not
        # answered yet.
        again = self._asked.get(task.key, 0)
        self._asked[task.key] = again + 1
        key = f"tiltmeter-{task.key}" + (f"-{uuid.uuid4().hex}" if again else "")
        answer: Future[Answer] = Future()
        future = self._client.submit(compute_in_slot, task.to_json(), key=key, pure=True)
        self._waiting[answer] = future
        answer.add_done_callback(lambda one: self._waiting.pop(one, None))
        future.add_done_callback(lambda done: _pass_on(done, answer))
        return answer

    def check(self) -> None:
        if self._client.status != "running":
            raise ConnectionError(
                "The Dask scheduler does not answer any more. Complete cells are kept: repeat the command when a "
                "scheduler runs again."
            )

    def close(self) -> None:
        held = [future for answer, future in list(self._waiting.items()) if not answer.done()]
        if held and self._client.status == "running":
            self._client.cancel(held)
        self._waiting.clear()


def _pass_on(done: Any, answer: Future[Answer]) -> None:
    """The answer of a worker; "lost" where none comes: its worker died again and again, or its scheduler is gone."""
    try:
        found = Answer(**done.result(timeout=30))
    except BaseException as error:
        found = Answer("lost", error=f"{type(error).__name__}: {error}")
    if not answer.done():
        answer.set_result(found)


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
        module_command("tiltmeter_lab.study.slot_process"),
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
