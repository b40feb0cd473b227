"""Curves: what a run kept of its held-out points, as targets of a search, and as runs of other groups.

The excess of a point is its loss minus the entropy of the model's own prediction. Its mean is 0 wherever the model is
calibrated at that evaluation, whatever the base rate; so it is large where a group is not learned yet, and not merely
where its labels are mixed.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tiltmeter.arguments import A_RUN, checked_kind
from tiltmeter.data.grouped import stratified_split
from tiltmeter.discover.rules import CUTS, MOST_VALUES, Columns
from tiltmeter.forecast.bands import Promise, with_promise
from tiltmeter.leaders.judgement import trained
from tiltmeter.leaders.points import KeptPoints, described_held_out, diverged_at, kept_points
from tiltmeter.leaders.regrouped import regrouped as in_groups
from tiltmeter.record.trajectory import Trajectory

#: With fewer held-out points than this, half of them cannot find and the others not judge.
FEWEST_POINTS = 400
#: Parts of the training, by evaluations, in which the excess is averaged.
WINDOWS = 3
#: Probabilities stay this far from 0 and 1.
SURE = 1e-6
#: Definitions of losses that are minus the logarithm of the probability of the label.
CROSS_ENTROPIES = (
    *("logistic loss", "cross-entropy", "cross_entropy_of_probabilities"),
    *("BCEWithLogitsLoss()", "BCELoss()", "CrossEntropyLoss()", "SoftMarginLoss()"),
)
#: Labels with fewer points than this are divided together.
FEW_OF_LABEL = 5
#: Two columns are in the same order if their ranks correlate more than this.
SAME_ORDER = 0.999
#: A forecast promises by the spread of its copies from this many on.
FEWEST_COPIES = 3


@dataclass(frozen=True, eq=False)
class LearningCurves:
    """The losses of all held-out points of a run at all evaluations, and the labels, as far as they are known.

    `labels` are truth values where there are two. `excess` is None where the entropy of predictions is not known.
    """

    run: Trajectory
    kept: KeptPoints
    labels: np.ndarray | None
    excess: np.ndarray | None

    @property
    def loss(self) -> np.ndarray:
        """(seeds, evaluations, points)"""
        values = self.kept.named(["loss"])[0].values
        return values if values.ndim == 3 else values[None]

    @property
    def points(self) -> int:
        return int(self.loss.shape[-1])

    @property
    def decisions(self) -> np.ndarray | None:
        """Which points the last model decides positive, of a single run; None where that is not kept."""
        rates = self.kept.named(["positive_rate"])
        if not rates or rates[0].values.ndim == 3:
            return None
        return np.asarray(rates[0].values[-1])

    @property
    def whole_table(self) -> tuple[int, np.ndarray] | None:
        """How many rows the table has that the points were read from, and the row of every point; None: not known."""
        reading, rows = described_held_out(self.run).get("reading"), self.run.points.get("row")
        if not isinstance(reading, Mapping) or rows is None:
            return None
        values = rows.isel(time=0).transpose("point", ...).values.reshape(self.points, -1)
        same = (values == values[:, :1]).all()
        return (int(reading["rows"]), values[:, 0]) if same else None

    def repeated_numbers(self, places: np.ndarray) -> dict[str, np.ndarray]:
        """Numbers of these points that no column of a table should repeat: losses, and scores of two labels."""
        last = self.loss[:, -1][:, places].mean(0)
        first = self.loss[:, len(self.kept.times) // 2][:, places].mean(0)
        numbers = {"losses": last, "losses in the middle of the training": first}
        if self.labels is not None and self.labels.dtype == bool:
            numbers["scores"] = np.where(self.labels[places], np.exp(-last), 1.0 - np.exp(-last))
        return numbers

    def end(self, places: np.ndarray) -> np.ndarray:
        """The loss of these points at the last evaluation, mean over seeds: (points, 1)."""
        return np.asarray(self.loss[:, -1][:, places].mean(0, dtype=np.float64)[:, None])

    def later(self, places: np.ndarray) -> np.ndarray:
        """The excess, or else the loss, of these points in parts of the training: (points, parts)."""
        after = np.flatnonzero(trained(self.run, self.kept.times))
        values = self.loss if self.excess is None else self.excess
        parts = [part for part in np.array_split(after, WINDOWS) if len(part)]
        return np.stack([values[:, part][..., places].mean((0, 1), dtype=np.float64) for part in parts], axis=1)


def learning_curves(run: Trajectory) -> LearningCurves:
    """What the run kept, or a sentence about why no groups can be found in it."""
    checked_kind("run", run, Trajectory, A_RUN)
    if (ended := diverged_at(run)) is not None:
        raise ValueError(f"`run` should have trained to its end. Found one that diverged at {run.clock} {ended:.4g}.")
    facts = described_held_out(run)
    if facts.get("weighted"):
        raise ValueError("`run` should have held-out points that count alike. Found weighted points.")
    kept = kept_points(run) if "loss" in run.points else None
    if kept is None:
        held = set(run.points.sizes("loss")) - {"time", "point", "seed"} if "loss" in run.points else set()
        if held:
            raise ValueError(f"`run` should be one run. Found a grid over {', '.join(sorted(held))}: select one point.")
        raise ValueError(
            "`run` should have kept the loss of every held-out point, as with Watch(points=True). Found no kept points."
        )
    points = int(kept.curves[0].values.shape[-1])
    if points < FEWEST_POINTS:
        raise ValueError(
            f"`run` should have at least {FEWEST_POINTS} held-out points, since half find the groups and the others "
            f"judge them. Found {points}."
        )
    _check_forecast(run, kept)
    first = run.points["loss"]
    labels = next((first.coords[name].values for name in ("positive", "label") if name in first.coords), None)
    return LearningCurves(run, kept, labels, _excess(run, kept, labels))


def definition_of(run: Trajectory) -> str:
    """What the recorded loss is."""
    return str(run.origin.settings.get("loss") or run["loss"].attrs.get("definition", ""))


def _excess(run: Trajectory, kept: KeptPoints, labels: np.ndarray | None) -> np.ndarray | None:
    """Loss minus entropy, (seeds, evaluations, points); None where the entropy is not known."""
    if definition_of(run) not in CROSS_ENTROPIES:
        return None
    loss = kept.named(["loss"])[0].values
    loss = loss if loss.ndim == 3 else loss[None]
    if "entropy" in run.points:
        array = run.points["entropy"].sel(time=kept.times)
        dims = ("seed", "time", "point") if "seed" in array.dims else ("time", "point")
        entropy = array.transpose(*dims).values
        entropy = entropy if entropy.ndim == 3 else entropy[None]
        return np.asarray(loss - entropy) if entropy.shape == loss.shape else None
    if labels is None or labels.dtype != bool:
        return None
    # With two labels, the probability p of the label says everything: L - H(p) = (1 - p)(L + log(1 - p)).
    right = np.clip(np.exp(-loss.astype(np.float64)), SURE, 1.0 - SURE)
    return np.asarray((1.0 - right) * (np.log1p(-right) - np.log(right)), dtype=np.float32)


def halves(curves: LearningCurves, judge: float, seed: int) -> np.ndarray:
    """Which points judge, a random share of every label; the others search."""
    if isinstance(judge, bool) or not isinstance(judge, (int, float)) or not 0.2 <= judge <= 0.8:
        raise ValueError(f"`judge` should be a share from 0.2 to 0.8 of the points. Found judge = {judge!r}.")
    labels = np.zeros(curves.points) if curves.labels is None else curves.labels
    _, codes = np.unique(labels, return_inverse=True)
    counts = np.bincount(codes)
    strata: dict[Hashable, np.ndarray] = {
        code: np.flatnonzero(codes == code) for code in np.flatnonzero(counts >= FEW_OF_LABEL).tolist()
    }
    rest = np.flatnonzero(counts[codes] < FEW_OF_LABEL)
    if len(rest) >= FEW_OF_LABEL:
        strata["rest"] = rest
    elif len(rest):
        largest = max(strata, key=lambda code: len(strata[code]))
        strata[largest] = np.sort(np.concatenate([strata[largest], rest]))
    return np.asarray(stratified_split(strata, {"judge": judge}, seed) == 1)


def regrouped(
    curves: LearningCurves, places: np.ndarray, codes: np.ndarray, groups: Sequence[str], rules: int = 1
) -> Trajectory:
    """The run on these points in other groups (`codes` into `groups`), with curves, points and sizes of those.

    A forecast gets its promised limits anew, for as many `rules` as are judged together.
    """
    again = in_groups(curves.run, curves.kept, places, codes, groups)
    return _promised(again, rules) if curves.run.origin.source == "forecast" else again


def _check_forecast(run: Trajectory, kept: KeptPoints) -> None:
    """A forecast should promise by the spread of its own copies: only this can be computed for other groups."""
    if run.origin.source != "forecast":
        return
    promise: Any = run.origin.settings.get("promise")
    if not isinstance(promise, Mapping) or promise.get("method") != "Rehearsal" or kept.seeds < FEWEST_COPIES:
        raise ValueError(
            f"`run` should be a training, or a forecast by at least {FEWEST_COPIES} rehearsals that kept their points. "
            f"Found a forecast by {kept.seeds} {'copy' if kept.seeds == 1 else 'copies'} that can promise nothing "
            "about other groups."
        )


def _promised(again: Trajectory, rules: int) -> Trajectory:
    """The mean over copies, with limits that hold for all rules together."""
    settings: Any = again.origin.settings
    before, steps = settings["promise"], float(settings["steps"])
    promise = Promise("spread", float(before["from"]) / steps, str(before["sentence"]))
    promise = replace(promise, level=promise.level / rules)
    copies = int(again["loss"].sizes["seed"])
    return with_promise(again, promise, int(steps), str(before["method"]), copies)


def columns_of_points(columns: Columns, curves: LearningCurves) -> tuple[dict[str, np.ndarray], bool]:
    """The columns with one row for every held-out point, and whether they were those of the table trained on."""
    rows = len(next(iter(columns.values()))) if columns else 0
    if rows == curves.points:
        return dict(columns), False
    whole = curves.whole_table
    if whole is None or rows != whole[0]:
        other = "" if whole is None else f", or the {whole[0]:,} rows of the table that they were read from"
        raise ValueError(
            f"`table` should have one row for every held-out point of the run, {curves.points:,}{other}. "
            f"Found {rows:,}."
        )
    return {name: values[whole[1]] for name, values in columns.items()}, True


def tells_label(columns: Columns, labels: np.ndarray | None) -> tuple[str, ...]:
    """The columns that say the label."""
    if labels is None:
        return ()
    return tuple(name for name, values in columns.items() if values.dtype.kind != "M" and _tells_label(values, labels))


def refuse_answers(
    columns: Columns, labels: np.ndarray | None, decisions: np.ndarray | None, curves: Mapping[str, np.ndarray]
) -> None:
    """Refuse columns that hold the label, or what the model made of the points: a group of errors is no group.

    `curves` holds numbers for every row that a column should not repeat: losses and probabilities, by what they are.
    """
    for name in tells_label(columns, labels):
        raise ValueError(
            f"`table` should hold what is known besides the label. Found the label in column {name!r}: leave it out."
        )
    for name, values in columns.items():
        if values.dtype.kind == "M":
            continue
        if decisions is not None and _same_division(values, decisions):
            raise ValueError(
                "`table` should hold what is known besides the model. Found its decisions in column "
                f"{name!r}: leave it out."
            )
        if values.dtype.kind == "O" or len(np.unique(values)) <= len(CUTS) + 1:
            continue
        ranks = _ranks(values)
        for what, numbers in curves.items():
            if np.ptp(numbers) > 0 and abs(float(np.corrcoef(ranks, _ranks(numbers))[0, 1])) > SAME_ORDER:
                raise ValueError(
                    "`table` should hold what is known besides the model. Found the order of its "
                    f"{what} in column {name!r}: leave it out."
                )


def _tells_label(values: np.ndarray, labels: np.ndarray) -> bool:
    """Whether every value has one label only, or a threshold of a number divides the labels without an error."""
    classes, answers = np.unique(labels, return_inverse=True)
    different, codes = np.unique(values.astype(str), return_inverse=True)
    if len(classes) < 2 or len(different) < 2:
        return False
    if len(different) <= max(MOST_VALUES, len(classes)):
        return len(np.unique(codes * len(classes) + answers)) == len(different)
    if values.dtype.kind != "f" or len(classes) != 2 or np.isnan(values).any():
        return False
    low, high = (values[answers == side] for side in (0, 1))
    return bool(low.max() < high.min() or high.max() < low.min())


def _same_division(values: np.ndarray, decisions: np.ndarray) -> bool:
    """Whether two values stand for two decisions, one each."""
    different, codes = np.unique(values.astype(str), return_inverse=True)
    classes, answers = np.unique(decisions, return_inverse=True)
    return len(different) == len(classes) == 2 and len(np.unique(2 * codes + answers)) == 2


def _ranks(values: np.ndarray) -> np.ndarray:
    from scipy.stats import rankdata

    return np.asarray(rankdata(np.nan_to_num(values, nan=0.0)))
