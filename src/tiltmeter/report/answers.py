"""Answers: the fixed questions of a reviewer, each with a sentence, or with the reason why it has none."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tiltmeter.fairness.estimate import Estimate, shuffled_groups
from tiltmeter.leaders.points import held_out_facts
from tiltmeter.plot.theme import group_name
from tiltmeter.report.changes import what_would_change
from tiltmeter.report.claim import claim
from tiltmeter.report.findings import FEWEST, Findings, Row
from tiltmeter.report.headline import MANY, disagree, in_words, plain_name, values_of
from tiltmeter.report.onset import when_did_it_arise
from tiltmeter.report.wording import COUNTED, between, listed, minus, number, percent, percents, points

#: A difference below this is small, one above it large, when nothing is shown.
SMALL, LARGE = 0.02, 0.10


class Answer(NamedTuple):
    """A question and what the run says to it."""

    question: str
    text: str


def answers(found: Findings, others: tuple[Findings, ...] = ()) -> list[Answer]:
    """The questions in their order; `others` are further runs on the page."""
    return [
        Answer("Who is worse off?", who(found)),
        Answer("Could it be chance?", chance(found)),
        Answer(
            "Why do the measures disagree?" if disagree(found) else "Why?", f"{measures(found)} {reason(found)}".strip()
        ),
        Answer("What would an audit see?", audit(found)),
        Answer("When did it arise?", when_did_it_arise(found)),
        Answer("What would change it?", what_would_change(found, others)),
        Answer("What is not known?", unknown(found)),
    ]


def who(found: Findings) -> str:
    """The worse-off group by the headline, with counts or shares and the limits of the difference."""
    row = found.headline
    if not any(one.known for one in row.differences):
        return f"Not judged: {_reason(found)}."
    if found.two:
        told, gap = _told(found, (0, 1)), row.differences[0]
        if not gap.shown:
            nothing = f"No difference is shown in {plain_name(row)}."
            return f"{nothing} {told}: {undecided(row, gap)}. {_elsewhere(found)}".strip()
        worse = row.worse_off(found.groups)
        name = group_name(worse[0]) if worse else f"{group_name(row.higher(found.groups)[0])} has more"
        return f"{name}. {told}: {apart(row, gap)}."
    worse, better = row.worse_off(found.groups), row.better_off(found.groups)
    parts = []
    for word, groups in (("Worse off than the rest", worse), ("Better off", better)):
        if groups:
            each = [f"{group_name(g)} ({_against(row, row.differences[found.groups.index(g)])})" for g in groups]
            parts.append(f"{word} by {in_words(row, '')}: {listed(each, 6)}.")
    quiet = [found.names[i] for i, one in enumerate(row.differences) if one.known and not one.shown]
    if quiet:
        whom = "any group" if len(quiet) == len(found.groups) else listed(quiet, 6)
        by = f" in {plain_name(row)}" if len(quiet) == len(found.groups) else ""
        parts.append(f"No difference from the rest is shown for {whom}{by}.")
    if not worse and not better:
        parts.append(_elsewhere(found))
    parts.append(_could_be_worst(found))
    return " ".join(part for part in parts if part)


def _elsewhere(found: Findings) -> str:
    """Who is worse off by measures other than the headline's."""
    rest = [row for row in found.rows.values() if row is not found.headline]
    return _each(found, rest) if any(row.worse_off(found.groups) for row in rest) else ""


def _could_be_worst(found: Findings) -> str:
    """Whoever is not shown to be better off than the mean may be the worst."""
    names = [group_name(group) for group in found.judged.could_be_worst(found.headline.term.curve)]
    worse = found.headline.worse_off(found.groups)
    if not names or found.headline.term.better == "neither" or (worse and len(found.groups) < MANY):
        return ""
    return f"Could be the worst off: {'any of them' if len(names) == len(found.groups) else listed(names, 6)}."


def apart(row: Row, gap: Estimate) -> str:
    """The size of a difference that is shown, and its limits without a sign."""
    size = gap.times(1.0 if gap.value >= 0 else -1.0)
    if row.term.share:
        return f"{points(size.value)} apart ({between(size)})"
    limits = "" if size.low == size.high else f" ({number(size.low)} to {number(size.high)})"
    return f"{number(size.value)} apart{limits}"


def undecided(row: Row, gap: Estimate) -> str:
    """A difference that is not shown always has its limits: narrow, wide, or neither."""
    largest = max(abs(gap.low), abs(gap.high))
    if not row.term.share:
        return f"the difference lies between {number(gap.low)} and {number(gap.high)}"
    limits = f"the difference lies between {between(gap).replace(' to ', ' and ')} points"
    if largest <= SMALL:
        return f"{limits}; more than {points(largest)} are ruled out"
    return f"{limits}, which is too wide to tell" if largest >= LARGE else limits


def _against(row: Row, one: Estimate) -> str:
    sign = "+" if one.value > 0 else ""
    return f"{sign}{points(one.value)}, {between(one)}" if row.term.share else f"{sign}{number(one.value)}"


def _told(found: Findings, places: tuple[int, int]) -> str:
    """Counts where a group has few points, else shares."""
    row, curve = found.headline, found.headline.term.curve
    names = [found.names[place] for place in places]
    counts = [row.counts[place] for place in places]
    nouns = {"tpr": "positives", "fpr": "negatives"}
    known = [count for count in counts if count is not None]
    if curve in nouns and len(known) == 2 and known[0][0] >= 0 and min(count[1] for count in known) < COUNTED:
        verb = "finds" if curve == "tpr" else "wrongly says yes to"
        (a, of_a), (b, of_b) = known
        return f"Of {of_a:,} {nouns[curve]} in {names[0]} the model {verb} {a:,}, of {of_b:,} in {names[1]} {b:,}"
    values = values_of(row, places)
    if curve in nouns:
        verb = "finds" if curve == "tpr" else "wrongly says yes to"
        sizes = [f"{count[1]:,} {nouns[curve]}" if count else nouns[curve] for count in counts]
        over = f" over {found.seeds} starts" if found.seeds > 1 else ""
        return (
            f"The model {verb} {values[0]} of the {sizes[0]} in {names[0]} and {values[1]} of the {sizes[1]} in "
            f"{names[1]}{over}"
        )
    return f"{row.term.title}: {values[0]} for {names[0]}, {values[1]} for {names[1]}"


def chance(found: Findings) -> str:
    """The error rate of the limits, random groups, and other starts."""
    if found.scope == "exact":
        return "These values are exact, or come without a known error: chance has no part in them that could be judged."
    if not found.judged.differences:
        return f"Not judged: {_reason(found)}."
    shown = any(one.shown for one in found.headline.differences)
    parts = ["Hardly." if shown else "That is not ruled out."]
    if found.two:
        level = shuffled_groups(found.run, found.headline.term.curve)
        if level is not None:
            of = {"tpr": " among the positives", "fpr": " among the negatives"}.get(found.headline.term.curve, "")
            size = points(level) if found.headline.term.share else number(level)
            parts.append(f"With groups shuffled{of}, 95 of 100 differences at this evaluation stay below {size}.")
            if not shown and abs(found.headline.differences[0].value) > level:
                parts.append(
                    "This one is larger, but among so many evaluations and measures one of that size is not rare."
                )
    parts.append(f"The limits hold for {found.judged.family}; {_wrong(found)}.")
    if found.judged.scope == "run":
        parts.append("One run only: another start may differ.")
    else:
        parts.append(_starts(found))
    return " ".join(part for part in parts if part)


def _wrong(found: Findings) -> str:
    return f"any of them is wrong in at most {100 * found.judged.level:g}% of such runs"


def _starts(found: Findings) -> str:
    """How many starts agree with the mean, and their range."""
    curve = found.run[found.headline.term.curve]
    if not found.two or "seed" not in curve.dims:
        return ""
    last = curve.isel(time=-1).transpose("group", "seed").values.astype(float)
    gaps = last[0] - last[1]
    gaps = gaps[np.isfinite(gaps)]
    same = int((np.sign(gaps) == np.sign(gaps.mean())).sum())
    size = np.sort(gaps * np.sign(gaps.mean()))
    row = found.headline
    span = (
        f"{minus(100 * size[0], 0)} to {minus(100 * size[-1], 0)} points"
        if row.term.share
        else f"{number(size[0])} to {number(size[-1])}"
    )
    few = " With fewer than five starts the limits are about these runs only." if found.judged.scope == "runs" else ""
    return f"The sign is the same in {same} of {len(gaps)} starts, the difference {span}.{few}"


def measures(found: Findings) -> str:
    """What error says, and what the base rates have to do with it."""
    if "error" not in found.rows or found.headline.term.curve == "error":
        rest = [row for curve, row in found.rows.items() if curve != found.headline.term.curve]
        if not rest or not found.two:
            return "There is no other measure to compare with." if not rest else _each(found, rest)
        return _each(found, rest)
    if not found.two or found.evaluation is None:
        # The paragraph above the answers says already who is worse off by which measure.
        return _base_rates(found) or _each(found, [row for row in found.rows.values() if row is not found.headline])
    row, rates = found.rows["error"], found.evaluation.rates()
    low, high = (0, 1) if row.values[0].value <= row.values[1].value else (1, 0)
    errors = percents(row.values[low].value, row.values[high].value)
    shown = "lower" if row.differences[0].shown else "lower, though no difference is shown"
    base = percents(float(rates.base_rate[low]), float(rates.base_rate[high]))
    constant = percents(float(rates.constant_error[low]), float(rates.constant_error[high]))
    fewer = "fewer" if rates.base_rate[low] < rates.base_rate[high] else "more"
    a, b = found.names[low], found.names[high]
    text = [f"The error of {a} is {shown}, {errors[0]} against {errors[1]}; {fewer} of {a} are positive: {base[0]} "
            f"against {base[1]}. The best constant answer would err for {constant[0]} and {constant[1]}."]  # fmt: skip
    removed = found.extra["errors_removed"]
    text.append(f"Of such errors the model removes {_removed(removed, low, a)}, {_removed(removed, high, b)}.")
    return " ".join(text)


def reason(found: Findings) -> str:
    """What base rates make of the difference in error, and whether ranking or the threshold makes the headline's."""
    parts = []
    if found.splits and found.splits[0].gap.known and found.splits[0].gap.shown:
        told = claim(found.splits[0])
        if not found.two:
            a, b = map(group_name, found.splits[0].pair)
            told = f"{told[:-1]} between {a} and {b}, which lie furthest apart."
        parts.append(told)
    if not found.two:
        parts.append(_yeses(found))
    row, ranking = found.headline, found.extra.get("auc")
    if found.two and row.differences[0].shown and ranking is not None and ranking.differences[0].known:
        worse, better = row.worse_off(found.groups), ranking.better_off(found.groups)
        areas = " and ".join(f"{one.value:.2f}" for one in ranking.values)
        if worse and (not better or better == worse):
            how = "better" if better else "no worse, as far as is shown"
            cut = "one threshold for all cuts the groups at different places"
            parts.append(f"The scores rank {group_name(worse[0])} {how} (AUC {areas}): {cut}.")
        elif worse:
            parts.append(f"The scores also rank {group_name(worse[0])} worse (AUC {areas}).")
    elif not parts and found.evaluation is None and found.scope != "exact":
        parts.append("The reason is not known from this run.")
    return " ".join(part for part in parts if part)


def _yeses(found: Findings) -> str:
    """Whether base rates account for a difference in yeses that is shown."""
    impact, row = found.impact, found.rows.get("positive_rate")
    if impact is None or row is None or not any(one.shown for one in row.differences):
        return ""
    ratio, right = impact.ratio, impact.in_data
    if not ratio.known or not np.isfinite(right):
        return ""
    numbers = f"the yeses of {group_name(impact.lowest)} and {group_name(impact.highest)} have the ratio"
    told = f"{numbers} {ratio.value:.2f}, their base rates {right:.2f}"
    if ratio.low <= right <= ratio.high:
        return f"Base rates account for the difference in yeses, as far as is shown: {told}."
    wider = "more" if ratio.high < right else "less"
    return f"Yeses differ {wider} than base rates do: {told}."


def _base_rates(found: Findings) -> str:
    """The share of positives in the groups that are worse off beside that of all others; without any, the range."""
    if found.evaluation is None:
        return ""
    counts, rates = found.evaluation.counts, found.evaluation.rates().base_rate
    worse = [found.groups.index(group) for group in found.headline.worse_off(found.groups)]
    if not worse or len(worse) > 3 or len(worse) == len(found.groups):
        known = [place for place in range(len(found.groups)) if counts[place].sum() >= FEWEST]
        if len(known) < 2:
            return ""
        low, high = min(known, key=lambda place: rates[place]), max(known, key=lambda place: rates[place])
        least, most = percents(float(rates[low]), float(rates[high]))
        return f"Base rates differ: from {least} positives in {found.names[low]} to {most} in {found.names[high]}."
    others = np.delete(counts, worse, axis=0).sum(0)
    shares = percents(*(float(rates[place]) for place in worse), float(others[1] / others.sum()))
    told = listed([f"{share} of {found.names[place]}" for share, place in zip(shares, worse, strict=False)])
    return f"Base rates: {told} and {shares[-1]} of the others are positive."


def _removed(row: Row, place: int, name: str) -> str:
    one = row.values[place]
    if not one.known:
        return f"for {name} too few to say"
    limits = between(one, 0)
    if one.high <= 0 or one.low <= 0 <= one.high:
        return (
            f"for {name} none that is shown ({limits})" if one.high > 0 else f"for {name} none: it adds some ({limits})"
        )
    return f"{percent(one.value, 0)} for {name} ({limits})"


def _each(found: Findings, rows: list[Row]) -> str:
    parts = []
    for row in rows:
        worse = [group_name(group) for group in row.worse_off(found.groups)]
        if worse:
            parts.append(f"by {in_words(row, '')}: {listed(worse, 4)}")
    return f"Worse off {'; '.join(parts)}." if parts else "No difference is shown in any other measure."


def audit(found: Findings) -> str:
    """The impact ratio beside that of the data, and calibration."""
    impact, row = found.impact, found.rows.get("positive_rate")
    if impact is None or row is None:
        return "No decisions between two labels were kept, so there is no impact ratio."
    low, high = (found.groups.index(group) for group in (impact.lowest, impact.highest))
    said = percents(row.values[low].value, row.values[high].value)
    text = f"Yes for {said[0]} of {found.names[low]} and {said[1]} of {found.names[high]}"
    if not impact.ratio.known:
        return f"{text}: too few for an impact ratio."
    ratio = impact.ratio
    fifths = (
        "below four fifths"
        if ratio.high < 0.8
        else "not below four fifths"
        if ratio.low >= 0.8
        else "around four fifths"
    )
    text += f": impact ratio {ratio.value:.2f} ({ratio.low:.2f} to {ratio.high:.2f}), {fifths}."
    if np.isfinite(impact.in_data):
        text += f" A model that is always right would have {impact.in_data:.2f}."
    if impact.unrated:
        text += f" Not rated, under 2% of the points: {listed([group_name(group) for group in impact.unrated], 6)}."
    return text


def unknown(found: Findings) -> str:
    """What these data cannot tell."""
    parts = []
    few = [found.names[i] for i in range(len(found.groups)) if not found.enough(i)]
    if few:
        noun = {"tpr": "positives", "fpr": "negatives"}.get(found.headline.term.curve, "points")
        parts.append(f"What happens to {listed(few, 6)}: fewer than 10 {noun} held out in each.")
    if found.scope == "exact":
        parts.append("How a real network would depart from these values.")
        return " ".join(parts)
    if found.seeds == 1:
        parts.append("What another start would give: this is one run.")
    if found.calibration is None:
        parts.append("Calibration: the run kept no probabilities.")
    if found.evaluation is None and held_out_facts(found.run):
        parts.append("What base rates contribute: the run kept no decisions between two labels.")
    parts.append("Noise in labels, other places and times, and whether these points chose when to stop.")
    return " ".join(parts)


def _reason(found: Findings) -> str:
    why = [*found.judged.reasons.values(), *found.judged.notes]
    return why[0] if why else "no errors are known"
