"""Answers: the questions of a reviewer, each with a sentence or two, or with the reason why it has none."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tiltmeter.fairness.estimate import shuffled_groups
from tiltmeter.leaders.headline import capital, subject
from tiltmeter.leaders.points import FEWEST, held_out_facts
from tiltmeter.plot.theme import group_name
from tiltmeter.report.changes import what_would_change
from tiltmeter.report.findings import Findings, Row
from tiltmeter.report.onset import when_did_it_arise
from tiltmeter.report.reasons import claim
from tiltmeter.report.wording import between, listed, number, percents, points
from tiltmeter.shown_text import minus, percent

#: More groups or pairs than this are counted, not named.
MOST_NAMED = 4


class Answer(NamedTuple):
    """A question and what the run says to it."""

    question: str
    text: str


def answers(found: Findings, others: tuple[Findings, ...] = ()) -> list[Answer]:
    """The questions in their order; `others` are further runs on the page."""
    why = "Why?" if found.headline.clear else "Do the groups differ in the data?"
    why = "Why do the measures disagree?" if disagree(found) else why
    listed_answers = [
        Answer("Who is worse off?", who(found)),
        Answer("Could it be chance?", chance(found)),
        Answer(why, reason(found)),
        Answer("What would an audit see?", audit(found)),
        Answer("When did it arise?", when_did_it_arise(found)),
        Answer("What would change it?", what_would_change(found, others)),
        Answer("What is not known?", unknown(found)),
    ]
    return [answer for answer in listed_answers if found.several or answer.question != "When did it arise?"]


def who(found: Findings) -> str:
    """Every measure in which a difference is clear, the headline's first, and those in which none is."""
    rows = [found.headline, *(row for row in found.rows.values() if row is not found.headline)]
    if not any(row.known for row in rows):
        return f"Not judged: {found.not_judged}."
    worse = [group_name(group) for group in found.headline.worse_off()]
    parts = [f"{capital(listed(worse, MOST_NAMED))}, by {found.headline.term.name}."] if worse else ["Nobody clearly."]
    parts += [_clear(row) for row in rows if row.clear]
    quiet = [f"{row.term.name} (at most {row.term.size(row.largest)})" for row in rows if row.known and not row.clear]
    if quiet:
        parts.append(f"No difference is clear in {listed(quiet)}.")
    missing = [row.term.name for row in rows if not row.known]
    if missing:
        parts.append(f"Not judged: {listed(missing)}.")
    return " ".join(parts)


def _clear(row: Row) -> str:
    """The clear differences of one measure, the largest first."""
    told = []
    for (first, second), gap in row.clear[:MOST_NAMED]:
        limits = "" if math.isclose(gap.low, gap.high) else f" ({row.term.limits(gap)})"
        told.append(f"{group_name(first)} {row.term.size(gap.value)}{limits} higher than {group_name(second)}")
    rest = len(row.clear) - len(told)
    return f"{row.term.title}: {'; '.join(told)}{f'; and {rest} more' if rest else ''}."


def disagree(found: Findings) -> bool:
    """Whether two measures show different groups to be better off."""
    return found.two and len({group for row in found.rows.values() for group in row.better_off()}) > 1


def chance(found: Findings) -> str:
    """The error rate of the limits, random groups, and other seeds."""
    if found.scope == "exact":
        return "No: these values are exact, or come without a known error."
    if not found.judged.differences:
        return f"Not judged: {found.not_judged}."
    row = found.headline
    parts = ["Hardly." if row.clear else "That is not ruled out."]
    level = shuffled_groups(found.run, row.term.curve) if found.two else None
    if level is not None:
        among = {"tpr": " among the positives", "fpr": " among the negatives"}.get(row.term.curve, "")
        last, many = (" at the last evaluation", "evaluations and measures") if found.several else ("", "measures")
        parts.append(f"With random groups{among}, 95 of 100 differences{last} stay below {row.term.size(level)}.")
        if not row.clear and abs(row.differences[0].value) > level:
            parts.append(f"This one is larger, but among so many {many} one of that size is not rare.")
    rate = f"{100 * found.judged.level:g} %"
    parts.append(f"Of such pages about groups that are alike, at most {rate} name anybody.")
    parts.append("Bars and bands of single values are 95 % limits.")
    other = "One training only: another" if found.several else "One model only: another"
    parts.append(f"{other} may differ." if found.judged.scope == "run" else _seeds(found))
    return " ".join(part for part in parts if part)


def _seeds(found: Findings) -> str:
    """How many seeds agree with the mean, and their range."""
    gaps, row = found.seed_gaps, found.headline
    if gaps is None:
        return ""
    same, sizes = int((gaps > 0).sum()), np.sort(gaps)
    span = (
        f"{minus(100 * sizes[0], 0)} to {minus(100 * sizes[-1], 0)} points"
        if row.term.share
        else f"{number(sizes[0])} to {number(sizes[-1])}"
    )
    few = " With two trainings the limits are about these models only." if found.judged.scope == "models" else ""
    return f"The sign is the same in {same} of {len(gaps)} seeds, the difference {span}.{few}"


def reason(found: Findings) -> str:
    """Base rates, what they make of the difference in error, ranking and threshold, and calibration."""
    parts = [_base_rates(found)]
    if found.splits and found.splits[0].gap.known and found.splits[0].gap.shown:
        parts.append(claim(found.splits[0], named=not found.two))
    parts += [_removed(found), _ranking(found), calibration_sentence(found)]
    told = " ".join(part for part in parts if part)
    return told or _driven_by(found) or "The reason is not known from this run."


def _driven_by(found: Findings) -> str:
    """What makes the leaders of exact theory lead, in turn."""
    turns = [phase for phase in found.judged.phases if phase.reason] if found.judged.basis == "exact" else []
    return " ".join(f"{capital(subject(one.leader)[0])} leads: {one.reason}." for one in turns)


def _base_rates(found: Findings) -> str:
    """The share of positives in the two groups that are compared."""
    rates = found.base_rates
    if rates is None:
        return ""
    first, second = found.pair
    low, high = (first, second) if rates[first] <= rates[second] else (second, first)
    least, most = percents(float(rates[low]), float(rates[high]))
    if least == most:
        return f"The groups are alike to begin with: {least} of both {_positive(found)}."
    assert found.evaluation is not None
    counts = found.evaluation.rates().count.sum(-1)
    spread = sum(float(rates[place] * (1 - rates[place]) / counts[place]) for place in (first, second))
    if abs(rates[first] - rates[second]) < 2.0 * math.sqrt(spread):
        return (
            f"The groups are alike to begin with: {least} of {found.names[low]} and {most} of {found.names[high]} "
            f"{_positive(found)}."
        )
    both = f"{least} of {found.names[low]} and {most} of {found.names[high]}"
    return f"The groups differ to begin with: {both} {_positive(found)}."


def _positive(found: Findings) -> str:
    """What the positive label says of a person, in the words of the task where it has any."""
    outcome = None if found.question is None else found.question.outcome
    return outcome if outcome is not None and outcome.split()[0].endswith(("ed", "id")) else "are positive in the data"


def _removed(found: Findings) -> str:
    """What the model gains on the best constant answer, for two groups."""
    row = found.extra.get("errors_removed")
    if row is None or not found.two:
        return ""
    told = []
    for name, one in zip(found.names, row.values, strict=True):
        if not one.known:
            told.append(f"for {name} too few points to say")
        elif one.low <= 0:
            told.append(f"for {name} no clear part ({between(one, 0)} %)")
        else:
            told.append(f"for {name} {percent(one.value, 0)} ({between(one, 0)})")
    return f"Of the errors of the best constant answer the model removes {' and '.join(told)}."


def _ranking(found: Findings) -> str:
    """Whether the scores rank a group worse, or one threshold cuts groups at different places."""
    row, ranking = found.headline, found.extra.get("auc")
    if not found.two or not row.clear or ranking is None or not ranking.known:
        return ""
    worse, better = row.worse_off(), ranking.better_off()
    areas = " and ".join(f"{one.value:.2f}" for one in ranking.values)
    if not worse:
        return ""
    name = group_name(worse[0])
    if better and better != worse:
        return f"The scores also rank {name} worse (AUC {areas})."
    how = "better" if better else "not clearly worse"
    return f"The scores rank {name} {how} (AUC {areas}): one threshold cuts the groups at different places."


def calibration_sentence(found: Findings) -> str:
    """Whose probabilities are clearly wrong."""
    judged = found.calibration
    if judged is None or not judged.groups:
        return ""
    wrong = [
        f"{group_name(one.group)} (off by {points(one.error)}, chance gives at most {points(one.limit)}, "
        f"too {'high' if one.offset > 0 else 'low'} on average)"
        for one in judged.groups
        if one.shown
    ]
    if not wrong:
        largest = max(judged.groups, key=lambda one: one.error)
        size = f"the largest error is {points(largest.error)}, where chance gives up to {points(largest.limit)}"
        return f"Calibration: no group's probabilities are clearly wrong ({size})."
    return f"Calibration: probabilities are clearly wrong for {listed(wrong, MOST_NAMED)}."


def audit(found: Findings) -> str:
    """The impact ratio beside that of the data."""
    impact, row = found.impact, found.rows.get("positive_rate")
    if impact is None or row is None:
        return "No decisions between two labels were kept, so there is no impact ratio."
    low, high = (found.groups.index(group) for group in (impact.lowest, impact.highest))
    rates = percents(row.values[low].value, row.values[high].value)
    text = f"The selection rate is {rates[0]} for {found.names[low]} and {rates[1]} for {found.names[high]}"
    ratio = impact.ratio
    if not ratio.known:
        return f"{text}: too few for an impact ratio."
    text += f"; their ratio, the impact ratio, is {ratio.value:.2f} ({ratio.low:.2f} to {ratio.high:.2f})"
    met = "not met" if ratio.value < 0.8 else "met"
    sure = f"clearly {met}" if ratio.high < 0.8 or ratio.low >= 0.8 else f"{met}, but not clearly"
    text += f". The rule of four fifths asks for 0.80: {sure}."
    if np.isfinite(impact.in_data):
        text += f" A model that is always right would have {impact.in_data:.2f}."
    if impact.unrated:
        text += f" Not rated, under 2 % of the points: {listed([group_name(group) for group in impact.unrated], 6)}."
    return text


def unknown(found: Findings) -> str:
    """What these data cannot tell."""
    parts = []
    few = [found.names[i] for i in range(len(found.groups)) if not found.enough(i)]
    if few:
        noun = {"tpr": "positives", "fpr": "negatives"}.get(found.headline.term.curve, "points")
        parts.append(f"What happens to {listed(few, 6)}: fewer than {FEWEST} {noun} held out in each.")
    if found.scope == "exact":
        parts.append("How a real network would depart from these values.")
        return " ".join(parts)
    if found.seeds == 1:
        parts.append(
            f"What another {'training would give: only one was made' if found.several else 'model would give'}."
        )
    if found.calibration is None:
        parts.append("Calibration: the run kept no probabilities.")
    if found.evaluation is None and held_out_facts(found.run):
        parts.append("What base rates contribute: the run kept no decisions between two labels.")
    parts.append("Noise in labels, other places and times, and whether these points chose when to stop.")
    return " ".join(parts)
