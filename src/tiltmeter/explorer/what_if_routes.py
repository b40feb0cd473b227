"""What-if routes: the sources of forecasts, and the forecast for one setting of the sliders."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tiltmeter.explorer.answers import answered, refused, state_of
from tiltmeter.explorer.settings import Settings
from tiltmeter.explorer.what_if_sources import SAVED

#: The most groups that can be bent.
MOST_GROUPS = 64


def routes() -> list[Route]:
    return [Route("/api/sources", sources), Route("/api/what-if", start), Route("/api/forecast", forecast)]


async def sources(request: Request) -> Response:
    state = state_of(request)
    return await answered(state.reader.ask("sources", root=str(state.settings.folder)))


async def start(request: Request) -> Response:
    """What can be bent of a source."""
    state = state_of(request)
    asked = {"source": request.query_params.get("source", "digits"), **own_settings(state.settings)}
    return await answered(state.forecaster.ask("what if", **asked))


async def forecast(request: Request) -> Response:
    """A saved forecast as it is; else the forecast for these settings."""
    state, query = state_of(request), request.query_params
    source, curve = query.get("source", "digits"), query.get("curve", "")
    root = str(state.settings.folder)
    if source.startswith(SAVED):
        return await answered(state.reader.ask("saved forecast", root=root, source=source, curve=curve))
    given: dict[str, Any] = {**query, **{name: _parts(query.get(name, "")) for name in ("weights", "shares")}}
    try:
        bend = checked_bend(given)
    except ValueError as error:
        return refused(str(error))
    full = query.get("full") == "yes"
    own = own_settings(state.settings)
    return await answered(state.forecaster.ask("forecast", source=source, bend=bend, full=full, curve=curve, **own))


def own_settings(settings: Settings) -> dict[str, Any]:
    """What the server knows and no page may say."""
    return {"root": str(settings.folder), "reader": settings.reader, "fetch": settings.allow_runs}


def checked_bend(given: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of the sliders as numbers; the sentence says what is missing."""
    try:
        bend = {
            "lr": float(given["lr"]) if given.get("lr") not in (None, "") else None,
            "steps": int(float(given["steps"])),
            "weights": [float(one) for one in given.get("weights") or []],
            "shares": [float(one) for one in given.get("shares") or []],
            "law": str(given.get("law") or ""),
        }
        numbers = [bend["lr"] or 0.0, *bend["weights"], *bend["shares"]]  # type: ignore[misc]
        if len(numbers) > 1 + 2 * MOST_GROUPS or any(one - one != 0 for one in numbers):
            raise ValueError
    except (ValueError, KeyError, TypeError, OverflowError):
        raise ValueError(
            "A forecast should have numbers `lr` and `steps`, and `weights` and `shares` of the groups or none."
        ) from None
    return bend


def _parts(text: str) -> list[str]:
    return text.split(",") if text else []
