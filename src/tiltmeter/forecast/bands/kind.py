"""Kind: which table of calibration a forecast belongs to."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

from tiltmeter.record.trajectory import Trajectory

#: Kinds of forecasts whose bands are calibrated.
Kind = Literal["twins", "one twin", "twins without order", "coordinates", "kernel"]
KINDS: tuple[Kind, ...] = ("twins", "one twin", "twins without order", "coordinates", "kernel")
#: Layers with weights other than Linear, in the description of a model. No trainings of such networks have calibrated.
OTHER_LAYERS = re.compile("Conv|Norm|Attention|Transformer|RNN|GRU|LSTM|Embedding")


def kind_of(ahead: Trajectory) -> tuple[Kind | None, str]:
    """Return the kind of a forecast; None, with the reason, where no trainings have calibrated one like it."""
    settings: Mapping[str, Any] = ahead.origin.settings
    if ahead.origin.source != "forecast" or ahead.clock != "step":
        return None, "it is no forecast of a training"
    account = settings.get("calculation")
    if not isinstance(account, Mapping):
        return None, "it does not say how it was calculated"
    if "from_step" in account:
        return None, "it goes on from a training that has begun"
    route = settings.get("route")
    name = route.get("name") if isinstance(route, Mapping) else "Kernel" if "sample" in settings else None
    if "initialisations" in settings:
        return None, "it is of several initial weights"
    model = settings.get("model")
    if isinstance(model, Mapping) and OTHER_LAYERS.search(str(model.get("text", ""))):
        return None, "its network has other layers than Linear, for which no trainings have calibrated a band"
    known = account.get("order") == "the run's own"
    if name == "Twin":
        if not account.get("cut"):
            return None, "it is a training itself"
        several = not isinstance(route, Mapping) or route.get("count") != 1
        if not several and not known:
            return None, "no single twins without the run's order were calibrated: take two, or give an `order`"
        return ("one twin" if not several else "twins" if known else "twins without order"), ""
    if name == "Kernel":
        return "kernel", ""
    if name == "Coordinates" and known:
        return "coordinates", ""
    return None, (
        "no coordinates without the run's order were calibrated: give the recipe an `order`"
        if name
        else "its route is not known"
    )
