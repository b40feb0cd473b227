"""Direct: the plain run with all d coordinates, a second route and the only one for coordinate-wise optimisers."""

from __future__ import annotations

from dataclasses import dataclass

from tiltmeter.record.labelled import JSON
from tiltmeter.simulation.data import Repeated
from tiltmeter.simulation.direct_run import DirectRun
from tiltmeter.simulation.run import Run
from tiltmeter.simulation.setting import Setting
from tiltmeter.simulation.steered_run import SteeredRun


@dataclass(frozen=True)
class Direct:
    """Simulates all d coordinates, O(d) per step. Every seed has its own random directions of means and teachers.

    >>> from tiltmeter import optimisers, simulate, teacher_mixture
    >>> simulate(teacher_mixture(), optimisers.Adam(lr=0.1), [1.0], d=50, method=Direct())["loss"].sizes["group"]
    2

    Results do not depend on `threads` (None: all cores). With `progress`, work of more than a few seconds shows its
    progress on stderr.
    """

    threads: int | None = None
    progress: bool = True

    def begin(self, setting: Setting, seeds: tuple[int, ...]) -> Run:
        if setting.d < setting.rank:
            raise ValueError(
                f"`d` should be at least {setting.rank}: means and teachers span {setting.rank} dimensions. "
                f"Found d = {setting.d}."
            )
        law, repeated = setting.law, isinstance(setting.data, Repeated)
        if law is not None and law.sees_gram:
            raise ValueError(
                f"`Direct` does not see the gradients that {type(law).__name__} needs. Use method=Chain()."
            )
        if law is not None and law.by == "draws" and repeated:
            raise ValueError(
                f"A data set that is used epoch by epoch leaves {type(law).__name__} nothing to draw: "
                'use by="weights", or fresh data.'
            )
        run = DirectRun(setting, seeds)
        return run if law is None else SteeredRun(run, run.pulls, setting, law, run.sizes if repeated else None)

    def to_json(self) -> dict[str, JSON]:
        return {"method": "direct"}
