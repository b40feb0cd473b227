"""Changes: what would change the difference, at what price, and who pays: other runs, a threshold, another step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from tiltmeter.fairness.estimate import UNKNOWN, Estimate, from_draws
from tiltmeter.fairness.impact_ratio import impact_ratio
from tiltmeter.fairness.last_evaluation import LastEvaluation, last_probabilities, paired_change, same_points
from tiltmeter.fairness.thresholds import OwnThreshold, own_threshold
from tiltmeter.interventions.stored import intervention_from_json
from tiltmeter.leaders.headline import capital
from tiltmeter.plot.theme import group_name
from tiltmeter.record.labelled import label_from_json
from tiltmeter.report import svg
from tiltmeter.report.data_section import brief
from tiltmeter.report.findings import Findings
from tiltmeter.report.html import Cell, card_table
from tiltmeter.report.terms import TERMS
from tiltmeter.report.wording import between, listed, percents, points, when

#: Evaluations whose mean loss is within this part of the best count as trained.
WITHIN = 0.1
#: A rate that gets worse by more than this for a group is said beside the price in errors.
SIDE_EFFECT = 0.05
#: Rates of the last evaluation by which runs on the same points are compared.
COMPARED = ("tpr", "fpr", "error", "positive_rate")
#: What to run when nothing was tried.
TO_TRY = (
    "To rank interventions before training: tiltmeter advise FILE (tm.advise). To judge them after it: tiltmeter "
    "scorecard PLAIN OTHER (tm.scorecard), or give all run directories, the plain one first, to tiltmeter report."
)


@dataclass(frozen=True, eq=False)
class Change:
    """One row: decisions about the same points, what is different, where the group is used, and what it changes.

    `change` is that of the difference between the two groups that the page compares, corrected for the number of rows;
    negative: the difference gets smaller. `left` is that difference itself. `price` says what it costs and who pays,
    `brief` the same without limits.
    `helps_nobody` marks a change that makes no group better off in the headline's measure: it is never offered.
    """

    name: str
    what: str
    evaluation: LastEvaluation
    uses_group: str
    change: Estimate = UNKNOWN
    left: Estimate = UNKNOWN
    price: str = ""
    brief: str = ""
    helps_nobody: bool = False


def comparable(found: Findings, others: tuple[Findings, ...]) -> tuple[Findings, ...]:
    """The other runs that decided about the same points as this one."""
    if found.evaluation is None or found.headline.term.curve not in COMPARED:
        return ()
    return tuple(one for one in others if one.evaluation is not None and same_points(found.evaluation, one.evaluation))


def change_rows(found: Findings, others: tuple[Findings, ...]) -> list[Change]:
    """The run, its repeats with other settings, and a threshold of its own for the worse-off group."""
    if found.evaluation is None or found.headline.term.curve not in COMPARED:
        return []
    rows = [Change(found.name or "As trained", "this run", found.evaluation, uses_group(found))]
    for one in comparable(found, others):
        assert one.evaluation is not None
        rows.append(Change(one.name, _different(found, one), one.evaluation, uses_group(one)))
    threshold, chance = threshold_of(found), last_probabilities(found.run, found.evaluation)
    if threshold is not None and chance is not None:
        members = found.evaluation.codes == found.groups.index(threshold.group)
        decided = np.where(members, chance > threshold.threshold, found.evaluation.decided)
        name = f"a {'higher' if threshold.threshold > 0.5 else 'lower'} threshold for {group_name(threshold.group)}"
        yes = "positive" if found.question is None or not found.question.decision else found.question.decision
        score = f"a score above {threshold.threshold:.2f}, not 0.50, counts as {yes}"
        what = f"{score}; chosen on these points, so slightly too good"
        rows.append(Change(name, what, replace(found.evaluation, decided=decided), "at every decision"))
    level = found.judged.level / max(len(rows) - 1, 1)
    return [_judged(found, one, rows[0], level) for one in rows]


def offered(found: Findings, others: tuple[Findings, ...]) -> list[Change]:
    """Changes that clearly make the difference smaller and serve somebody better, the smallest difference first."""
    rows = change_rows(found, others)[1:]
    fit = [one for one in rows if one.change.shown and one.change.value < 0 and not one.helps_nobody]
    return sorted(fit, key=lambda one: abs(one.left.value))


def _judged(found: Findings, one: Change, base: Change, level: float) -> Change:
    curve, places = found.headline.term.curve, found.pair
    left = _difference(one.evaluation, curve, places)
    if one is base:
        return replace(one, left=left)
    change = paired_change(base.evaluation, one.evaluation, curve, places, level)
    before = _difference(base.evaluation, curve, places).value
    return replace(
        one,
        left=left,
        change=change.times(1.0 if before >= 0 else -1.0),
        price=price(base.evaluation, one.evaluation, level),
        brief=_with_side_effect(price(base.evaluation, one.evaluation, level, limits=False), base, one),
        helps_nobody=_helps_nobody(found, base.evaluation.rates(), one.evaluation.rates()),
    )


def _helps_nobody(found: Findings, before: Any, after: Any) -> bool:
    """Whether no group is better off than before in the headline's measure."""
    term = found.headline.term
    enough = [place for place in range(len(found.groups)) if found.enough(place)]
    change = (getattr(after, term.curve) - getattr(before, term.curve))[enough]
    gain = change > 0 if term.better == "higher" else change < 0
    return not bool(np.any(gain))


def _with_side_effect(brief: str, base: Change, one: Change) -> str:
    """The price with the rate of a group that gets most worse, where it does by so much that somebody would ask."""
    before, after = base.evaluation.rates(), one.evaluation.rates()
    effect, most = "", SIDE_EFFECT
    for curve, sign, verb in (("tpr", -1.0, "falls"), ("fpr", 1.0, "rises")):
        values = getattr(after, curve)
        worse = sign * (values - getattr(before, curve))
        if np.isfinite(worse).any() and np.nanmax(worse) > most:
            place, most = int(np.nanargmax(worse)), float(np.nanmax(worse))
            group, value = group_name(one.evaluation.groups[place]), percents(float(values[place]))[0]
            effect = f"the {TERMS[curve].name} of {group} {verb} to {value}"
    if not effect or not brief:
        return brief
    word = "but" if "wrong decisions fall" in brief else "and"
    return f"{brief.removeprefix('none, and ').removesuffix('.')}, {word} {effect}."


def price(base: LastEvaluation, other: LastEvaluation, level: float, limits: bool = True) -> str:
    """What all points pay in error, and which group pays most."""
    change = paired_change(base, other, "error", level=level)
    if not change.known:
        return ""
    by_group = other.rates().error - base.rates().error
    most = int(np.nanargmax(by_group))
    more = float(by_group[most])
    pays = f" by {points(more)} for {group_name(base.groups[most])}" if more > 0.0005 else ""
    size = change if change.value > 0 else change.times(-1.0)
    span = f" ({between(size if change.shown else change, 1)} points)" if limits else ""
    if not change.shown:
        return f"no clear change of wrong decisions overall{span}{f'; they rise{pays}' if pays else ''}."
    if change.value > 0:
        return f"wrong decisions rise by {points(size.value)} overall{span}{f' and{pays}' if pays else ''}."
    falls = f"wrong decisions fall by {points(size.value)} overall{span}"
    return f"{falls} but rise{pays}." if pays else f"{'' if limits else 'none, and '}{falls}."


def change_table(found: Findings, others: tuple[Findings, ...]) -> str:
    """One row for each change; nothing where there is only the run itself."""
    rows = change_rows(found, others)
    if len(rows) < 2:
        return ""
    term = found.headline.term
    first, second = (found.names[place] for place in found.pair)
    head = ["Change", term.title, f"Difference, {first} and {second}", "Error of all", "Precision", "Impact ratio"]
    head += ["Uses the group", "Change of the difference"]
    caption = (
        f"{term.title}: {term.meaning}. Limits{' are of the last evaluation,' if found.several else ' come'} from the "
        f"same points{_seeds(found)} drawn anew for all rows; those of changes hold for all rows together. Using the "
        "group in a decision, and in some places in training, may be unlawful: ask first. Only these changes were "
        "tried."
    )
    return card_table(head, [_row(found, one, rows[0]) for one in rows], caption)


def _seeds(found: Findings) -> str:
    return " and seeds" if found.seeds >= 5 else ""


def _row(found: Findings, one: Change, base: Change) -> list[Cell]:
    curve, rates, places = found.headline.term.curve, one.evaluation.rates(), found.pair
    values = getattr(rates, curve)
    told = percents(*(float(values[place]) for place in places))
    words = ", ".join(f"{found.names[place]} {value}" for place, value in zip(places, told, strict=True))
    sizes = rates.count.sum(-1)
    error = float((rates.error * sizes).sum() / sizes.sum())
    right = percents(*(float(rates.ppv[place]) for place in places))
    ratio = impact_ratio(one.evaluation, found.judged.level).ratio
    impact = f"{ratio.value:.2f}" if ratio.known else ""
    left = one.left if one.left.value >= 0 else one.left.times(-1.0)
    return [
        Cell(capital(one.name), (one.what,), head=True),
        Cell("", (words,), html=_dots(found, [float(values[place]) for place in places], places)),
        Cell(points(left.value), (between(left),)),
        Cell(percents(error, 0.05)[0], (capital(one.price),) if one.price else ()),
        Cell(" / ".join(right)),
        Cell(impact, (f"{ratio.low:.2f} to {ratio.high:.2f}",) if ratio.known else ("too few to say",)),
        Cell(one.uses_group),
        Cell("", () if one is base else (_effect(one),)),
    ]


def _effect(one: Change) -> str:
    """What a change does to the difference."""
    if not one.change.known:
        return "not judged"
    if not one.change.shown:
        return f"no clear change ({between(one.change)} points)"
    if one.helps_nobody and one.change.value < 0:
        return f"{between(one.change.times(-1.0))} points smaller, but no group is better off: not offered"
    if one.change.value < 0:
        return f"{between(one.change.times(-1.0))} points smaller"
    return f"{between(one.change)} points larger"


def _difference(evaluation: LastEvaluation, curve: str, places: tuple[int, int]) -> Estimate:
    a, b = places
    values, drawn = getattr(evaluation.rates(), curve), getattr(evaluation.redrawn, curve)
    return from_draws(float(values[a] - values[b]), drawn[:, a] - drawn[:, b])


def _dots(found: Findings, values: list[float], places: tuple[int, int]) -> str:
    """The values on a line from 0 to 100 %."""
    kinds = found.colours
    parts = [svg.line(4, 9, 136, 9, "grid")]
    parts += [
        svg.mark(4 + 132 * value, 9, f"dot {kinds[place]}", square=place % 2 == 1, size=4)
        for value, place in zip(values, places, strict=True)
        if np.isfinite(value)
    ]
    return svg.picture(140, 18, parts, "values from 0 to 100 %", "", "dc")


def what_would_change(found: Findings, others: tuple[Findings, ...] = ()) -> str:
    """Other runs first, then a threshold, then stopping; and what to run where nothing was tried."""
    rows = change_rows(found, others)[1:]
    parts = [_sentence(found, one) for one in sorted(rows, key=lambda one: one.change.value) if one.change.shown]
    quiet = [one.name for one in rows if one.change.known and not one.change.shown]
    if quiet:
        parts.append(f"No clear change of the difference with {listed(quiet, 4)}.")
    apart = [one.name for one in others if one not in comparable(found, others)]
    if apart and found.evaluation is not None:
        parts.append(f"Not compared, since it decided about other points: {listed(apart, 4)}.")
    parts.append(stop_sentence(found))
    if not others:
        parts.append("No other training was tried.")
    return " ".join(part for part in parts if part)


def _sentence(found: Findings, one: Change) -> str:
    before = points(abs(found.gap))
    if found.many and one.change.value > 0:  # the numbers would be those of another pair than the headline's
        return f"With {one.name} no gap gets clearly smaller."
    uses = "" if one.uses_group in ("no", "not known") else f" It uses the group {one.uses_group}."
    pair = f" between {' and '.join(found.names[place] for place in found.pair)}" if found.many else ""
    text = f"With {one.name} the gap{pair} is {points(abs(one.left.value))} instead of {before}"
    return f"{text}, but no group is better off." if one.helps_nobody else f"{text}. {capital(one.price)}{uses}"


def threshold_of(found: Findings) -> OwnThreshold | None:
    """The threshold that would level the headline for the worse-off of two groups, where a difference is clear."""
    row, curve = found.headline, found.headline.term.curve
    if not found.two or curve not in ("tpr", "fpr") or not row.clear:
        return None
    worse, other = (found.groups[place] for place in found.pair)
    return own_threshold(found.run, curve, worse, other)  # type: ignore[arg-type]


def threshold_sentence(one: OwnThreshold) -> str:
    """What a threshold of its own would do for a group, and its price."""
    name, rate = group_name(one.group), "true positive rate" if one.curve == "tpr" else "false positive rate"
    rates, right = percents(one.rate, one.before), percents(one.ppv, one.ppv_before)
    return (
        f"With a threshold of {one.threshold:.2f} instead of 0.50 for {name} alone, its {rate} would be {rates[0]} "
        f"instead of {rates[1]}, and its precision {right[0]} instead of {right[1]}. That uses the group in every "
        "decision."
    )


class Stop(NamedTuple):
    """The evaluation near the best mean loss at which the difference is smallest, and what stopping there costs.

    `errors` are the changes of the groups' errors; empty where the run has no error.
    """

    time: float
    gap: float
    now: float
    errors: tuple[float, ...]


def best_stop(found: Findings) -> Stop | None:
    """The best evaluation to stop at that makes somebody better off; None if none is known.

    An evaluation at which every group is worse off in the headline's measure than at the end is never offered.
    """
    loss, row = found.rows.get("loss"), found.headline
    if loss is None or loss.course is None or row.course is None or not row.clear or row.term.better == "neither":
        return None
    times = np.intersect1d(loss.course.coords["time"].values, row.course.coords["time"].values)
    losses = loss.course.sel(time=times).values.mean(1)
    enough = [place for place in range(len(found.groups)) if found.enough(place)]
    values = row.course.sel(time=times).values[:, enough]
    if len(enough) < 2:
        return None
    worst, best = (row.course.sel(time=times).values[:, place] for place in found.pair)
    gaps = np.abs(worst - best)
    gained = values > values[-1] if row.term.better == "higher" else values < values[-1]
    trained = (np.arange(len(times)) > 0) & (losses < losses[0])
    near = trained & (losses <= (losses[trained].min() if trained.any() else np.inf) * (1 + WITHIN))
    fit = near & gained.any(1) & np.isfinite(gaps)
    if not fit.any():
        return None
    place = int(np.where(fit, gaps, np.inf).argmin())
    error = found.rows.get("error")
    errors: tuple[float, ...] = ()
    if error is not None and error.course is not None:
        course = error.course.sel(time=[times[place], times[-1]], method="nearest").values
        errors = tuple((course[0] - course[1]).tolist())
    return Stop(float(times[place]), float(gaps[place]), float(gaps[-1]), errors)


def stop_sentence(found: Findings) -> str:
    """Whether stopping at another evaluation would help, and its price."""
    if found.scope == "exact" or not found.headline.clear or not found.several:
        return ""
    stop, title = best_stop(found), found.headline.term.name
    if stop is None or stop.gap > 0.5 * stop.now:
        return (
            f"Stopping at another {found.clock} would not help: where the model is about as good, none has half the "
            f"difference in {title}."
        )
    told = found.headline.term.size
    text = f"Stopping at {when(found.clock, stop.time)} leaves {told(stop.gap)} instead of {told(stop.now)} in {title}"
    if stop.errors:
        most = int(np.nanargmax(stop.errors))
        text += (
            f"; error rises most for {found.names[most]}, by {points(stop.errors[most])}"
            if stop.errors[most] > 0.0005
            else "; no group has more error"
        )
    return f"{text}. It was chosen on the points that judge it."


def uses_group(found: Findings) -> str:
    """Whether training used the groups, as far as the settings say."""
    recipe: Any = found.run.origin.recipe
    if not isinstance(recipe, Mapping):
        return "not known"
    by_group = {name for name in ("weights", "proportions") if recipe.get(name)}
    for stored in recipe.get("interventions") or ():
        try:
            needs = intervention_from_json(stored).needs
        except (ValueError, KeyError):
            return "not known"
        by_group |= {needs} - {"no groups"}
    if not by_group:
        return "no"
    return "on held-out points" if by_group == {"validation groups"} else "in training"


def _different(found: Findings, other: Findings) -> str:
    """Which training settings differ from those of the run."""
    one, two = (run.run.origin.recipe for run in (found, other))
    if not isinstance(one, Mapping) or not isinstance(two, Mapping):
        return "trained otherwise"
    parts = [_part(name, two.get(name)) for name in dict.fromkeys([*one, *two]) if one.get(name) != two.get(name)]
    return listed(parts, 3) if parts else "the same settings"


def _part(name: str, value: Any) -> str:
    if name == "interventions":
        return " and ".join(_intervention(one) for one in value) if value else "without interventions"
    if name in ("weights", "proportions") and value:
        return f"{name} " + ", ".join(f"{_label(key)}: {share:g}" for key, share in value)
    return f"{name} {'as by default' if value is None else brief(value)}"


def _intervention(stored: Mapping[str, Any]) -> str:
    given = ", ".join(f"{name}={value:g}" for name, value in stored.items() if isinstance(value, float))
    return f"{stored.get('kind')}({given})"


def _label(key: Any) -> str:
    return group_name(label_from_json(key))
