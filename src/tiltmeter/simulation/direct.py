"""Direct: the plain run with all d coordinates, the second route and the only one for coordinate-wise optimisers."""

from __future__ import annotations

from dataclasses import dataclass

from tiltmeter.record.labelled import JSON
from tiltmeter.simulation.direct_run import DirectRun
from tiltmeter.simulation.run import Run
from tiltmeter.simulation.setting import Setting


@dataclass(frozen=True)
class Direct:
    """Every coordinate of every sample: O(d) per step. Means and teachers point in random directions, new per seed."""

    def begin(self, setting: Setting, seeds: tuple[int, ...]) -> Run:
        if setting.d < setting.rank:
            raise ValueError(
                f"`d` should be at least {setting.rank}: means and teachers span so many dimensions. "
                f"Found d = {setting.d}."
            )
        return DirectRun(setting, seeds)

    def to_json(self) -> dict[str, JSON]:
        return {"method": "direct"}
