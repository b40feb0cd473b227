"""State: the settings of a server, its processes and its jobs."""

from __future__ import annotations

import asyncio
from functools import cached_property

from tiltmeter.explorer.jobs import Jobs
from tiltmeter.explorer.settings import Settings
from tiltmeter.explorer.worker import Worker


class State:
    """What the routes share. `reader` follows files, `analyst` judges, `forecaster` forecasts, `runner` does jobs."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.reader, self.analyst, self.forecaster, self.runner = Worker(), Worker(), Worker(), Worker()
        self._drawer = Worker()
        self.jobs = Jobs(self.runner)
        self._library: asyncio.Task[str] | None = None

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
            return str(await self._drawer.ask("drawing library"))
        finally:
            self._drawer.stop()

    @cached_property
    def workers(self) -> tuple[Worker, ...]:
        return self.reader, self.analyst, self.forecaster, self.runner, self._drawer

    def stop(self) -> None:
        for worker in self.workers:
            worker.stop()
