"""Scorecards of many interventions: settings and evaluations are chosen by one rule on points that do not judge."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import tiltmeter as tm
from tiltmeter_lab.catalogue import Runs
from tiltmeter_lab.shared.cure_grid import PLAIN, Interventions, cure_grid
from tiltmeter_lab.shared.two_held_out import CHOOSE, JUDGE, evaluated

CURVE = "error"


@dataclass(frozen=True, eq=False)
class Chosen:
    """The setting of an intervention that was chosen: its number in the grid, and the same training on both kinds of
    points."""

    setting: int
    judged: tm.Trajectory
    chose: tm.Trajectory

    @property
    def errors(self) -> np.ndarray:
        """The error of every group on the points that judge, at the evaluation that the others choose: (group,
        seed)."""
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
    """For every intervention the setting whose chosen evaluations have the lowest worst-group error on average over
    seeds.

    The evaluation of every seed is the one whose worst group has the lowest error. Both are read from the points that
    choose."""
    found: dict[str, Chosen] = {}
    scores: dict[str, float] = {}
    for name, run in runs.items():
        of, law, setting = name.split(" | ")
        if of != task:
            continue
        one = Chosen(int(setting), evaluated(run, JUDGE), evaluated(run, CHOOSE))
        score = float(_worst(one.chose).min(0).mean())
        if law not in found or score < scores[law]:
            found[law], scores[law] = one, score
    return found


def card_of(found: dict[str, Chosen]) -> tm.results.Scorecard:
    """The scorecard of the chosen settings against plain training, without those that diverged before its end.

    A scorecard compares runs up to the end of the shortest, so one that stopped early would cut all others short.
    """
    end = found[PLAIN].judged[CURVE].coords["time"].values[-1]
    whole = {name: one for name, one in found.items() if one.judged[CURVE].coords["time"].values[-1] == end}
    rule = tm.fairness.selections.BestWorst(on={name: one.chose for name, one in whole.items()})
    return tm.scorecard({name: one.judged for name, one in whole.items()}, CURVE, select=rule)


def needs_of(names: list[str]) -> dict[str, str]:
    """The group labels that every intervention needs."""
    first = {name: settings[0] for name, settings in cure_grid(steps=1, misleading=(0,)).items()}
    return {name: "no groups" if name == PLAIN else interventions_of(first[name])[0].needs for name in names}


def interventions_of(laws: Interventions | None) -> tuple[tm.interventions.Intervention, ...]:
    """The interventions of one setting, of which the first says what all of them need; none for plain training."""
    return () if laws is None else laws if isinstance(laws, tuple) else (laws,)


def _worst(run: tm.Trajectory) -> np.ndarray:
    """The error of the worst group, (time, seed); a run that diverged has no evaluation that could be chosen."""
    values = run[CURVE].max("group", skipna=False).transpose("time", "seed").values
    return np.where(np.isfinite(values), values, 1.0)
