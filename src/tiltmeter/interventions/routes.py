"""Who applies an intervention: refused elsewhere, by name."""

from __future__ import annotations

from collections.abc import Iterable

from tiltmeter.interventions.group_intervention import GroupIntervention
from tiltmeter.interventions.intervention import Intervention


def refuse_elsewhere(laws: Iterable[Intervention], route: str, called: str | None = None) -> None:
    """Raise for an intervention that this route does not apply, naming one that does; `called` is what the user called.

    >>> from tiltmeter.interventions import GroupDRO, UPGrad
    >>> refuse_elsewhere([GroupDRO()], "ensemble")
    >>> refuse_elsewhere([UPGrad()], "ensemble")
    Traceback (most recent call last):
    ValueError: `ensemble` cannot apply UPGrad, which sees the gradients of every batch. Use `train`.
    """
    for law in laws:
        if route not in law.routes:
            raise ValueError(f"`{called or route}` cannot apply {_named(law)}. Use `{other_door(law, route)}`.")


def other_door(law: Intervention, route: str) -> str:
    """Where to take an intervention that a route refuses: what trains networks sends to what trains networks."""
    networks = ("train",) if route in ("train", "ensemble", "forecast") else ()
    return next((door for door in (*networks, *law.routes) if door in law.routes), law.routes[0])


def _named(law: Intervention) -> str:
    name = type(law).__name__
    if isinstance(law, GroupIntervention):
        if law.sees_gram:
            return f"{name}, which sees the gradients of every batch"
        if law.by == "draws":
            return f'{name} with by="draws", which changes how often groups are drawn'
    return f"{name}, which changes {law.changes}"
