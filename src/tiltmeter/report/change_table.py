"""Changes as a table: the run as trained, a threshold of its own for one group, and other runs on the same points."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tiltmeter.fairness.estimate import UNKNOWN, Estimate, from_draws
from tiltmeter.fairness.impact_ratio import impact_ratio
from tiltmeter.fairness.last_evaluation import LastEvaluation, last_probabilities, paired_change, same_points
from tiltmeter.interventions.stored import intervention_from_json
from tiltmeter.plot.theme import group_name
from tiltmeter.record.labelled import label_from_json
from tiltmeter.report import svg
from tiltmeter.report.changes import COMPARED, change_between, threshold_of
from tiltmeter.report.colours import colours
from tiltmeter.report.data_section import brief
from tiltmeter.report.findings import Findings
from tiltmeter.report.html import Cell, card_table
from tiltmeter.report.wording import between, listed, percents, points


@dataclass(frozen=True, eq=False)
class Change:
    """One row: decisions about the same points, what is different, where the group is used, and what it changes.

    `change` is that of the difference between the worst and the best group of the run as trained, corrected for the
    number of rows; negative: in favour of the worse off. `gap` is that difference itself, where it is known over all
    evaluations; None: from the last evaluation alone.
    """

    name: str
    what: str
    evaluation: LastEvaluation
    uses_group: str
    change: Estimate = UNKNOWN
    gap: Estimate | None = None


def comparable(found: Findings, others: tuple[Findings, ...]) -> tuple[Findings, ...]:
    """The other runs that decided about the same points as this one."""
    if found.evaluation is None or found.headline.term.curve not in COMPARED:
        return ()
    return tuple(one for one in others if one.evaluation is not None and same_points(found.evaluation, one.evaluation))


def change_rows(found: Findings, others: tuple[Findings, ...]) -> list[Change]:
    """The run, its repeats with other settings, and a threshold of its own for the worse-off group."""
    if found.evaluation is None or found.headline.term.curve not in COMPARED:
        return []
    rows = [
        Change(found.name or "As trained", "the run told above", found.evaluation, uses_group(found), gap=_gap(found))
    ]
    for one in comparable(found, others):
        assert one.evaluation is not None
        rows.append(Change(one.name, _different(found, one), one.evaluation, uses_group(one), gap=_gap(one)))
    threshold, chance = threshold_of(found), last_probabilities(found.run, found.evaluation)
    if threshold is not None and chance is not None:
        own = found.evaluation.codes == found.groups.index(threshold.group)
        decided = np.where(own, chance > threshold.threshold, found.evaluation.decided)
        name = f"A threshold of its own for {group_name(threshold.group)}"
        what = f"yes above {threshold.threshold:.2f} instead of 0.50; chosen on these points, so slightly too good"
        rows.append(Change(name, what, replace(found.evaluation, decided=decided), "at every decision"))
    level = found.judged.level / max(len(rows) - 1, 1)
    return [rows[0], *(replace(one, change=change_between(found, one.evaluation, level)) for one in rows[1:])]


def change_table(found: Findings, others: tuple[Findings, ...]) -> str:
    """One row for each change; nothing where there is only the run itself."""
    rows = change_rows(found, others)
    if len(rows) < 2:
        return ""
    term = found.headline.term
    head = ["Change", term.title, "Difference", "Error of all", "A yes is right", "Impact ratio", "Uses the group"]
    head.append(f"Against {rows[0].name if found.name else 'the run'}")
    level = found.judged.level / (len(rows) - 1)
    body = [_row(found, one, rows[0], level) for one in rows]
    place = "" if found.two else f" Differences are between {_pair(found)}, the worst and the best group of the run."
    caption = (
        f"{term.title}: {term.meaning}; {term.direction}.{place} Limits of the difference between two groups of a run "
        "hold over all its evaluations and measures; others are of the last evaluation, from the same points drawn "
        "anew for all "
        f"rows{_seeds(found)}, and those of changes hold for all rows together. Using the group in a decision, and in "
        "some places in training, may be unlawful: ask first. Only these changes were tried."
    )
    return card_table(head, body, caption)


def _gap(found: Findings) -> Estimate | None:
    """The headline's difference as the page of the run tells it, for two groups."""
    gap = found.headline.differences[0]
    return gap if found.two and gap.known else None


def _seeds(found: Findings) -> str:
    return ", and starts with them" if found.seeds >= 5 else ""


def _pair(found: Findings) -> str:
    worst, best = found.extremes
    return f"{found.names[worst]} and {found.names[best]}"


def _row(found: Findings, one: Change, base: Change, level: float) -> list[Cell]:
    curve, rates = found.headline.term.curve, one.evaluation.rates()
    places = (0, 1) if found.two else found.extremes
    values = getattr(rates, curve)
    told = percents(*(float(values[place]) for place in places))
    words = ", ".join(f"{found.names[place]} {value}" for place, value in zip(places, told, strict=True))
    now = one.gap or _difference(one.evaluation, curve, places)
    sizes = rates.count.sum(-1)
    error = float((rates.error * sizes).sum() / sizes.sum())
    right = percents(*(float(rates.ppv[place]) for place in places))
    ratio = impact_ratio(one.evaluation, found.judged.level).ratio
    impact = f"{ratio.value:.2f}" if ratio.known else ""
    return [
        Cell(one.name, (one.what,), head=True),
        Cell("", (words,), html=_dots(found, [float(values[place]) for place in places], places)),
        Cell(points(abs(now.value)), (between(_turned(now)), "" if now.shown else "no difference shown")),
        Cell(percents(error, 0.05)[0], _error_change(one, base, level)),
        Cell(" / ".join(right)),
        Cell(impact, (f"{ratio.low:.2f} to {ratio.high:.2f}",) if ratio.known else ("too few to say",)),
        Cell(one.uses_group),
        Cell("", () if one is base else (_against(found, one.change),)),
    ]


def _difference(evaluation: LastEvaluation, curve: str, places: tuple[int, int]) -> Estimate:
    a, b = places
    values, drawn = getattr(evaluation.rates(), curve), getattr(evaluation.redrawn, curve)
    return from_draws(float(values[a] - values[b]), drawn[:, a] - drawn[:, b])


def _turned(one: Estimate) -> Estimate:
    return one if one.value >= 0 else one.times(-1.0)


def _error_change(one: Change, base: Change, level: float) -> tuple[str, ...]:
    if one is base:
        return ()
    change = paired_change(base.evaluation, one.evaluation, "error", level=level)
    if not change.known:
        return ()
    word = "" if change.shown else ", no change shown"
    size = points(change.value)
    sign = "+" if change.value > 0 and not size.startswith("0 ") else ""
    return (f"{sign}{size} ({between(change)}){word}",)


def _against(found: Findings, change: Estimate) -> str:
    """Whom a change favours, and by how much."""
    if not change.known:
        return "not judged"
    if not change.shown:
        return f"no change of the difference shown ({between(change)} points)"
    worse = found.names[found.extremes[0]]
    if change.value < 0:
        return f"{between(change.times(-1.0))} points in favour of {worse}"
    return f"{between(change)} points against {worse}"


def _dots(found: Findings, values: list[float], places: tuple[int, int]) -> str:
    """The values on a line from 0 to 100 %."""
    kinds = colours(found)
    parts = [svg.line(4, 9, 136, 9, "grid")]
    parts += [
        svg.mark(4 + 132 * value, 9, f"dot {kinds[place]}", square=place % 2 == 1, size=4)
        for value, place in zip(values, places, strict=True)
        if np.isfinite(value)
    ]
    return svg.picture(140, 18, parts, "values from 0 to 100%", "", "dc")


def uses_group(found: Findings) -> str:
    """Whether training used the groups, as far as the recipe says."""
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
    """Which parts of the recipe differ from those of the run."""
    one, two = (run.run.origin.recipe for run in (found, other))
    if not isinstance(one, Mapping) or not isinstance(two, Mapping):
        return "trained otherwise"
    parts = [_part(name, two.get(name)) for name in dict.fromkeys([*one, *two]) if one.get(name) != two.get(name)]
    if not parts:
        return "the same recipe"
    return listed(parts, 3)


def _part(name: str, value: Any) -> str:
    if name == "interventions":
        return " and ".join(_law(law) for law in value) if value else "without interventions"
    if name in ("weights", "proportions") and value:
        return f"{name} " + ", ".join(f"{_label(key)}: {number:g}" for key, number in value)
    return f"{name} {'as by default' if value is None else brief(value)}"


def _law(law: Mapping[str, Any]) -> str:
    given = ", ".join(f"{name}={value:g}" for name, value in law.items() if isinstance(value, float))
    return f"{law.get('kind')}({given})"


def _label(key: Any) -> str:
    return group_name(label_from_json(key))
