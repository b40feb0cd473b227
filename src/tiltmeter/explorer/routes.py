"""Routes: every address that the server answers."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from tiltmeter.explorer import run_routes
from tiltmeter.explorer.answers import answered, state_of
from tiltmeter.explorer.page_files import kind_of, page_files
from tiltmeter.explorer.presets import presets
from tiltmeter.explorer.single_file import single_file
from tiltmeter.explorer.theory_state import TheoryState
from tiltmeter.version import __version__
from tiltmeter.visible_text import visible


def routes() -> list[Route]:
    return [
        Route("/", home),
        Route("/page/{name:path}", page_file),
        Route("/vega.js", vega),
        Route("/api/start", start),
        Route("/api/theory", theory),
        Route("/lesson.html", lesson_file),
        *run_routes.routes(),
    ]


async def home(_: Request) -> Response:
    return Response(page_files()["index.html"], media_type="text/html")


async def page_file(request: Request) -> Response:
    name = request.path_params["name"]
    text = page_files().get(name)
    return (
        PlainTextResponse("There is no such file.", 404) if text is None else Response(text, media_type=kind_of(name))
    )


async def vega(request: Request) -> Response:
    return Response(await state_of(request).drawing_library(), media_type="text/javascript")


async def start(request: Request) -> Response:
    """What the page needs to know once."""
    settings = state_of(request).settings
    told: dict[str, Any] = {
        "version": __version__,
        "folder": visible(settings.folder.name),
        "allow_runs": settings.allow_runs,
        "presets": presets(),
    }
    return JSONResponse(told)


async def theory(request: Request) -> Response:
    return await answered(state_of(request).analyst.ask("theory", query=dict(request.query_params)))


async def lesson_file(request: Request) -> Response:
    """The theory page in this state, as one file."""
    state, query = state_of(request), str(request.query_params)
    try:
        TheoryState.from_query(request.query_params)
        answer = await state.analyst.ask("theory", query=dict(request.query_params))
    except ValueError as error:
        return JSONResponse({"error": visible(str(error))}, 400)
    embedded = {"pages": ["theory"], "query": query, "answers": {query: answer}}
    page = single_file(await state.drawing_library(), "A lesson with tiltmeter", embedded)
    return Response(page, media_type="text/html", headers={"Content-Disposition": 'attachment; filename="lesson.html"'})
