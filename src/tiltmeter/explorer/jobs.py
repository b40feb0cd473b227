"""Jobs: long work that the page starts, one after another in a process of its own, with progress and cancel."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from tiltmeter.explorer.worker import Cancelled, Worker
from tiltmeter.visible_text import visible

#: Jobs that may wait or run at once, and finished ones that are remembered.
MOST, REMEMBERED = 8, 50
#: What the page may start, and whether it writes to the folder.
KINDS = {"train": True, "run quick": True, "best weights": False, "compare interventions": False}


@dataclass
class Job:
    """One piece of work; `state` is "running", "done", "failed" or "cancelled"."""

    number: int
    kind: str
    settings: dict[str, Any]
    state: str = "running"
    progress: list[Any] = field(default_factory=list)
    answer: Any = None
    error: str | None = None
    task: asyncio.Task[None] | None = None

    def to_json(self) -> dict[str, Any]:
        told = {name: getattr(self, name) for name in ("number", "kind", "settings", "state", "answer", "error")}
        return {**told, "progress": self.progress[-20:]}


class Jobs:
    """The jobs of one server."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._numbers = count(1)
        self._jobs: dict[int, Job] = {}

    def start(self, kind: str, settings: dict[str, Any], own: dict[str, Any]) -> Job:
        """Start a job with what the page and what the server `own` say; refuse an unknown kind, or one too many."""
        if kind not in KINDS:
            raise ValueError(f"There is no work called {kind[:40]!r}. There are: {', '.join(KINDS)}.")
        if sum(job.state == "running" for job in self._jobs.values()) >= MOST:
            raise ValueError(f"At most {MOST} jobs may wait. Cancel one first.")
        job = Job(next(self._numbers), kind, settings)
        self._jobs[job.number] = job
        job.task = asyncio.create_task(self._do(job, own))
        while len(self._jobs) > REMEMBERED:
            del self._jobs[next(iter(self._jobs))]
        return job

    def cancel(self, number: int) -> Job:
        """Cancel a job, also in the middle of its work."""
        job = self.named(number)
        if job.state == "running" and job.task is not None:
            job.state = "cancelled"
            job.task.cancel()
        return job

    def named(self, number: int) -> Job:
        if number not in self._jobs:
            raise ValueError(f"There is no job {number}.")
        return self._jobs[number]

    def all(self) -> list[Job]:
        return list(self._jobs.values())

    async def _do(self, job: Job, own: dict[str, Any]) -> None:
        try:
            job.answer = await self._worker.ask(job.kind, job.progress.append, **job.settings, **own)
            job.state = "done"
        except Cancelled:
            job.state = "cancelled"
        except ValueError as error:
            job.state, job.error = "failed", visible(str(error))
