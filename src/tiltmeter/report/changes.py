"""Changes: what would change the difference: other runs on the page, a threshold, another step to stop at."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tiltmeter.fairness.estimate import UNKNOWN, Estimate
from tiltmeter.fairness.last_evaluation import LastEvaluation, paired_change
from tiltmeter.fairness.thresholds import OwnThreshold, own_threshold
from tiltmeter.plot.theme import group_name
from tiltmeter.report.findings import Findings
from tiltmeter.report.headline import plain_name
from tiltmeter.report.wording import between, listed, minus, number, percents, points, when

#: Evaluations whose mean loss is within this part of the best count as trained.
WITHIN = 0.1
#: Rates of the last evaluation by which runs on the same points are compared.
COMPARED = ("tpr", "fpr", "error", "positive_rate")
#: What to run when nothing was tried.
TO_TRY = (
    "To rank interventions before training: tiltmeter advise FILE (tm.advise). To judge them after it: tiltmeter "
    "scorecard PLAIN OTHER (tm.scorecard), or give all run directories, the plain one first, to tiltmeter report."
)


class StopRange(NamedTuple):
    """The headline's difference over the evaluations near the best mean loss."""

    smallest: float
    largest: float
    at_smallest: float
    now: float


def stop_range(found: Findings) -> StopRange | None:
    """How far the largest difference between groups would move if training stopped elsewhere; None if not known."""
    loss, row = found.rows.get("loss"), found.headline
    if loss is None or loss.course is None or row.course is None:
        return None
    times = np.intersect1d(loss.course.coords["time"].values, row.course.coords["time"].values)
    losses = loss.course.sel(time=times).values.mean(1)
    enough = [place for place in range(len(found.groups)) if found.enough(place)]
    values = row.course.sel(time=times).values[:, enough]
    if len(enough) < 2:
        return None
    gaps = np.nanmax(values, axis=1) - np.nanmin(values, axis=1)
    trained = (np.arange(len(times)) > 0) & (losses < losses[0])
    near = trained & (losses <= (losses[trained].min() if trained.any() else np.inf) * (1 + WITHIN)) & np.isfinite(gaps)
    if not near.any():
        return None
    chosen = np.where(near, gaps, np.inf)
    best = int(chosen.argmin())
    return StopRange(float(gaps[best]), float(np.where(near, gaps, -np.inf).max()), float(times[best]), float(gaps[-1]))


def what_would_change(found: Findings, others: tuple[Findings, ...] = ()) -> str:
    """Other runs first, then a threshold, then stopping; and what to run where nothing was tried."""
    parts = _others(found, others)
    threshold = threshold_of(found)
    if threshold is not None:
        parts.append(threshold_sentence(threshold))
    stop = stop_sentence(found)
    if stop:
        parts.append(stop)
    if not others:
        parts.append("No other training was tried.")
    return " ".join(part for part in parts if part)


def _others(found: Findings, others: tuple[Findings, ...]) -> list[str]:
    """Runs in which the difference is shown to be smaller, then larger; those without a shown change by name only."""
    told: list[tuple[float, str]] = []
    quiet = []
    for other in others:
        change = change_of(found, other, len(others))
        if change.known and not change.shown:
            quiet.append(other.name)
        else:
            told.append((change.value if change.known else 0.0, _other(found, other, change)))
    parts = [text for _, text in sorted(told, key=lambda one: one[0])]
    if quiet:
        parts.append(f"No change of the difference is shown with {listed(quiet, 4)}.")
    return parts


def change_of(found: Findings, other: Findings, rows: int) -> Estimate:
    """The change of the headline's difference in another run, one of `rows`; unknown where they cannot be compared."""
    if other.evaluation is None:
        return UNKNOWN
    return change_between(found, other.evaluation, found.judged.level / max(rows, 1))


def change_between(found: Findings, evaluation: LastEvaluation, level: float) -> Estimate:
    """The change of the headline's difference with other decisions about the same points; negative: smaller."""
    if found.evaluation is None or found.headline.term.curve not in COMPARED:
        return UNKNOWN
    places = (0, 1) if found.two else found.extremes
    change = paired_change(found.evaluation, evaluation, found.headline.term.curve, places, level)
    values = [found.headline.values[place].value for place in places]
    return change.times(1.0 if values[0] >= values[1] else -1.0)


def _other(found: Findings, other: Findings, change: Estimate) -> str:
    curve = found.headline.term.curve
    row = other.rows.get(curve)
    if row is None or other.groups != found.groups:
        return f"With {other.name}: other groups or no {curve}."
    values = [one.value for one in row.values]
    worst, best = found.extremes
    told = percents(values[worst], values[best]) if row.term.share else [number(values[i]) for i in (worst, best)]
    text = f"With {other.name}: {told[0]} for {found.names[worst]}, {told[1]} for {found.names[best]}"
    if found.two and row.differences[0].known:
        gap = row.differences[0]
        text += ", no difference shown" if not gap.shown else ""
        text += f" ({minus(100 * gap.low, 0)} to {minus(100 * gap.high, 0)} points)" if row.term.share else ""
    if change.shown:
        size = change.times(-1.0) if change.value < 0 else change
        way = "in favour of" if change.value < 0 else "against"
        text += f"; a change of {between(size)} points {way} {found.names[worst]}"
    return f"{text}{_price(found, other)}."


def _price(found: Findings, other: Findings) -> str:
    """What all points together pay in error, where both runs decided about the same points."""
    if found.evaluation is None or other.evaluation is None:
        return ""
    change = paired_change(found.evaluation, other.evaluation, "error")
    if not change.known:
        return ""
    size = change if change.value >= 0 else change.times(-1.0)
    word = "more" if change.value >= 0 else "less"
    return f"; error of all {minus(100 * size.value, 1)} points {word} ({between(size, 1)})"


def threshold_of(found: Findings) -> OwnThreshold | None:
    """The threshold that would level the headline for the worse-off of two groups, where a difference is shown."""
    row, curve = found.headline, found.headline.term.curve
    if not found.two or curve not in ("tpr", "fpr") or not row.differences[0].shown:
        return None
    worse = row.worse_off(found.groups)[0]
    other = found.groups[1 - found.groups.index(worse)]
    return own_threshold(found.run, curve, worse, other)  # type: ignore[arg-type]


def threshold_sentence(one: OwnThreshold) -> str:
    """What a threshold of its own would do for a group, and its price."""
    verb = "would be found" if one.curve == "tpr" else "would wrongly be said yes"
    name, noun = group_name(one.group), "positives" if one.curve == "tpr" else "negatives"
    rates, right = percents(one.rate, one.before), percents(one.ppv, one.ppv_before)
    return (
        f"With a threshold of {one.threshold:.2f} instead of 0.50 for {name} alone, {rates[0]} of its {noun} {verb} "
        f"instead of {rates[1]}; a yes to {name} would be right in {right[0]} instead of {right[1]}. That uses the "
        "group in every decision."
    )


def stop_sentence(found: Findings) -> str:
    """Whether stopping at another evaluation would help."""
    found_range = stop_range(found)
    if found_range is None or found.scope == "exact":
        return ""
    told = points if found.headline.term.share else number
    low, high = told(found_range.smallest), told(found_range.largest)
    title = plain_name(found.headline)
    if found_range.smallest > 0.5 * found_range.now:
        largest = "" if found.two else "largest "
        span = f"stays at {low}" if low == high else f"lies between {low} and {high}"
        return (
            f"Stopping elsewhere is no remedy: wherever the mean loss is within {WITHIN:.0%} of the best, the "
            f"{largest}difference seen in {title} {span}."
        )
    return (
        f"Stopping at {when(found.clock, found_range.at_smallest)} would leave a difference in {title} of {low} "
        f"instead of {told(found_range.now)}, chosen on the points that judge it."
    )
