"""Advice: interventions ranked by what they do to the delivered model, and how well the ranks agree with training."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np

from tiltmeter import criteria
from tiltmeter.changes.change import Change
from tiltmeter.criteria import Criterion
from tiltmeter.interventions.intervention import Intervention
from tiltmeter.interventions.kinds import ModelIntervention
from tiltmeter.interventions.stored import intervention_from_json
from tiltmeter.leaders.headline import RATES, amounts, capital, in_points, term
from tiltmeter.leaders.points import kept_points
from tiltmeter.leaders.scorecard.score import Score
from tiltmeter.leaders.scorecard.scorecard import Scorecard, scorecard
from tiltmeter.names import better_of
from tiltmeter.record import load, save
from tiltmeter.record.directory.atomic_files import read_sealed_json, write_sealed_json
from tiltmeter.record.directory.disk import new_directory
from tiltmeter.record.trajectory import Trajectory
from tiltmeter.shown_text import NotebookText, group_name, shortened

#: The name of the training without any intervention.
PLAIN = "plain"
#: How many of the best are offered for training.
BEST = 3


@dataclass(frozen=True)
class Advice(NotebookText):
    """Interventions by the gap that the headline of plain training names, in the models that they would deliver.

    Args:
        card: The scorecard of the forecasts, of rates in the error.
        runs: The forecasts themselves, plain training among them.
        interventions: What was tried, by name.
        unranked: What was not tried, with the reason.
        method: How the trainings were forecast.
        rehearsed: Whether the network itself was trained; narrow copies only say what to try first.
        changes: What each changes against plain training, on the held-out points that choose.
        criterion: What ranks instead of the gap, one of `tm.fairness.criteria`; None: the gap.
        curve: The declared rate.
        weights: Weights of the groups in the gap, so that it is positive where the named group is behind.
        confirmed: The first choice against plain over fresh trainings, on the points that did not choose; None: not
            confirmed, for the reason `unconfirmed`.
        unconfirmed: Why the first choice was not confirmed.
    """

    card: Scorecard
    runs: Mapping[str, Trajectory]
    interventions: Mapping[str, tuple[Intervention, ...]]
    unranked: Mapping[str, str]
    method: str
    rehearsed: bool
    changes: Mapping[str, Change] = field(default_factory=dict)
    criterion: Criterion | None = None
    curve: str = "loss"
    weights: tuple[float, ...] = ()
    confirmed: Change | None = None
    unconfirmed: str = ""

    def value(self, run: Trajectory) -> float:
        """The number that ranks: the size of the gap at the end, or the criterion; infinity where a run diverged."""
        if run.diverged is not None and not bool(run.diverged.isnull().all()):
            return float("inf")
        if self.criterion is not None:
            return float(np.asarray(self.criterion.of(run)).mean())
        last = run[self.curve].isel(time=-1)
        values = (last.mean("seed") if "seed" in last.dims else last).values.astype(float)
        return float(abs(values @ np.asarray(self.weights))) if self.weights else float(np.ptp(values))

    @property
    def better(self) -> tuple[str, ...]:
        """Interventions with which the gap clearly shrinks and against which nothing speaks, the smallest gap first."""
        if not self.rehearsed:
            return ()
        return tuple(sorted(self._helping, key=lambda name: self.value(self.runs[name])))

    @property
    def _helping(self) -> list[str]:
        return [name for name, change in self.changes.items() if change.helps]

    @property
    def ranked(self) -> tuple[Score, ...]:
        """All rows: what helps, then plain, then what does not clearly help, then what is not recommended.

        Narrow copies are ranked as they are, plain among them.
        """
        values = {row.name: self.value(self.runs[row.name]) for row in self.card.rows}
        if not self.rehearsed:
            return tuple(sorted(self.card.rows, key=lambda row: values[row.name]))
        helping = set(self._helping)

        def place(row: Score) -> int:
            if row.name == PLAIN:
                return 1
            change = self.changes.get(row.name)
            return 0 if row.name in helping else 3 if change is None or change.reason else 2

        return tuple(sorted(self.card.rows, key=lambda row: (place(row), values[row.name])))

    @property
    def best(self) -> tuple[str, ...]:
        """Up to three: those that help, or of narrow copies those to try first."""
        if self.rehearsed:
            return self.better[:BEST]
        names = [row.name for row in self.ranked]
        return tuple(names[: names.index(PLAIN)][:BEST])

    def __str__(self) -> str:
        lines = [self.headline, f"{self.method}, judged by {self._judged}."]
        rows = [self._cells(row) for row in self.ranked]
        known = {"name": "", "gap": "gap", "change": "change (limits)", "error": "error", "selected": "selected"}
        heads = {key: head for key, head in known.items() if any(row.get(key) for row in rows)}
        widths = {key: max(len(head), *(len(row.get(key, "")) for row in rows)) for key, head in heads.items()}
        head_line = "  ".join(f"{head:<{widths[key]}}" for key, head in heads.items())
        lines.append(f"    {head_line}  who pays")
        for place, row in enumerate(rows, 1):
            cells = "  ".join(f"{row.get(key, ''):<{width}}" for key, width in widths.items())
            lines.append(f"{place:>2}. {cells}  {row['pays']}".rstrip())
            if self.rehearsed and row["name"] == PLAIN and place < len(rows):
                lines.append("No clear gain, or not recommended:")
        if any("*" in row["name"] for row in rows):
            lines.append("* needs the group at every decision")
        lines += [f"Not recommended: {name}, since {one.reason}." for name, one in self.changes.items() if one.reason]
        lines += [f"Not tried: {name}. {reason}" for name, reason in self.unranked.items()]
        return "\n".join(lines)

    @property
    def headline(self) -> str:
        """The answer in one sentence, with numbers and the price."""
        if not self.rehearsed:
            if not self.best:
                return "Nothing to try first: no narrow copy does better with an intervention than without."
            return f"Try first: {', '.join(self.best)}. Narrow copies do not say whether it is better than plain."
        if not self.better:
            return "No change is clear." if self.changes else "No change can be judged: no points were kept."
        first = self.better[0]
        needs = "; it needs the group at every decision" if self._at_every_decision(first) else ""
        if self.confirmed is not None and self.confirmed.helps:
            sure = f" Confirmed by {self.confirmed.trainings} fresh trainings of each."
            return f"{capital(first)}: {self.confirmed.sentence}{needs}.{sure}"
        if self.confirmed is not None:
            what = self.confirmed.reason or self.confirmed.sentence
            return (
                f"No change is clear; the best so far is {first}. Over {self.confirmed.trainings} fresh trainings of "
                f"each: {what}{needs}."
            )
        return f"{capital(first)}: {self.changes[first].sentence}{needs}. Not confirmed: {self.unconfirmed}"

    def _at_every_decision(self, name: str) -> bool:
        arm = self.interventions.get(name, ())
        return any(isinstance(one, ModelIntervention) and one.by_group for one in arm)

    @property
    def _judged(self) -> str:
        return self.criterion.name if self.criterion is not None else f"the gap in {term(self.curve)} at the end"

    def _cells(self, row: Score) -> dict[str, str]:
        """One row of the table: the gap, its change, error and selection of all, cost, who pays."""
        value, change = self.value(self.runs[row.name]), self.changes.get(row.name)
        star = "*" if self._at_every_decision(row.name) else ""
        if not np.isfinite(value):
            return {"name": row.name + star, "gap": "diverges", "pays": ""}
        cells = {"name": row.name + star, "pays": "" if row.name == PLAIN or change is None else "nobody"}
        known = change or next(iter(self.changes.values()), None)
        if known is not None:  # of the points that choose, as the changes are
            value = known.gap.before if change is None else change.gap.after
        cells["gap"] = f"{value:.4g}" if self.criterion is not None else in_points(self.curve, value)
        if change is not None:
            low, high = (in_points(self.curve, limit) for limit in (change.gap.low, change.gap.high))
            cells["change"] = f"{in_points(self.curve, change.gap.change)} ({low} to {high})"
            cells["pays"] = ", ".join(map(group_name, change.pays)) or cells["pays"]
        for key, curve in (("error", "error"), ("selected", "positive_rate")):
            if (share := _of_all(self.runs[row.name], curve)) is not None:
                cells[key] = amounts("error", share)[0]
        if np.isfinite(row.cost) and row.cost > 1:
            cells["pays"] += f"; takes {row.cost:.3g} trainings"
        return cells

    def judged_by(self, trained: Mapping[str, Trajectory]) -> JudgedAdvice:
        """Compare with the same interventions as trained, including the plain training."""
        missing = [name for name in (PLAIN, *trained) if name not in trained or name not in self.runs]
        if missing:
            raise ValueError(
                f"`trained` should hold {PLAIN!r} and interventions that were forecast. Found a problem with: "
                f"{', '.join(map(repr, dict.fromkeys(missing)))}."
            )
        names = [PLAIN, *(name for name in trained if name != PLAIN)]
        runs = {name: trained[name] for name in names}
        return JudgedAdvice(self, scorecard(runs, self.card.curve), runs)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "headline": self.headline,
            "method": self.method,
            "rehearsed": self.rehearsed,
            "ranked": [row.to_json() for row in self.ranked],
            "better": list(self.better),
            "best": list(self.best),
            "changes": {name: change.to_json() for name, change in self.changes.items()},
            "confirmed": None if self.confirmed is None else self.confirmed.to_json(),
            "unconfirmed": self.unconfirmed,
            "unranked": dict(self.unranked),
            "interventions": {name: [one.to_json() for one in arm] for name, arm in self.interventions.items()},
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the advice and its forecasts as a new directory: completely, or not at all. See `load_advice`."""
        criterion = self.criterion
        if criterion is not None and type(criterion) not in (getattr(criteria, name) for name in criteria.__all__):
            raise TypeError(f"`criterion` should be one of tm.fairness.criteria. Found {type(criterion).__name__}.")
        judged = None if criterion is None else {"class": type(criterion).__name__, **vars(criterion)}
        with new_directory(Path(path)) as aside:
            for number, run in enumerate(self.runs.values()):
                save(run, aside / str(number))
            stored = {**self.to_json(), "runs": list(self.runs), "criterion": judged, "curve": self.curve}
            stored["weights"] = list(self.weights)
            write_sealed_json(aside / "advice.json", stored)


def load_advice(path: str | os.PathLike[str]) -> Advice:
    """Read what `Advice.save` wrote. Nothing is unpickled; interventions outside the library are not rebuilt.

    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np, torch, tiltmeter as tm
    >>> x = np.random.default_rng(0).normal(size=(400, 5)).astype("float32")
    >>> data = tm.GroupedData(x, np.sign(x[:, 0]), ["rare"] * 80 + ["common"] * 320)
    >>> arms, recipe = {"balanced": tm.interventions.Balanced()}, tm.Recipe(lr=0.05, steps=20)
    >>> advice = tm.advise(torch.nn.Linear(5, 1), *data.split(0.5), recipe, arms, progress=False)
    >>> with TemporaryDirectory() as folder:
    ...     advice.save(f"{folder}/advice")
    ...     str(load_advice(f"{folder}/advice")) == str(advice)
    True

    Args:
        path: Folder or file that `Advice.save` wrote.
    """
    file = Path(path) / "advice.json"
    if not file.is_file():
        raise FileNotFoundError(f"`path` should be a directory of Advice.save. Found no advice.json at {path}.")
    stored = read_sealed_json(file, "what Advice.save wrote")
    try:
        runs = {name: cast(Trajectory, load(Path(path) / str(number))) for number, name in enumerate(stored["runs"])}
        judged, curve = stored["criterion"], stored["curve"]
        criterion = None
        if judged is not None and judged["class"] in criteria.__all__:
            criterion = getattr(criteria, judged["class"])(**{n: v for n, v in judged.items() if n != "class"})
        return Advice(
            advice_card(runs, curve),
            runs,
            {name: tuple(map(intervention_from_json, arm)) for name, arm in stored["interventions"].items()},
            stored["unranked"],
            stored["method"],
            stored["rehearsed"],
            {name: Change.from_json(one) for name, one in stored["changes"].items()},
            criterion,
            curve,
            tuple(map(float, stored["weights"])),
            None if stored["confirmed"] is None else Change.from_json(stored["confirmed"]),
            stored["unconfirmed"],
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{file} should be what Advice.save wrote. Found: {shortened(str(error))}") from None


def advice_card(runs: Mapping[str, Trajectory], curve: str) -> Scorecard:
    """The scorecard of the forecasts: of rates in the error, else in the loss where higher values are better."""
    if curve in RATES and all("error" in run for run in runs.values()):
        return scorecard(runs, "error")
    return scorecard(runs, curve if better_of(curve, runs[PLAIN][curve]) == "lower" else "loss")


def _of_all(run: Trajectory, curve: str) -> float | None:
    """A rate of all held-out points together at the last evaluation; None if no points were kept."""
    kept = kept_points(run)
    curves = () if kept is None else kept.named([curve])
    return float(np.mean(curves[0].values[..., -1, :])) if curves else None


@dataclass(frozen=True)
class JudgedAdvice(NotebookText):
    """Advice compared with the results of training.

    `correlation` is Spearman's rank correlation of the number that ranks, forecast against trained, over all runs that
    were trained (NaN with fewer than three, or where all are alike). It says nothing about interventions that were not
    trained.
    """

    advice: Advice
    card: Scorecard
    runs: Mapping[str, Trajectory]

    @property
    def pairs(self) -> tuple[tuple[str, float, float], ...]:
        """Name, forecast and trained value."""
        value = self.advice.value
        return tuple((name, value(self.advice.runs[name]), value(run)) for name, run in self.runs.items())

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
        rows = [(name, int(a), int(r)) for name, a, r in zip(names, ahead, real, strict=True)]
        return tuple(sorted(rows, key=lambda place: place[2]))

    def __str__(self) -> str:
        values = {name: (ahead, real) for name, ahead, real in self.pairs}
        width = max(18, *map(len, values))
        lines = [f"{'':<{width}}  forecast (rank)  trained (rank)"]
        for name, first, second in self.places:
            ahead, real = values[name]
            lines.append(f"{name:<{width}}  {ahead:8.4f} {f'({first})':>6}  {real:7.4f} {f'({second})':>6}")
        known = f"rank correlation {self.correlation:.2f}; " if np.isfinite(self.correlation) else ""
        lines.append(
            f"{known}the first choice of the forecast came in at place {self.place_of_first} of {len(self.pairs)}."
        )
        return "\n".join(lines)


def _finite(values: Any) -> np.ndarray:
    """Divergence counts as worse than everything."""
    array = np.asarray(values, dtype=float)
    return np.where(np.isfinite(array), array, np.finfo(float).max)
