"""Job routes: verdicts, and the work that the page may start; what writes only if `--allow-runs` was given."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tiltmeter.explorer.answers import answered, refused, sent, state_of
from tiltmeter.explorer.run_routes import MOST_RUNS
from tiltmeter.explorer.state import KINDS
from tiltmeter.explorer.what_if_routes import checked_bend, own_settings

READ_ONLY = "This explorer only reads. Start it with `tiltmeter explore --allow-runs` to train and to run experiments."


def routes() -> list[Route]:
    return [
        Route("/api/verdicts", verdicts),
        Route("/api/picture", picture),
        Route("/api/jobs", jobs, methods=["GET", "POST"]),
        Route("/api/cancel", cancel, methods=["POST"]),
    ]


async def verdicts(request: Request) -> Response:
    state = state_of(request)
    return await answered(state.analyst.ask("verdicts", root=str(state.settings.folder)))


async def picture(request: Request) -> Response:
    state, query = state_of(request), request.query_params
    number = query.get("number", "")
    asked: dict[str, Any] = {"name": query.get("name", ""), "variant": query.get("variant", "")}
    place = int(number) if number.isascii() and number.isdigit() and len(number) < 5 else -1
    return await answered(state.analyst.ask("picture", root=str(state.settings.folder), number=place, **asked))


async def jobs(request: Request) -> Response:
    """GET: all jobs. POST: start one."""
    state = state_of(request)
    if request.method == "GET":
        return JSONResponse([job.to_json() for job in state.jobs.all()])
    try:
        asked = await sent(request)
        kind, settings = str(asked["kind"]), asked["settings"]
        if KINDS.get(kind) and not state.settings.allow_runs:
            return refused(READ_ONLY, 403)
        own = own_settings(state.settings)
        if kind == "run quick":
            settings, own = {"name": str(settings["name"])}, {"root": own["root"]}
        elif kind == "find groups":
            lists = {name: [str(one) for one in settings[name][:MOST_RUNS]] for name in ("runs", "without")}
            settings, own = {**lists, "table": str(settings["table"])}, {"root": own["root"]}
        elif kind in KINDS:
            settings = {"source": str(settings["source"]), "bend": checked_bend(settings)}
        return JSONResponse(state.jobs.start(kind, settings, own).to_json())
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        return refused(str(error) if type(error) is ValueError else "A job should have a kind and settings.")


async def cancel(request: Request) -> Response:
    state = state_of(request)
    try:
        return JSONResponse(state.jobs.cancel(int((await sent(request))["number"])).to_json())
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        return refused(str(error) if type(error) is ValueError else "Say which job to cancel.")
