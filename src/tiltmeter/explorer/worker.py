"""Worker: a Python process beside the server, for whatever takes longer than a look at a file.

The server writes one JSON line to its standard input and reads lines back: any number of `progress`, then one `answer`
or `error`. Nothing is pickled. The process ends when its input closes, so it never outlives a killed server; to
cancel a job it is killed, and the next job starts a new one.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

#: The longest line, in bytes.
LINE = 2**28


class Cancelled(RuntimeError):
    """The job was cancelled, or the process died."""


class Worker:
    """One process and the queue in front of it; jobs are done in the order in which they were asked."""

    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None
        self._turn = asyncio.Lock()

    async def ask(self, job: str, hear: Callable[[Any], None] | None = None, **settings: Any) -> Any:
        """The answer of a job of `worker_process.JOBS`; ValueError with its sentence where it refuses."""
        async with self._turn:
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
                sys.executable,
                *("-m", "tiltmeter.explorer.worker_process"),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                limit=LINE,
                start_new_session=True,  # Ctrl-C is for the server, which then ends its workers
                env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
            )
        return self._process

    def stop(self) -> None:
        """End the process, whatever it does."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.kill()
            self._process = None
