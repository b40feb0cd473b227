"""nowcast_step: where a nowcast begins."""

from __future__ import annotations

from collections.abc import Mapping

from tiltmeter.record.origin import Origin


def nowcast_step(origin: Origin) -> float | None:
    """The step from which a nowcast goes on; None for a forecast from the beginning and for any other run.

    >>> nowcast_step(Origin("forecast", settings={"calculation": {"from_step": 40}}))
    40.0
    """
    account = origin.settings.get("calculation")
    step = account.get("from_step") if isinstance(account, Mapping) else None
    return float(step) if origin.source == "forecast" and isinstance(step, (int, float)) else None
