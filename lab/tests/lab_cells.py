"""Cells that studies of the tests run in processes of their own."""

import json
import os

import xarray as xr

from tiltmeter_lab.claim import Claim
from tiltmeter_lab.outcome import Outcome


def experiment_that_may_die(settings):
    """In place of the cell of `tiltmeter reproduce --jobs`."""
    name = settings["name"]
    if name == "broken":
        os._exit(9)
    found = Outcome(name, name, "", "quick", 1, "2024-01-31", 0.0, "0", (Claim("It is", 1.0, "size", 0.0),))
    return xr.Dataset(attrs={"outcome": json.dumps(found.to_json())})
