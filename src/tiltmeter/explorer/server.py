"""Server: the application behind its locks, on a socket of this machine."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from uvicorn.protocols.http.h11_impl import H11Protocol

from tiltmeter.explorer.locks import Locks
from tiltmeter.explorer.routes import routes
from tiltmeter.explorer.settings import Settings
from tiltmeter.explorer.state import State

#: Seconds that open requests get to finish after Ctrl-C.
PATIENCE = 1
#: Seconds within which a request has to be whole, and the connections that may wait at once.
DEADLINE, MOST_CONNECTIONS = 20.0, 200


class Patient(H11Protocol):
    """A connection that ends if no whole request comes in time, or if it is the oldest of too many that wait."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._unchanged: object = self
        self._deadline = self.loop.call_later(DEADLINE, self._late)
        waiting = [one for one in self.connections if isinstance(one, Patient) and one is not self and one.waits]
        if len(self.connections) > MOST_CONNECTIONS and waiting:
            min(waiting, key=lambda one: one._deadline.when()).transport.abort()

    @property
    def waits(self) -> bool:
        """Whether it is the other side's turn: to begin a request, or to finish one."""
        cycle = self.cycle
        return cycle is None or bool(cycle.response_complete) or bool(cycle.more_body)

    def _late(self) -> None:
        if self.waits and (self.cycle is None or self.cycle is self._unchanged):
            self.transport.abort()
            return
        self._unchanged = self.cycle
        self._deadline = self.loop.call_later(DEADLINE, self._late)

    def connection_lost(self, error: Exception | None) -> None:
        self._deadline.cancel()
        super().connection_lost(error)


def make_app(settings: Settings) -> Starlette:
    """The application; its processes start with the first question that needs them and end with it."""
    state = State(settings)

    @asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[None]:
        try:
            yield
        finally:
            state.stop()

    app = Starlette(routes=routes(), middleware=[Middleware(Locks, settings=settings)], lifespan=lifespan)
    app.state.explorer = state
    return app


def serve(settings: Settings, ready: Callable[[Settings], None]) -> None:
    """Serve until Ctrl-C. `ready` hears the settings with the port that was free."""
    import uvicorn

    listening = _socket(settings)
    settings = replace(settings, port=listening.getsockname()[1])
    config = uvicorn.Config(
        make_app(settings),
        log_level="warning",
        access_log=False,
        ws="none",
        loop="asyncio",
        server_header=False,
        http=Patient,
        timeout_graceful_shutdown=PATIENCE,
    )
    ready(settings)
    with listening:
        uvicorn.Server(config).run(sockets=[listening])


def _socket(settings: Settings) -> socket.socket:
    """A listening socket; another port if the one asked for is taken."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((settings.host, settings.port))
    except OSError:
        try:
            listening.bind((settings.host, 0))
        except OSError as error:
            listening.close()
            raise OSError(
                f"`share` should be an address of this machine, as 192.168.1.20. Found {settings.host!r}, where "
                f"nothing can listen: {error.strerror or error}."
            ) from None
    listening.listen(128)
    return listening
