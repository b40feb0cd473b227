"""Engine: what carries tasks to processes. One file per kind: slots, any executor of the standard library, Dask."""

from __future__ import annotations

import os
import threading
import uuid
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any, Protocol

from tiltmeter.shown_text import quoted
from tiltmeter.study.compute import Answer, Task, compute
from tiltmeter.study.slot import Slot, to_json


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
