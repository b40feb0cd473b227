"""final_gap: a cell function for examples and tests."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr


def final_gap(settings: dict[str, Any]) -> xr.Dataset:
    """The gap between two groups at the end of a run that is only drawn, not trained.

    >>> round(float(final_gap({"rho": 0.9, "lr": 0.1, "seed": 0})["gap"]), 3)
    0.413
    """
    chance = np.random.default_rng(settings["seed"]).normal()
    return xr.Dataset({"gap": settings["rho"] - 0.5 + settings["lr"] * chance})
