"""Headline: the one sentence above the page, and the paragraph below it that says who is better off by each measure."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from tiltmeter.plot.theme import group_name
from tiltmeter.report.findings import Findings, Row
from tiltmeter.report.positive_label import positive_label
from tiltmeter.report.wording import listed, number, percents, points, when

#: From so many groups on the headline counts groups instead of naming the worst and the best.
MANY = 6
#: More groups than this are counted, not named, in the paragraph.
MOST_NAMED = 4
#: How each curve is told of two groups.
_TOLD = {
    "tpr": "The model finds {} of the positives{yes} in {} and {} in {}.",
    "fpr": "The model wrongly says yes{yes} to {} of the negatives in {} and {} in {}.",
    "error": "The model errs on {} of {} and {} of {}.",
}
#: Measures in the words of someone who does not know the names of curves.
PLAIN = {
    "tpr": "positives found",
    "fpr": "wrong yeses",
    "positive_rate": "yeses",
    "error": "wrong decisions",
    "squared_error": "squared error",
}
_LESS = {"tpr": "found less often", "fpr": "wrongly said yes more often", "error": "decided wrongly more often"}


def values_of(row: Row, places: Sequence[int]) -> list[str]:
    """The values of some groups in words."""
    found = [row.values[place].value for place in places]
    return percents(*found) if row.term.share else [number(value) for value in found]


def headline(found: Findings) -> str:
    """One sentence: both groups, the worst and the best, or how many of many are worse off than the rest."""
    row, curve = found.headline, found.headline.term.curve
    if len(found.groups) >= MANY:
        return _many(found)
    quiet = any(one.known for one in row.differences) and not any(one.shown for one in row.differences)
    places = (0, 1) if found.two else found.extremes
    names = [found.names[place] for place in places]
    values = values_of(row, places)
    if quiet and not found.two:
        less = _LESS.get(curve, f"worse off by {row.term.title.lower()}")
        return f"No group is shown to be {less} than the rest ({values[0]} in {names[0]}, {values[1]} in {names[1]})."
    told = _TOLD.get(curve, f"The {row.term.title.lower()} is {{}} for {{}} and {{}} for {{}}.")
    label = positive_label(found.run)
    text = told.format(values[0], names[0], values[1], names[1], yes="" if label is None else f" ({label.name})")
    if curve == "tpr" and found.positive is None and "fpr" in found.rows:
        wrong = values_of(found.rows["fpr"], places)
        text = f"{text[:-1]}; it wrongly says yes to {wrong[0]} and {wrong[1]} of the negatives."
        if quiet and any(one.shown for one in found.rows["fpr"].differences):
            return f"{text[:-1]}. Only the latter difference is shown."
    return f"{text[:-1]}: no difference is shown." if quiet else text


def _many(found: Findings) -> str:
    row, count = found.headline, len(found.groups)
    worse = row.worse_off(found.groups)
    less = _LESS.get(row.term.curve, f"worse off by {row.term.title.lower()}")
    silent = sum(not one.known for one in row.differences)
    unknown = f"; {silent} cannot be judged" if silent else ""
    if not worse:
        return f"No group of {count} is shown to be {less} than the rest{unknown}."
    who = listed([group_name(group) for group in worse], 3)
    return f"{len(worse)} of {count} groups {'is' if len(worse) == 1 else 'are'} {less} than the rest: {who}{unknown}."


def scope_line(found: Findings) -> str:
    """What the numbers are of."""
    at = when(found.clock, found.last)
    if found.scope == "exact":
        return f"Exact values, or values without a known error, at {at}."
    evaluation = found.evaluation
    on = "" if evaluation is None else f", on {len(evaluation.codes):,} points held out from training"
    who = {
        "run": "this run at its last evaluation",
        "runs": f"the mean of {found.seeds} runs at their last evaluation",
        "recipe": f"the mean of {found.seeds} starts at their last evaluation",
    }[found.judged.scope]
    text = f"Numbers are of {who}, {at}{on}; brackets are {_level(found)} limits."
    if "tpr" in found.rows and found.headline.term.curve in ("tpr", "fpr"):
        label = positive_label(found.run)
        yes = '"Yes" is the decision for the positive label.' if label is None else label.meaning
        if label is not None and found.positive is None:
            yes = label.sentence
        text = f"{yes} To find someone is to say yes rightly. {text}"
        if found.positive is None:
            text += ' It was not declared what a yes does to a person (positive="benefit" or "burden").'
    return text


def _level(found: Findings) -> str:
    return f"{100 * (1 - found.judged.level):g}%"


def lead(found: Findings) -> str:
    """Who is better off by each measure, what "better off" means there, and why measures disagree."""
    if found.judged.notes and not found.judged.differences:
        return " ".join(f"{note}." for note in found.judged.notes)
    parts = (_guessed(found), _by_measure(found), _reason(found), calibration_sentence(found))
    return " ".join(part for part in parts if part)


def _guessed(found: Findings) -> str:
    """Which way is better rests on a label that nobody chose: to be read before anything else."""
    label = positive_label(found.run)
    if label is None or label.declared or found.positive is None or "tpr" not in found.rows:
        return ""
    return label.guess


def _by_measure(found: Findings) -> str:
    better: dict[tuple[Hashable, ...], dict[str, list[str]]] = {}
    neutral, silent, not_judged = [], [], []
    for row in found.rows.values():
        title = plain_name(row)
        shown = [place for place, one in enumerate(row.differences) if one.shown]
        if not any(one.known for one in row.differences):
            not_judged.append(title)
        elif not shown:
            told = values_of(row, (0, 1))
            values = f"{told[0]} for {found.names[0]}, {told[1]} for {found.names[1]}" if found.two else ""
            silent.append(in_words(row, values))
        elif row.term.better == "neither":
            neutral.append(_neutral(found, row, shown))
        else:
            groups = row.better_off(found.groups) if found.two else row.worse_off(found.groups)
            if groups:
                better.setdefault(groups, {}).setdefault(row.term.better, []).append(_with_values(found, row, groups))
    off = "better off" if found.two else "worse off than the rest"
    parts = [
        f"{_who(groups)} {'is' if len(groups) == 1 else 'are'} {off} "
        + "; ".join(f"by {listed(words)}, where {way} is better" for way, words in ways.items())
        + "."
        for groups, ways in better.items()
    ]
    if silent:
        parts.append(f"No difference is shown in {listed(silent)}.")
    if not_judged:
        parts.append(f"Not judged: {listed(not_judged)}.")
    return " ".join([*parts, *neutral])


def _who(groups: tuple[Hashable, ...]) -> str:
    return listed([group_name(group) for group in groups], MOST_NAMED)


def _with_values(found: Findings, row: Row, groups: tuple[Hashable, ...]) -> str:
    """A measure with the values of the groups that it is told of, as many as are named."""
    if found.two:
        return in_words(row, " against ".join(values_of(row, _places(found, groups[0]))))
    values = values_of(row, [found.groups.index(group) for group in groups[:MOST_NAMED]])
    return in_words(row, listed(values) if len(groups) <= MOST_NAMED else "")


def plain_name(row: Row) -> str:
    """What a measure is called in a sentence, without the name of its curve."""
    return PLAIN.get(row.term.curve, row.term.curve.replace("_", " "))


def in_words(row: Row, values: str) -> str:
    """A measure in plain words, with the name of its curve and its values in brackets."""
    name, curve = plain_name(row), row.term.curve.replace("_", " ")
    inside = " ".join(part for part in ("" if name == curve else curve, values) if part)
    return f"{name} ({inside})" if inside else name


def _neutral(found: Findings, row: Row, shown: list[int]) -> str:
    """A difference that is shown in a measure of which neither way is better by itself."""
    curve = row.term.curve.replace("_", " ")
    if found.two:
        more = row.higher(found.groups)[0]
        told = values_of(row, _places(found, more))
        return f"{group_name(more)} has more {in_words(row, ' against '.join(told))}."
    each = [f"{found.names[place]} ({values_of(row, [place])[0]})" for place in shown]
    return f"The {curve} differs from that of the rest for {listed(each)}."


def _places(found: Findings, first: Hashable) -> list[int]:
    place = found.groups.index(first)
    return [place, 1 - place]


def disagree(found: Findings) -> bool:
    """Whether two measures show different groups to be better off."""
    if not found.two:
        return False
    return len({group for row in found.rows.values() for group in row.better_off(found.groups)}) > 1


def _reason(found: Findings) -> str:
    rates = found.base_rates
    if rates is None or not found.two or not disagree(found):
        return ""
    few, many = (0, 1) if rates[0] <= rates[1] else (1, 0)
    shares = percents(float(rates[few]), float(rates[many]))
    facts = f"{shares[0]} of {found.names[few]} and {shares[1]} of {found.names[many]} are positive"
    split = found.splits[0]
    base, gap = split.base_rates, split.gap
    if not base.shown or base.value * gap.value <= 0:
        return f"Measures disagree, and base rates do not explain it: {facts}."
    if abs(base.value) < 0.5 * abs(gap.value):
        return f"Measures disagree: {facts}, which makes {points(abs(base.value))} of the difference in error."
    answer = "no" if max(rates) < 0.5 else "the commoner label"
    return (
        f"Measures disagree because base rates differ: {facts}, so that saying {answer} errs less for {_easier(found)}."
    )


def _easier(found: Findings) -> str:
    """The group for which a constant answer errs less."""
    assert found.evaluation is not None
    return found.names[int(np.argmin(found.evaluation.rates().constant_error))]


def calibration_sentence(found: Findings) -> str:
    """Whose probabilities are shown to be wrong."""
    judged = found.calibration
    if judged is None or not judged.groups:
        return ""
    wrong = [
        f"{group_name(one.group)} (off by {points(one.error)}, chance gives at most {points(one.limit)}, "
        f"too {'high' if one.offset > 0 else 'low'} on average)"
        for one in judged.groups
        if one.shown
    ]
    right = [group_name(one.group) for one in judged.groups if not one.shown]
    if not wrong:
        largest = max(judged.groups, key=lambda one: one.error)
        size = f"the largest error is {points(largest.error)}, where chance gives up to {points(largest.limit)}"
        return f"Calibration: no group's probabilities are shown to be wrong ({size})."
    rest = f"; not shown for {listed(right)}" if right else ""
    if len(right) > MOST_NAMED:
        rest = f"; not shown for the other {len(right)} groups"
    return f"Calibration: probabilities are shown to be wrong for {listed(wrong)}{rest}."


def kicker(found: Findings) -> list[str]:
    """What stands in small letters above the headline."""
    words = ["tiltmeter report"]
    if found.name:
        words.append(found.name)
    words.append(
        f"groups: {listed(list(found.names), 4)}" if len(found.groups) < MANY else f"{len(found.groups)} groups"
    )
    label = positive_label(found.run)
    if label is not None and "tpr" in found.rows:
        words.append(f"yes = {label.name}")
    if found.seeds > 1:
        words.append(f"{found.seeds} starts")
    elif found.run.origin.seeds:
        words.append(f"seed {found.run.origin.seeds[0]}")
    words.append(f"{found.judged.evaluations} looks up to {when(found.clock, found.last)}")
    return words
