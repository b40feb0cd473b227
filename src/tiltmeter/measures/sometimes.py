"""Sometimes: evaluate a costly measure less often than the others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import xarray as xr

from tiltmeter.measures.snapshot import Measure, Snapshot
from tiltmeter.record import When


@dataclass(frozen=True)
class Sometimes:
    """The measure, evaluated only at the steps that `when` selects, and at the last one.

    >>> from tiltmeter.measures.default_curves import error
    >>> from tiltmeter.record import every
    >>> Sometimes(error, every(500)).when(1000)
    True
    """

    measure: Measure
    when: When

    def __call__(self, snapshot: Snapshot) -> Mapping[str, xr.DataArray]:
        return self.measure(snapshot)
