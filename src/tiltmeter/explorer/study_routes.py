"""Study routes: the studies of the folder, one of them over two factors, and what explains a number of it."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tiltmeter.explorer.answers import answered, state_of


def routes() -> list[Route]:
    return [Route("/api/studies", studies), Route("/api/study", study), Route("/api/shares", shares)]


async def studies(request: Request) -> Response:
    state = state_of(request)
    return await answered(state.analyst.ask("studies", root=str(state.settings.folder)))


async def study(request: Request) -> Response:
    state = state_of(request)
    asked: dict[str, Any] = {name: request.query_params.get(name, "") for name in ("study", "across", "up", "response")}
    return await answered(state.analyst.ask("study", root=str(state.settings.folder), **asked))


async def shares(request: Request) -> Response:
    """That a number has no shares is an ordinary answer."""
    state = state_of(request)
    asked: dict[str, Any] = {name: request.query_params.get(name, "") for name in ("study", "response")}
    work = state.analyst.ask("study shares", root=str(state.settings.folder), **asked)
    return await answered(work, refusal_status=200)
