"""Routes: every address that the server answers."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from tiltmeter.explorer import job_routes, run_routes, study_routes, table_routes, what_if_routes
from tiltmeter.explorer.answers import answered, refused, state_of
from tiltmeter.explorer.lessons import lesson_named, lessons
from tiltmeter.explorer.run_rows import has_run
from tiltmeter.explorer.single_file import kind_of, page_files, single_file
from tiltmeter.explorer.theory_state import presets
from tiltmeter.plugins import is_installed
from tiltmeter.shown_text import visible
from tiltmeter.version import __version__

#: The parts of the page in their order; the evidence of experiments is there if tiltmeter-lab is.
PAGES = ("start", "runs", "forecast", "theory", "studies")


def routes() -> list[Route]:
    return [
        Route("/", home),
        Route("/page/{name:path}", page_file),
        Route("/vega.js", vega),
        Route("/api/start", start),
        Route("/api/theory", theory),
        Route("/lesson.html", lesson_file),
        *run_routes.routes(),
        *study_routes.routes(),
        *table_routes.routes(),
        *what_if_routes.routes(),
        *job_routes.routes(),
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
    """What the page needs to know once; most pages will draw, so the library for it is made meanwhile."""
    state_of(request).prepare()
    settings = state_of(request).settings
    told: dict[str, Any] = {
        "version": __version__,
        "folder": visible(settings.folder.name),
        "allow_runs": settings.allow_runs,
        "first": "runs" if has_run(settings.folder) else "start",
        "pages": [*PAGES, *(["verdicts"] if is_installed("evidence") else []), "lessons"],
        "presets": presets(),
        "lessons": [lesson.to_json() for lesson in lessons()],
    }
    return JSONResponse(told)


async def theory(request: Request) -> Response:
    return await answered(state_of(request).analyst.ask("theory", query=dict(request.query_params)))


async def lesson_file(request: Request) -> Response:
    """A lesson, or the theory page in this state, as one file."""
    state, query = state_of(request), request.query_params
    try:
        if "lesson" in query:
            lesson = lesson_named(query["lesson"])
            name, title, pages = lesson.name, lesson.title, ["lessons", "theory"]
            states = [step.state for step in lesson.steps]
            embedded: dict[str, Any] = {"lessons": [lesson.to_json()]}
        else:
            name, title, pages, states = "lesson", "A lesson with tiltmeter", ["theory"], [str(query)]
            embedded = {"query": str(query)}
        answers = {one: await state.analyst.ask("theory", query=dict(parse_qsl(one))) for one in states}
    except ValueError as error:
        return refused(str(error))
    page = single_file(title, {**embedded, "pages": pages, "answers": answers})
    attached = {"Content-Disposition": f'attachment; filename="{name}.html"'}
    return Response(page, media_type="text/html", headers=attached)
