"""State: the settings of a server and its three processes."""

from __future__ import annotations

import asyncio
from functools import cached_property

from tiltmeter.explorer.settings import Settings
from tiltmeter.explorer.worker import Worker


class State:
    """What the routes share. `reader` follows files, `analyst` judges, `runner` forecasts and trains."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.reader, self.analyst, self.runner = Worker(), Worker(), Worker()
        self._library: asyncio.Task[str] | None = None

    async def drawing_library(self) -> str:
        """The JavaScript that draws charts; made once, by the analyst."""
        if self._library is None:
            self._library = asyncio.create_task(self.analyst.ask("drawing library"))
        return await asyncio.shield(self._library)

    @cached_property
    def workers(self) -> tuple[Worker, ...]:
        return self.reader, self.analyst, self.runner

    def stop(self) -> None:
        for worker in self.workers:
            worker.stop()
