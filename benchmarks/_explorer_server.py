"""The explorer with a clock in its event loop: `/lag` tells by how many milliseconds every tick came late.

python benchmarks/_explorer_server.py FOLDER
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from tiltmeter.explorer import server
from tiltmeter.explorer.settings import Settings

TICK = 0.005
_plain = server.make_app


def with_clock(settings: Settings) -> Starlette:
    """The same application; its event loop is asked to come back every 5 ms."""
    app = _plain(settings)
    late: list[float] = []
    own = app.router.lifespan_context

    async def tick() -> None:
        while True:
            begun = time.perf_counter()
            await asyncio.sleep(TICK)
            late.append(1000 * (time.perf_counter() - begun - TICK))

    async def told(_: Request) -> JSONResponse:
        found = list(late)
        late.clear()
        return JSONResponse(found)

    @asynccontextmanager
    async def lifespan(given: Any) -> AsyncIterator[Any]:
        ticking = asyncio.create_task(tick())
        async with own(given):
            yield
        ticking.cancel()

    app.router.lifespan_context = lifespan
    app.router.routes.append(Route("/lag", told))
    return app


if __name__ == "__main__":
    server.make_app = with_clock
    with suppress(KeyboardInterrupt):
        server.serve(Settings(Path(sys.argv[1]), 0), lambda found: print(found.address, flush=True))
