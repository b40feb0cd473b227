"""Advice: interventions ranked by their forecasts, and how well the ranks agree with training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tiltmeter.analysis.scorecard.score import Score
from tiltmeter.analysis.scorecard.scorecard import Scorecard, scorecard
from tiltmeter.interventions.intervention import Intervention
from tiltmeter.notebook_text import NotebookText
from tiltmeter.record.trajectory import Trajectory

#: The name of the training without any intervention.
PLAIN = "plain"
#: How many of the best are offered for training.
BEST = 3


@dataclass(frozen=True)
class Advice(NotebookText):
    """Interventions from best to worst by the worst group's loss over training, as forecast.

    `card` is the scorecard of the forecasts, `runs` the forecasts themselves, `laws` what was tried, `unranked` what
    could not be forecast, with the reason.
    """

    card: Scorecard
    runs: Mapping[str, Trajectory]
    laws: Mapping[str, tuple[Intervention, ...]]
    unranked: Mapping[str, str]
    route: str

    @property
    def ranked(self) -> tuple[Score, ...]:
        """All rows of the scorecard, plain training included, best first; what diverges comes last."""
        return tuple(sorted(self.card.rows, key=_worst_area))

    @property
    def best(self) -> tuple[str, ...]:
        """Up to three interventions that are forecast to serve the worst group better than plain training."""
        better = []
        for row in self.ranked:
            if row.name == PLAIN:
                break
            better.append(row.name)
        return tuple(better[:BEST])

    @property
    def unsure(self) -> tuple[str, ...]:
        """Those of the best whose gain is at most two standard errors over twins or replicas."""
        return tuple(name for name in self.best if self.card[name].worst_area_change.sign >= 0)

    def __str__(self) -> str:
        lines = [f"By the forecast ({self.route}), the worst group's {self.card.curve} over training:"]
        for place, row in enumerate(self.ranked, 1):
            change = "" if row.name == PLAIN else f" ({row.worst_area_change:+.4f} against {PLAIN})"
            cost = f", cost {row.cost:.3g}x" if np.isfinite(row.cost) and row.name != PLAIN else ""
            warning = "; it levels down" if row.levels_down else ""
            shown = "diverges" if row.diverged else f"{row.worst_area}{change}"
            lines.append(f"  {place:>2}. {row.name:<18} {shown}{cost}{warning}")
        if not self.best:
            lines.append("No intervention is forecast to serve the worst group better than plain training.")
        if self.unsure:
            lines.append(f"The gain is within two standard errors: {', '.join(self.unsure)}.")
        lines += [f"Not ranked: {name}. {reason}" for name, reason in self.unranked.items()]
        return "\n".join(lines)

    def judged_by(self, trained: Mapping[str, Trajectory]) -> JudgedAdvice:
        """Compare with the same interventions as trained, including the plain training."""
        missing = [name for name in (PLAIN, *trained) if name not in trained or name not in self.runs]
        if missing:
            raise ValueError(
                f"`trained` should hold {PLAIN!r} and interventions that were forecast. Found a problem with: "
                f"{', '.join(map(repr, dict.fromkeys(missing)))}."
            )
        names = [PLAIN, *(name for name in trained if name != PLAIN)]
        return JudgedAdvice(self, scorecard({name: trained[name] for name in names}, self.card.curve))

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "route": self.route,
            "ranked": [row.to_json() for row in self.ranked],
            "best": list(self.best),
            "unsure": list(self.unsure),
            "unranked": dict(self.unranked),
            "laws": {name: [law.to_json() for law in laws] for name, laws in self.laws.items()},
        }


@dataclass(frozen=True)
class JudgedAdvice(NotebookText):
    """Advice compared with the results of training.

    `correlation` is Spearman's rank correlation of the worst group's loss over training, forecast against trained, over
    all runs that were trained (NaN with fewer than three, or where all are alike). It says nothing about interventions
    that were not trained.
    """

    advice: Advice
    card: Scorecard

    @property
    def pairs(self) -> tuple[tuple[str, float, float], ...]:
        """Name, forecast and trained area of the worst group."""
        return tuple(
            (row.name, self.advice.card[row.name].worst_area.value, row.worst_area.value) for row in self.card.rows
        )

    @property
    def correlation(self) -> float:
        from scipy.stats import spearmanr

        if len(self.pairs) < 3:
            return float("nan")
        _, *columns = zip(*self.pairs, strict=True)
        forecast, trained = map(_finite, columns)
        if len(set(forecast)) == 1 or len(set(trained)) == 1:  # no order to compare
            return float("nan")
        return float(spearmanr(forecast, trained).statistic)

    @property
    def place_of_first(self) -> int:
        """The place, as trained, of the run that was forecast to be the best of those trained."""
        return next(trained for _, forecast, trained in self.places if forecast == 1)

    @property
    def places(self) -> tuple[tuple[str, int, int], ...]:
        """Name, place by the forecast and place as trained, among the runs that were trained; best as trained first."""
        names, forecast, trained = zip(*self.pairs, strict=True)
        ahead, real = (_finite(values).argsort(kind="stable").argsort() + 1 for values in (forecast, trained))
        found = [(name, int(a), int(r)) for name, a, r in zip(names, ahead, real, strict=True)]
        return tuple(sorted(found, key=lambda place: place[2]))

    def __str__(self) -> str:
        values = {name: (ahead, real) for name, ahead, real in self.pairs}
        lines = [f"{'':<18}  forecast (rank)  trained (rank)"]
        for name, first, second in self.places:
            ahead, real = values[name]
            lines.append(f"{name:<18}  {ahead:8.4f} {f'({first})':>6}  {real:7.4f} {f'({second})':>6}")
        known = f"rank correlation {self.correlation:.2f}; " if np.isfinite(self.correlation) else ""
        lines.append(
            f"{known}the first choice of the forecast came in at place {self.place_of_first} of {len(self.pairs)}."
        )
        return "\n".join(lines)


def _worst_area(row: Score) -> float:
    return row.worst_area.value if np.isfinite(row.worst_area.value) else np.inf


def _finite(values: Any) -> np.ndarray:
    """Divergence counts as worse than everything."""
    array = np.asarray(values, dtype=float)
    return np.where(np.isfinite(array), array, np.finfo(float).max)
