"""Table routes: a table that the page sends, what is in it, and the training file that is made of it."""

from __future__ import annotations

import asyncio
import os
import secrets
from contextlib import suppress
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tiltmeter.explorer.answers import answered, refused, sent, state_of
from tiltmeter.explorer.run_rows import address_of
from tiltmeter.explorer.settings import LARGEST_TABLE, PLACE, UPLOAD
from tiltmeter.explorer.state import State
from tiltmeter.explorer.tables import free_name

READ_ONLY = "This explorer only reads. Start it with `tiltmeter explore --allow-runs` to bring a table and to train."
#: Seconds that a table may take to be read.
PATIENCE = 60.0
CHOICES = ("label", "positive", "group", "kind")


def routes() -> list[Route]:
    return [
        Route("/api/tables", tables),
        Route(UPLOAD, upload, methods=["POST"]),
        Route("/api/columns", columns),
        Route("/api/task", task, methods=["POST"]),
    ]


async def tables(request: Request) -> Response:
    state = state_of(request)
    return await answered(state.reader.ask("tables", root=str(state.settings.folder)))


async def upload(request: Request) -> Response:
    """Keep a table in the folder, under a name of ours; a part of one is not kept."""
    settings = state_of(request).settings
    if not settings.allow_runs:
        return refused(READ_ONLY, 403)
    folder = settings.folder / PLACE
    try:
        name = free_name(folder, request.query_params.get("name", ""))
    except ValueError as error:
        return refused(str(error))
    aside = folder / f".{secrets.token_hex(8)}.aside"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with aside.open("xb") as file:
            async for part in request.stream():
                file.write(part)
        os.link(aside, folder / name)  # unlike a rename, this never replaces a file
    except OSError as error:
        return refused(f"The table could not be kept: {error.strerror or error}.", 507)
    except ClientDisconnect:
        return refused(f"At most {LARGEST_TABLE // 2**20} MB are read.", 413)
    finally:
        with suppress(OSError):
            aside.unlink()
    return JSONResponse({"table": address_of(f"{PLACE}/{name}".encode())})


async def columns(request: Request) -> Response:
    state, query = state_of(request), request.query_params
    given = {name: query[name] for name in CHOICES[:-1] if query.get(name)}
    return await answered(_read(state, "columns", {"table": query.get("table", ""), **given}))


async def task(request: Request) -> Response:
    state = state_of(request)
    if not state.settings.allow_runs:
        return refused(READ_ONLY, 403)
    try:
        asked = await sent(request)
        given = {"table": str(asked["table"]), **{name: str(asked[name]) for name in CHOICES if asked.get(name)}}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        return refused(str(error) if type(error) is ValueError else "A task should name its table.")
    return await answered(_read(state, "task", given))


async def _read(state: State, job: str, given: dict[str, Any]) -> Any:
    """The answer of a process that ends if a table takes too long."""
    try:
        work = state.table_reader.ask(job, root=str(state.settings.folder), **given)
        return await asyncio.wait_for(work, PATIENCE)
    except TimeoutError:
        raise ValueError(f"This table was not read within {PATIENCE:.0f} seconds.") from None
