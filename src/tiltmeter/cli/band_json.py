"""band_json: the band of a forecast for machines."""

from __future__ import annotations

from typing import Any

import numpy as np

from tiltmeter.forecast.bands.band_horizon import horizon
from tiltmeter.forecast.bands.forecast_band import calibrated_band
from tiltmeter.record.labelled import label_to_json
from tiltmeter.record.trajectory import Trajectory


def band_to_json(ahead: Trajectory, curve: str) -> dict[str, Any] | None:
    """Return how far the forecast goes and its limits at the last step; None where no band is calibrated."""
    band = calibrated_band(ahead, curve)
    if band is None:
        return None
    found = horizon(ahead, curve=curve)
    last = {
        name: [
            {
                name: label_to_json(label),
                **{str(b): float(one) for b, one in zip(part.coords["bound"].values, row, strict=True)},
            }
            for label, row in zip(part.coords[name].values.tolist(), part.isel(time=-1).values, strict=True)
        ]
        for name, part in (("group", band.values), ("pair", band.gaps))
        if np.isfinite(part.isel(time=-1).values).all()
    }
    return {
        "share": 1.0 - band.level,
        "kind": band.kind,
        "tolerance": found.tolerance,
        "level_horizon": found.level,
        "leader_horizon": [
            {"pair": [label_to_json(one) for one in pair], "step": step} for pair, step in found.leader.items()
        ],
        "last": last,
    }
