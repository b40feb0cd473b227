"""Answers: what every route does with a request and with what a worker tells."""

from __future__ import annotations

import json
from collections.abc import Awaitable
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from tiltmeter.explorer.state import Cancelled, State
from tiltmeter.shown_text import visible


def state_of(request: Request) -> State:
    """What the server holds."""
    state: State = request.app.state.explorer
    return state


async def answered(work: Awaitable[Any], refusal_status: int = 400) -> Response:
    """What a worker answers, as JSON; what it refuses, as one sentence."""
    try:
        return Response(json.dumps(await work), media_type="application/json")
    except ValueError as error:
        return refused(str(error), refusal_status)
    except Cancelled as error:
        return refused(str(error), 503)


async def sent(request: Request) -> Any:
    """The JSON of a request; a ValueError for what could not be told again: infinities, halves of characters."""
    body = await request.body()
    try:
        value = json.loads(body, parse_constant=_no_number)
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        raise ValueError("A change should be asked for in plain JSON.") from None
    return value


def _no_number(word: str) -> float:
    raise ValueError(f"{word} is no number")


def refused(sentence: str, status: int = 400) -> Response:
    """One sentence."""
    return JSONResponse({"error": visible(sentence)}, status)
