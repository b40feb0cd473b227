"""Scorecards of many interventions: settings and looks are chosen by one rule on points that do not judge."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tiltmeter.analysis.scorecard.scorecard import Scorecard, scorecard
from tiltmeter.analysis.scorecard.selection import BestWorst
from tiltmeter.experiments.catalogue import Runs
from tiltmeter.experiments.shared.cure_grid import PLAIN, Laws, cure_grid
from tiltmeter.experiments.shared.two_looks import CHOOSE, JUDGE, looked
from tiltmeter.interventions import Intervention
from tiltmeter.record import Trajectory

CURVE = "error"


@dataclass(frozen=True, eq=False)
class Chosen:
    """The setting of a law that was chosen: its number in the grid, and the same training on both kinds of points."""

    setting: int
    judged: Trajectory
    chose: Trajectory

    @property
    def errors(self) -> np.ndarray:
        """The error of every group on the points that judge, at the look that the others choose: (group, seed)."""
        places = _worst(self.chose).argmin(0)
        values = self.judged[CURVE].transpose("time", "group", "seed").values
        return np.stack([values[place, :, seed] for seed, place in enumerate(places)], axis=1)

    @property
    def worst(self) -> np.ndarray:
        """The largest of them, by seed."""
        return np.asarray(self.errors.max(0))


def label(task: str, law: str, setting: int) -> str:
    """The name of a run."""
    return f"{task} | {law} | {setting}"


def chosen(runs: Runs, task: str) -> dict[str, Chosen]:
    """For every law the setting whose chosen looks have the lowest worst-group error on average over seeds.

    The look of every seed is the one whose worst group has the lowest error. Both are read from the points that choose.
    """
    found: dict[str, Chosen] = {}
    scores: dict[str, float] = {}
    for name, run in runs.items():
        of, law, setting = name.split(" | ")
        if of != task:
            continue
        one = Chosen(int(setting), looked(run, JUDGE), looked(run, CHOOSE))
        score = float(_worst(one.chose).min(0).mean())
        if law not in found or score < scores[law]:
            found[law], scores[law] = one, score
    return found


def card_of(found: dict[str, Chosen]) -> Scorecard:
    """The scorecard of the chosen settings against plain training, without those that diverged before its end.

    A scorecard compares runs up to the end of the shortest, so one that stopped early would cut all others short.
    """
    end = found[PLAIN].judged[CURVE].coords["time"].values[-1]
    whole = {name: one for name, one in found.items() if one.judged[CURVE].coords["time"].values[-1] == end}
    rule = BestWorst(on={name: one.chose for name, one in whole.items()})
    return scorecard({name: one.judged for name, one in whole.items()}, CURVE, select=rule)


def needs_of(names: list[str]) -> dict[str, str]:
    """The group labels that every law needs."""
    first = {name: settings[0] for name, settings in cure_grid(steps=1, misleading=(0,)).items()}
    return {name: "no groups" if name == PLAIN else laws_of(first[name])[0].needs for name in names}


def laws_of(laws: Laws | None) -> tuple[Intervention, ...]:
    """The laws of one setting, of which the first says what all of them need; none for plain training."""
    return () if laws is None else laws if isinstance(laws, tuple) else (laws,)


def _worst(run: Trajectory) -> np.ndarray:
    """The error of the worst group, (time, seed); a run that diverged has no look that could be chosen."""
    values = run[CURVE].max("group", skipna=False).transpose("time", "seed").values
    return np.where(np.isfinite(values), values, 1.0)
