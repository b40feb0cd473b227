"""on_dask: the cells on the workers of a Dask cluster, each in a watched process of its worker.

The worker only watches: a cell that dies or hangs does not take the worker with it. When a worker dies, its processes
end with it and Dask gives the task to another worker, which takes over the lock of the dead process.
"""

from __future__ import annotations

import threading
import uuid
from concurrent.futures import Future
from typing import Any

from tiltmeter.study.compute import Answer, Task
from tiltmeter.study.slot import Slot, to_json

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
