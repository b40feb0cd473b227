"""Run routes: the table of runs, their curves, judgements and reports."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tiltmeter.explorer.answers import answered, refused, state_of
from tiltmeter.explorer.state import Cancelled

#: The most runs that are asked about at once.
MOST_RUNS = 64
#: A report brings its own scripts, listed by their hashes in its own policy; here it gets no rights of this page.
REPORT_POLICY = "sandbox allow-scripts allow-downloads; frame-ancestors 'none'"


def routes() -> list[Route]:
    return [
        Route("/api/runs", rows),
        Route("/api/alike", alike),
        Route("/api/curves", curves),
        Route("/api/nowcasts", nowcasts),
        Route("/api/summaries", summaries),
        Route("/api/judgement", judgement),
        Route("/report", report),
    ]


async def rows(request: Request) -> Response:
    return await answered(state_of(request).rows(request.query_params.get("known", "")))


async def alike(request: Request) -> Response:
    state, run = state_of(request), request.query_params.get("run", "")
    return await answered(state.reader.ask("alike", root=str(state.settings.folder), run=run))


async def curves(request: Request) -> Response:
    """The curves of all shown runs in one answer; `known` are the versions that the page has."""
    state, asked = state_of(request), _runs(request)
    known = dict(zip(asked, request.query_params.getlist("known"), strict=False))
    curve = request.query_params.get("curve", "")
    work = state.reader.ask("curves", root=str(state.settings.folder), runs=asked, curve=curve, known=known)
    return await answered(work)


async def nowcasts(request: Request) -> Response:
    """What was forecast of the rest of these runs."""
    state, curve = state_of(request), request.query_params.get("curve", "")
    work = state.analyst.ask("nowcasts", root=str(state.settings.folder), runs=_runs(request), curve=curve)
    return await answered(work)


async def summaries(request: Request) -> Response:
    state = state_of(request)
    return await answered(state.analyst.ask("summaries", root=str(state.settings.folder), runs=_runs(request)))


async def judgement(request: Request) -> Response:
    state, curve = state_of(request), request.query_params.get("curve", "")
    work = state.analyst.ask("judgement", root=str(state.settings.folder), runs=_runs(request), curve=curve)
    return await answered(work, refusal_status=200)  # that a run cannot be judged is an ordinary answer


async def report(request: Request) -> Response:
    """The report of the chosen runs."""
    state = state_of(request)
    try:
        page = await state.analyst.ask("report", root=str(state.settings.folder), runs=_runs(request))
    except (ValueError, Cancelled) as error:
        return refused(str(error))
    return Response(page, media_type="text/html", headers={"Content-Security-Policy": REPORT_POLICY})


def _runs(request: Request) -> list[str]:
    return request.query_params.getlist("run")[:MOST_RUNS]
