"""Advice: interventions ranked by what they do to the delivered model, and how well the ranks agree with training."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np

from tiltmeter import criteria
from tiltmeter.advice.paired_changes import PairedChange, worst_at_end
from tiltmeter.criteria import Criterion
from tiltmeter.interventions.intervention import Intervention
from tiltmeter.interventions.kinds import ModelIntervention
from tiltmeter.interventions.stored import intervention_from_json
from tiltmeter.leaders.headline import RATES, amounts, size_of, term
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
    """Interventions by the worst group of the model that each would deliver; plain first, unless another is clear.

    `curve` is the one that is judged. `card` is the scorecard of the forecasts (who pays, what it costs), of rates in
    the error; `runs` the forecasts themselves, `interventions`
    what was tried, `unranked` what was not, with the reason. `changes` are the paired differences to plain. `rehearsed`
    says whether the network itself was trained; narrow copies only say what to try first.
    """

    card: Scorecard
    runs: Mapping[str, Trajectory]
    interventions: Mapping[str, tuple[Intervention, ...]]
    unranked: Mapping[str, str]
    method: str
    rehearsed: bool
    changes: Mapping[str, PairedChange] = field(default_factory=dict)
    criterion: Criterion | None = None
    curve: str = "loss"

    def value(self, run: Trajectory) -> float:
        """The number that ranks: lower is better; infinity where a run diverged."""
        if self.criterion is None:
            return worst_at_end(run, self.curve)
        if run.diverged is not None and not bool(run.diverged.isnull().all()):
            return float("inf")
        return float(np.asarray(self.criterion.of(run)).mean())

    @property
    def better(self) -> tuple[str, ...]:
        """Interventions that clearly serve the worst group better than plain training, the best first.

        A rate can be bought with errors, as by deciding positive more often: of rates, what no group pays for comes
        first.
        """
        if not self.rehearsed:
            return ()
        clear = [name for name, change in self.changes.items() if change.better]
        bought = {row.name for row in self.card.rows if row.paid and self.curve != self.card.curve}
        return tuple(sorted(clear, key=lambda name: (name in bought, self.value(self.runs[name]))))

    @property
    def ranked(self) -> tuple[Score, ...]:
        """All rows: what is clearly better than plain, then plain, then the rest; what diverges comes last.

        Narrow copies are ranked as they are, plain among them.
        """
        values = {row.name: self.value(self.runs[row.name]) for row in self.card.rows}
        if not self.rehearsed:
            return tuple(sorted(self.card.rows, key=lambda row: values[row.name]))
        place = {name: number for number, name in enumerate(self.better)}
        return tuple(
            sorted(
                self.card.rows,
                key=lambda row: (0 if row.name in place else 1 if row.name == PLAIN else 2, values[row.name]),
            )
        )

    @property
    def best(self) -> tuple[str, ...]:
        """Up to three: those that are clearly better, or of narrow copies those to try first."""
        if self.rehearsed:
            return self.better[:BEST]
        names = [row.name for row in self.ranked]
        return tuple(names[: names.index(PLAIN)][:BEST])

    def __str__(self) -> str:
        lines = [self.headline, f"{self.method}, judged by {self._judged}."]
        rows = [self._cells(row) for row in self.ranked]
        known = {"name": "", "worst": "worst", "change": "change (limits)", "gap": "gap", "error": "error"}
        heads = {key: head for key, head in known.items() if any(row.get(key) for row in rows)}
        widths = {key: max(len(head), *(len(row.get(key, "")) for row in rows)) for key, head in heads.items()}
        head_line = "  ".join(f"{head:<{widths[key]}}" for key, head in heads.items())
        lines.append(f"    {head_line}  pays in {term(self.card.curve)}")
        for place, row in enumerate(rows, 1):
            cells = "  ".join(f"{row.get(key, ''):<{width}}" for key, width in widths.items())
            lines.append(f"{place:>2}. {cells}  {row['pays']}".rstrip())
            if self.rehearsed and row["name"] == PLAIN and place < len(rows):
                lines.append("Not clearly better than plain:")
        if any("*" in row["name"] for row in rows):
            lines.append("* needs the group at every decision")
        lines += [f"Not tried: {name}. {reason}" for name, reason in self.unranked.items()]
        return "\n".join(lines)

    @property
    def headline(self) -> str:
        """The answer in one sentence."""
        if not self.rehearsed:
            if not self.best:
                return "Nothing to try first: no narrow copy does better with an intervention than without."
            return f"Try first: {', '.join(self.best)}. Narrow copies do not say whether it is better than plain."
        if not self.better:
            return "No intervention makes the worst group clearly better off than plain training does."
        first = self.better[0]
        alike = ", but so are all groups together" if self.changes[first].alike else ""
        return f"With {first} the worst group is clearly better off than with plain training{alike}."

    @property
    def _judged(self) -> str:
        if self.criterion is not None:
            return self.criterion.name
        return f"the worst group's {term(self.curve)} at the last evaluation"

    def _cells(self, row: Score) -> dict[str, str]:
        """One row of the table: the worst group, its change against plain, gap and error of a rate, cost, who pays."""
        run, value = self.runs[row.name], self.value(self.runs[row.name])
        laws = self.interventions.get(row.name, ())
        star = "*" if any(isinstance(one, ModelIntervention) and one.by_group for one in laws) else ""
        if not np.isfinite(value):
            return {"name": row.name + star, "worst": "diverges", "pays": ""}
        worst = f"{value:.4g}" if self.criterion is not None else amounts(self.curve, abs(value))[0]
        paid = ", ".join(group_name(one.group) for one in row.paid)
        cells = {"name": row.name + star, "worst": worst, "pays": paid or ("" if row.name == PLAIN else "nobody")}
        cells["pays"] += "; levels down" if row.levels_down else ""
        if np.isfinite(row.cost) and row.cost > 1:
            cells["pays"] += f"; takes {row.cost:.3g} trainings"
        if (error := _error_of_all(run)) is not None and self.curve != self.card.curve:
            cells["gap"] = size_of(self.curve, float(np.ptp(run[self.curve].isel(time=-1).values))).split()[0]
            cells["error"] = amounts("error", error)[0]
        if (change := self.changes.get(row.name)) is not None and row.name != PLAIN:
            cells["change"] = self._change(change, run)
            cells["pays"] += "; clearly worse" if change.low > 0 else ""
        return cells

    def _change(self, change: PairedChange, run: Trajectory) -> str:
        """As the curve itself changes, in points of a rate."""
        share = "point" in size_of(self.curve, 1.0)
        sign = (-1.0 if better_of(self.curve, run[self.curve]) == "higher" else 1.0) * (100.0 if share else 1.0)
        low, high = sorted((sign * change.low, sign * change.high))
        digits = 1 if share else 3
        return f"{sign * change.value + 0.0:+.{digits}f} ({low + 0.0:.{digits}f} to {high + 0.0:.{digits}f})"

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
        changes = {name: [change.value, change.low, change.high, change.alike] for name, change in self.changes.items()}
        return {
            "headline": self.headline,
            "method": self.method,
            "rehearsed": self.rehearsed,
            "ranked": [row.to_json() for row in self.ranked],
            "better": list(self.better),
            "best": list(self.best),
            "changes": changes,
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
            {name: PairedChange(*limits) for name, limits in stored["changes"].items()},
            criterion,
            curve,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{file} should be what Advice.save wrote. Found: {shortened(str(error))}") from None


def advice_card(runs: Mapping[str, Trajectory], curve: str) -> Scorecard:
    """The scorecard of the forecasts: of rates in the error, else in the loss where higher values are better."""
    if curve in RATES and all("error" in run for run in runs.values()):
        return scorecard(runs, "error")
    return scorecard(runs, curve if better_of(curve, runs[PLAIN][curve]) == "lower" else "loss")


def _error_of_all(run: Trajectory) -> float | None:
    """The error of all held-out points together at the last evaluation; None if no points were kept."""
    kept = kept_points(run)
    curves = () if kept is None else kept.named(["error"])
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
            # rates of which more is better have a minus where they are ranked
            lines.append(f"{name:<{width}}  {abs(ahead):8.4f} {f'({first})':>6}  {abs(real):7.4f} {f'({second})':>6}")
        known = f"rank correlation {self.correlation:.2f}; " if np.isfinite(self.correlation) else ""
        lines.append(
            f"{known}the first choice of the forecast came in at place {self.place_of_first} of {len(self.pairs)}."
        )
        return "\n".join(lines)


def _finite(values: Any) -> np.ndarray:
    """Divergence counts as worse than everything."""
    array = np.asarray(values, dtype=float)
    return np.where(np.isfinite(array), array, np.finfo(float).max)
