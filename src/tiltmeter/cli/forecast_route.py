"""forecast_route: the route of a forecast from words of the command line and the [forecast] table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tiltmeter.forecast.route import Coordinates, Kernel, Twin

#: The words and the settings that belong to each.
ROUTES: dict[str, tuple[type, tuple[str, ...]]] = {
    "kernel": (Kernel, ("sample", "real_steps")),
    "coordinates": (Coordinates, ("count", "replicas")),
    "twin": (Twin, ("share", "count")),
}


def route_of(
    word: str | None, table: Mapping[str, Any], flags: Mapping[str, Any]
) -> Kernel | Coordinates | Twin | None:
    """The route, or None where it is to be chosen; `flags` win over the table, and a setting names its route.

    >>> route_of(None, {"sample": 500}, {})
    Kernel(sample=500, seed=0, horizon=True, real_steps=0)
    >>> route_of("twin", {"share": 0.25}, {}), route_of(None, {}, {}) is None
    (Twin(share=0.25, count=2, seed=0), True)
    """
    word = word or table.get("route")
    given = {**{key: value for key, value in table.items() if key != "route"}, **flags}
    if word is None:
        word = next((name for name, (_, keys) in ROUTES.items() if given and set(given) <= set(keys)), None)
        if word is None and not given:
            return None
    if word is None or word not in ROUTES:
        found = f"no {word!r}" if word is not None else f"none has {' and '.join(given)} together"
        raise KeyError(f"--route: {found}. There are: {', '.join(ROUTES)}.")
    kind, keys = ROUTES[word]
    strange = [key for key in given if key not in keys]
    if strange:
        raise ValueError(f"[forecast] {strange[0]} does not belong to route {word!r}, which has {' and '.join(keys)}.")
    route: Kernel | Coordinates | Twin = kind(**given)
    return route
