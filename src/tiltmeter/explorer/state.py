"""State: the settings of a server, its processes and its jobs."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from typing import Any

from tiltmeter.child_process import module_command, module_environment
from tiltmeter.explorer.settings import Settings
from tiltmeter.shown_text import visible

#: The longest line, in bytes.
LINE = 2**28


class Cancelled(RuntimeError):
    """The job was cancelled, or the process died."""


#: Seconds after which the process of a question is ended, and seconds that a question waits for its turn.
DEADLINE, WAIT = 60.0, 60.0


class Worker:
    """One process and the queue in front of it; jobs are done in the order in which they were asked.

    `answer` is for questions of the page: each has a deadline, after which its process is ended, and clients that ask
    the same at the same time share one answer. `ask` is for work that may take as long as it takes.
    """

    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None
        self._turn = asyncio.Lock()
        self._asked: dict[str, asyncio.Task[Any]] = {}

    async def answer(self, job: str, **settings: Any) -> Any:
        """The answer of a job, within the deadline; a ValueError says that it took too long."""
        key = json.dumps([job, settings], sort_keys=True)
        task = self._asked.get(key)
        if task is None:
            task = self._asked[key] = asyncio.create_task(self._answer(job, settings))
            task.add_done_callback(lambda done: self._forget(key, done))
        return await asyncio.shield(task)

    def _forget(self, key: str, done: asyncio.Task[Any]) -> None:
        self._asked.pop(key, None)
        if not done.cancelled():
            done.exception()  # heard by those who asked, unless all have gone

    async def _answer(self, job: str, settings: dict[str, Any]) -> Any:
        try:
            async with asyncio.timeout(WAIT):
                await self._turn.acquire()
        except TimeoutError:
            raise ValueError(f"Other questions took all of {WAIT:.0f} seconds. Ask again.") from None
        try:
            async with asyncio.timeout(DEADLINE):
                return await self._do(job, None, settings)
        except TimeoutError:
            raise ValueError(
                f"This took more than {DEADLINE:.0f} seconds and was given up. `tiltmeter show` has no such limit."
            ) from None
        finally:
            self._turn.release()

    async def ask(self, job: str, hear: Callable[[Any], None] | None = None, **settings: Any) -> Any:
        """The answer of a job of `worker_process.JOBS`; ValueError with its sentence where it refuses."""
        async with self._turn:
            return await self._do(job, hear, settings)

    async def _do(self, job: str, hear: Callable[[Any], None] | None, settings: dict[str, Any]) -> Any:
        process = await self._running()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps({"job": job, "settings": settings}).encode() + b"\n")
            await process.stdin.drain()
            while line := await process.stdout.readline():
                told = json.loads(line)
                if "answer" in told:
                    return told["answer"]
                if "error" in told:
                    raise ValueError(told["error"])
                if hear is not None:
                    hear(told["progress"])
        except asyncio.CancelledError:
            self.stop()  # an answer that nobody waits for must not be taken for that of the next question
            raise
        except (BrokenPipeError, ConnectionResetError):
            pass
        self.stop()
        raise Cancelled("The work was cancelled, or its process ended.")

    async def _running(self) -> asyncio.subprocess.Process:
        if self._process is None or self._process.returncode is not None:
            self._process = await asyncio.create_subprocess_exec(
                *module_command("tiltmeter.explorer.worker_process"),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                limit=LINE,
                start_new_session=True,  # Ctrl-C is for the server, which then ends its workers
                env=module_environment(),
            )
        return self._process

    def stop(self) -> None:
        """End the process, whatever it does."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.kill()
            self._process = None


#: Seconds for which a scan of the folder answers everybody.
FRESH = 0.3
#: Jobs that may wait or run at once, and finished ones that are remembered.
MOST, REMEMBERED = 8, 50
#: What the page may start, and whether it writes to the folder.
KINDS = {"train": True, "run quick": True, "best weights": False, "compare interventions": False, "find groups": False}


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


class State:
    """What the routes share. `reader` follows files, `analyst` judges, `forecaster` forecasts, `runner` does jobs.

    Runs that take seconds to read have a process of their own (`heavy`), and so has the theory: neither waits for the
    other.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.reader, self.analyst, self.forecaster, self.runner = Worker(), Worker(), Worker(), Worker()
        self.heavy, self.theorist = Worker(), Worker()
        self.table_reader, self._drawer = Worker(), Worker()
        self.jobs = Jobs(self.runner)
        self._library: asyncio.Task[str] | None = None
        self._scan: asyncio.Task[dict[str, Any]] | None = None
        self._scanned = 0.0
        #: Bytes of uploads that have not ended.
        self.uploading = 0

    async def rows(self, known: str) -> dict[str, Any]:
        """The table of runs, without its rows where the page has this version; one scan serves all who ask."""
        scan = self._scan
        if scan is None or (scan.done() and time.monotonic() > self._scanned + FRESH) or scan.cancelled():
            scan = self._scan = asyncio.create_task(self._scan_rows())
        table = await asyncio.shield(scan)
        return {key: value for key, value in table.items() if key != "rows" or table["version"] != known}

    async def _scan_rows(self) -> dict[str, Any]:
        try:
            table: dict[str, Any] = await self.reader.answer("rows", root=str(self.settings.folder))
            return table
        finally:
            self._scanned = time.monotonic()

    async def drawing_library(self) -> str:
        """The JavaScript that draws charts; made once, by a process that ends with it."""
        return await asyncio.shield(self.prepare())

    def prepare(self) -> asyncio.Task[str]:
        """Begin to make the drawing library, unless it is being made."""
        made = self._library
        if made is None or made.cancelled() or (made.done() and made.exception() is not None):
            made = self._library = asyncio.create_task(self._make_library())
        return made

    async def _make_library(self) -> str:
        try:
            return str(await self._drawer.answer("drawing library"))
        finally:
            self._drawer.stop()

    @cached_property
    def workers(self) -> tuple[Worker, ...]:
        quick = self.reader, self.analyst, self.theorist, self.table_reader, self._drawer
        return *quick, self.forecaster, self.heavy, self.runner

    def stop(self) -> None:
        for worker in self.workers:
            worker.stop()
