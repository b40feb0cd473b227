"""Job routes: forecasts, verdicts, and the work that the page may start if `--allow-runs` was given."""

from __future__ import annotations

import json
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tiltmeter.explorer.answers import answered, refused, state_of

READ_ONLY = "This explorer only reads. Start it with `tiltmeter explore --allow-runs` to train and to run experiments."


def routes() -> list[Route]:
    return [
        Route("/api/forecast", forecast),
        Route("/api/best-weights", best_weights),
        Route("/api/verdicts", verdicts),
        Route("/api/picture", picture),
        Route("/api/jobs", jobs, methods=["GET", "POST"]),
        Route("/api/cancel", cancel, methods=["POST"]),
    ]


async def forecast(request: Request) -> Response:
    """Forecast the digits example for these settings."""
    try:
        asked = {**_settings(request), "full": request.query_params.get("full") == "yes"}
    except ValueError as error:
        return refused(str(error))
    return await answered(state_of(request).forecaster.ask("digits forecast", **asked))


async def best_weights(request: Request) -> Response:
    try:
        asked = _settings(request)
    except ValueError as error:
        return refused(str(error))
    asked.pop("weights")
    return await answered(state_of(request).forecaster.ask("digits best weights", **asked))


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
    if not state.settings.allow_runs:
        return refused(READ_ONLY, 403)
    try:
        asked = json.loads(await request.body())
        kind, settings = asked["kind"], asked["settings"]
        if kind == "train digits":
            settings = _checked(settings)
        elif kind == "run quick":
            settings = {"name": str(settings["name"])}
        return JSONResponse(state.jobs.start(str(kind), settings, str(state.settings.folder)).to_json())
    except (ValueError, KeyError, TypeError) as error:
        return refused(str(error) if type(error) is ValueError else "A job should have a kind and settings.")


async def cancel(request: Request) -> Response:
    state = state_of(request)
    if not state.settings.allow_runs:
        return refused(READ_ONLY, 403)
    try:
        return JSONResponse(state.jobs.cancel(int(json.loads(await request.body())["number"])).to_json())
    except (ValueError, KeyError, TypeError) as error:
        return refused(str(error) if type(error) is ValueError else "Say which job to cancel.")


def _settings(request: Request) -> dict[str, Any]:
    query = request.query_params
    return _checked(
        {
            "lr": query.get("lr", "0.006"),
            "steps": query.get("steps", "600"),
            "weights": query.get("weights", "1,1").split(","),
            "shares": query.get("shares", "0,0").split(","),
        }
    )


def _checked(given: dict[str, Any]) -> dict[str, Any]:
    """Turn the settings of a forecast into numbers; the sentence says what is missing."""
    try:
        found = {
            "lr": float(given["lr"]),
            "steps": int(float(given["steps"])),
            "weights": [float(one) for one in given["weights"]],
            "shares": [float(one) for one in given["shares"]],
        }
        numbers = [found["lr"], *found["weights"], *found["shares"]]  # type: ignore[misc]
        if len(numbers) != 5 or any(one - one != 0 for one in numbers):
            raise ValueError
    except (ValueError, KeyError, TypeError, OverflowError):
        raise ValueError("A forecast should have numbers `lr` and `steps`, and two `weights` and `shares`.") from None
    return found
