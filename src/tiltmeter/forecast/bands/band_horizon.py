"""horizon: how far a forecast goes, for the level of a curve and for its leader, by the width of its band."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

import numpy as np

from tiltmeter.forecast.bands.forecast_band import LEVEL, forecast_band
from tiltmeter.forecast.horizon import spelled
from tiltmeter.notebook_text import NotebookText
from tiltmeter.record.trajectory import Trajectory

#: Half the width of a band up to which the level of a curve counts as known.
TOLERANCE = 0.1


@dataclass(frozen=True)
class BandHorizon(NotebookText):
    """How far a forecast goes: `level` for values, `leader` for every pair of groups.

    `level` is the last step up to which the band of every group is at most `tolerance` up and down, in the units of the
    curve; None: at every step. `leader` maps pairs of groups to the last step at which the band of their gap excludes
    zero; None: at no step, so that the forecast names no leader. A leader may be known where the level is not, and the
    other way round.
    """

    curve: str
    steps: float
    tolerance: float
    share: float
    level: float | None
    leader: Mapping[tuple[Hashable, Hashable], float | None]

    def __str__(self) -> str:
        until = "at every step" if self.level is None else f"up to step {spelled(self.level)} of {spelled(self.steps)}"
        text = f"Level: the {self.share:.0%} band of {self.curve} is within ± {self.tolerance:g} {until}."
        for (a, b), last in self.leader.items():
            if last is None:
                text += f" Leader of {a} and {b}: named at no step, since the band contains zero."
            elif last < self.steps:
                text += f" Leader of {a} and {b}: named up to step {spelled(last)}, not beyond."
            else:
                text += f" Leader of {a} and {b}: named at the last step."
        return text


def horizon(ahead: Trajectory, tolerance: float = TOLERANCE, curve: str = "loss", level: float = LEVEL) -> BandHorizon:
    """Return how far a forecast goes: where its band gets wider than `tolerance`, and where it stops naming a leader.

    The band is that of `forecast_band`. A horizon at the last step does not mean that the forecast is right: one band
    in ten misses.
    """
    if not tolerance > 0:
        raise ValueError(f"`tolerance` should be positive. Found tolerance = {tolerance}.")
    band = forecast_band(ahead, curve, level)
    times = band.values.coords["time"].values.astype(float)
    half = (band.values.sel(bound="high") - band.values.sel(bound="low")).values.max(1) / 2.0
    wide = np.flatnonzero(~(half <= tolerance))
    known = float(times[max(0, wide[0] - 1)]) if wide.size else None
    low, high = (band.gaps.sel(bound=bound).values for bound in ("low", "high"))
    leader = {}
    for place, pair in enumerate(band.gaps.coords["pair"].values.tolist()):
        shown = np.flatnonzero((low[:, place] > 0) | (high[:, place] < 0))
        leader[tuple(pair)] = float(times[shown[-1]]) if shown.size else None
    return BandHorizon(curve, float(times[-1]), tolerance, 1.0 - level, known, leader)
