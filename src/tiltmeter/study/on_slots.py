"""on_slots: the cells in watched processes of this machine."""

from __future__ import annotations

import os
import threading
from concurrent.futures import Future, ThreadPoolExecutor

from tiltmeter.record.quoted import quoted
from tiltmeter.study.compute import Answer, Task
from tiltmeter.study.slot import Slot


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
