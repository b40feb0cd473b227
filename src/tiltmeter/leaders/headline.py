"""Headline: the answer to the question that was declared, and what it rests on; the same on every surface."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tiltmeter.leaders.answered import forecast_answered
from tiltmeter.leaders.difference import ALL, Difference
from tiltmeter.leaders.points import FEWEST
from tiltmeter.names import NOBODY
from tiltmeter.record.labelled import label_to_json
from tiltmeter.shown_text import NotebookText, group_name, percent

if TYPE_CHECKING:
    from tiltmeter.leaders.leaders import Leaders

#: What curves are called in sentences.
TERMS = {
    "error": "error",
    "positive_rate": "selection rate",
    "tpr": "true positive rate",
    "fpr": "false positive rate",
}
#: Curves that count decisions about people: they are answered before losses.
RATES = ("error", "positive_rate", "tpr", "fpr")
#: A gap of this many points is what a note about more points asks for, if the gap that was seen is smaller.
SMALL = 0.02
#: A difference of rates cannot be larger; a damaged file may hold anything.
NO_SHARE = 1e3
#: Words that are plural without an s.
PLURALS = ("men", "women", "people", "children")


#: An earlier lead is told if it was clear at so many evaluations in a row.
IN_A_ROW = 3


@dataclass(frozen=True)
class Headline(NotebookText):
    """The answer to the declared question, what it rests on (`licence`), and what would settle it if it is not clear.

    >>> import tiltmeter as tm
    >>> print(tm.leaders(tm.predict(*tm.theory.cases.no_crossing()), "loss").headline.claim)
    Group + has the lower loss throughout (more data).

    Args:
        claim: One sentence: both numbers, the group that is worse off first.
        licence: What the claim rests on: runs, people, how often such statements are wrong.
        curve: Curve that it is about.
        pair: The two groups that it compares, or one and `ALL` others; None: nothing was compared.
        leader: Group that is better off at the end; "": none is clear.
        gap: How far they are apart with limits, or between which limits the gap lies if it is not clear.
        since: From when on the difference is clear.
        before: What was clear earlier.
        also: What else is clear at the end.
        settle: What would settle the question where nothing is clear; or why another rate stands for the declared one.
        clear: Whether the difference at the end is clear.
        answer: Whether a forecast that was kept with the training held.
    """

    claim: str
    licence: str
    curve: str
    pair: tuple[Hashable, Hashable] | None = None
    leader: Hashable = NOBODY
    gap: str = ""
    since: str = ""
    before: str = ""
    also: str = ""
    settle: str = ""
    clear: bool = False
    answer: str = ""

    @property
    def line(self) -> str:
        """The claim, the gap, since when, and what else is clear: what every surface says first."""
        return " ".join(filter(None, (self.claim, self.gap, self.since, self.before, self.also)))

    def __str__(self) -> str:
        rest = f"{self.settle} {self.licence}".strip()
        return "\n".join(filter(None, (self.answer, self.line, rest)))

    def to_json(self) -> dict[str, Any]:
        """All parts as plain JSON."""
        pair = None if self.pair is None else [label_to_json(group) for group in self.pair]
        return {**vars(self), "pair": pair, "leader": label_to_json(self.leader)}


def headline(judged: Leaders) -> Headline:
    """The answer about the declared rate at the end; then its past, then what else is clear."""
    licence, curve = _licence(judged), judged.curve
    if judged.basis == "exact":
        return _exact(judged, curve, licence)
    chosen = chosen_difference(judged.differences_in(curve))
    if chosen is None:
        why = _reasons(judged) if judged.basis != "forecast" else ""
        why = why or " ".join(f"{note}." for note in judged.notes)
        return Headline(why or "There is nothing to compare.", licence if judged.basis == "values" else "", curve)
    clear = chosen.sign[-1] != 0
    return Headline(
        _claim(judged, chosen),
        licence,
        curve,
        chosen.pair,
        chosen.leader[-1],
        _gap(chosen),
        _since(judged, chosen),
        _before(judged, chosen),
        " ".join(filter(None, (_rank(judged, chosen), _also(judged, chosen)))),
        " ".join(filter(None, ("" if clear else _settle(judged, chosen), _not_declared(judged)))),
        bool(clear),
        forecast_answered(judged),
    )


def chosen_difference(differences: Sequence[Difference]) -> Difference | None:
    """The difference that the claim is about: of the group furthest behind among those that are clear, else of all.

    Intersections of several attributes are left to what is said beside the claim.
    """
    differences = [one for one in differences if one.judged and not _of_several(one)]
    if not differences:
        return None
    clear = [one for one in differences if one.sign[-1]]
    behind = [one for one in clear or differences if _falls_behind(one)]
    return max(behind or clear or differences, key=lambda one: abs(float(one.gap[-1])))


def _falls_behind(one: Difference) -> bool:
    """Whether a named group has the worse value at the end."""
    return one.pair[1] != ALL or (float(one.gap[-1]) > 0) == (one.better == "lower")


def _worse_first(one: Difference) -> Difference:
    """The difference turned so that the side with the worse value comes first; one group before all others."""
    if one.pair[1] == ALL:
        return one
    worse = float(one.gap[-1]) > 0 if one.better == "lower" else float(one.gap[-1]) < 0
    return one if worse or one.gap[-1] == 0 else one.reversed


def _claim(judged: Leaders, chosen: Difference) -> str:
    """Both numbers of the declared rate at the end, in the words of the task where there are any."""
    one, forecast = _worse_first(chosen), judged.basis == "forecast"
    assert one.values is not None
    first, second = amounts(one.curve, *one.values[-1])
    clear, curve = bool(one.sign[-1]), one.curve
    asked = "" if judged.question is None else judged.question.shares(curve)
    will = "will be" if forecast else "are"
    if one.pair[1] == ALL:
        group = one.pair[0]
        its = asked.format(share=first, are=will) if asked else f"{first} against {second}"
        rest = f", {second} of all others" if asked else ""
        if clear and one.leader[-1] == ALL:
            worst = judged.could_be_worst == (group,)
            how = "worst off" if worst else "worse off than all others together"
            return capital(f"{_is(group, forecast)} {how}: {its if asked else f'{term(curve)} {its}'}{rest}.")
        if clear:
            its = asked.format(share=second, are=will) if asked else f"{term(curve)} {second} against {first}"
            rest = f", {first} of {subject(group)[0]}" if asked else ""
            return capital(
                f"all others together {'will fall' if forecast else 'fall'} behind {subject(group)[0]}: {its}{rest}."
            )
        if asked:
            who = judged.question.who(curve) if judged.question is not None else ""
            among = f"of those who {who}, " if who else ""
            decision = "" if judged.question is None else judged.question.decision
            return capital(f"{among}{first} of {subject(group)[0]} {will} {decision}, {second} of all others.")
        return capital(f"{has(group, forecast)} {_article(term(curve))} of {first}, all others of {second}.")
    if asked:
        return capital(_shares_of_two(judged, one, first, second, will))
    if clear:
        return capital(f"{has(one.pair[0], forecast)} the {one.worse} {term(curve)}: {first} against {second}.")
    return capital(
        f"{has(one.pair[0], forecast)} {_article(term(curve))} of {first}, {subject(one.pair[1])[0]} of {second}."
    )


def _shares_of_two(judged: Leaders, one: Difference, first: str, second: str, will: str) -> str:
    """Of the women who repaid, 52 % are approved; of the men, 85 %."""
    question = judged.question
    assert question is not None
    (a, a_plural), (b, b_plural) = map(subject, one.pair)
    who = question.who(one.curve)
    if a_plural and b_plural:
        if who:
            return f"of the {a} who {who}, {first} {will} {question.decision}; of the {b}, {second}."
        return f"{first} of the {a} {will} {question.decision}; of the {b}, {second}."
    among = f"of those who {who}, " if who else ""
    return f"{among}{first} of {a} {will} {question.decision} and {second} of {b}."


def _is(group: Hashable, forecast: bool) -> str:
    name, plural = subject(group)
    return f"{name} {'will be' if forecast else 'are' if plural else 'is'}"


def _article(word: str) -> str:
    return f"{'an' if word[0] in 'aeiou' else 'a'} {word}"


def _gap(chosen: Difference) -> str:
    """How far both sides are apart, with limits; of one that is not clear, the limits alone."""
    one = _worse_first(chosen)
    sign = 1.0 if one.better == "lower" else -1.0
    gap, low, high = (float(part[-1]) * sign for part in (one.gap, one.lower, one.upper))
    low, high = min(low, high), max(low, high)
    if one.sign[-1] == 0:
        return f"The gap is between {in_points(one.curve, low)} and {in_points(one.curve, high, unit=True)}: not clear."
    if gap < 0:
        gap, low, high = -gap, -high, -low
    size = gap_size(one, gap)
    limits = [in_points(one.curve, low), in_points(one.curve, high)]
    if limits[0] == limits[1]:
        return f"{capital(size)} apart."
    return f"{capital(size)} apart, {limits[0]} to {limits[1]}."


def gap_size(one: Difference, gap: float) -> str:
    """The size of a gap; with one digit more where whole points disagree with the rounded shares beside it."""
    if one.curve in RATES and one.values is not None and abs(gap) <= NO_SHARE:
        first, second = (round(100 * float(value)) for value in one.values[-1])
        if abs(first - second) != round(100 * abs(gap)) and first != second:
            return f"{100 * abs(gap):.1f} points"
    return size_of(one.curve, abs(gap))


def in_points(curve: str, value: float, unit: bool = False) -> str:
    """A limit of a gap: whole points of a rate, with one digit where it is below one point."""
    value = float(value)
    if curve not in RATES or abs(value) > NO_SHARE:
        return f"{value:.2g}"
    points = f"{100 * value:.0f}" if abs(100 * value) >= 0.95 else f"{100 * value:.1f}"
    points = "0" if float(points) == 0 else points
    return f"{points} points" if unit else points


def _since(judged: Leaders, one: Difference) -> str:
    """From when on the difference of the end is clear."""
    if one.sign[-1] == 0 or len(one.times) == 1:
        return ""
    if judged.basis == "forecast":
        return _crossing_ahead(judged, one)
    start, end = one.since, float(one.times[-1])
    if start == end:
        return "Clear at the last evaluation; since when is not."
    whole = "" if judged.clock == "t" else f" of {_count(end)}"
    return f"Clear from {at(judged.clock, start)}{whole} on."


def _crossing_ahead(judged: Leaders, one: Difference) -> str:
    """From when on the group of the end will be worse off, where the forecast's gap changes its sign."""
    group, behind = one.behind, subject(one.behind)[0]
    known = (judged.promise.get("crossings") or {}).get(one.curve)
    if group == ALL or not known or one.pair[1] == ALL:
        return ""
    it = "they" if subject(group)[1] else "it"
    crossed, copies = int(known["crossed"]), int(known["copies"])
    if crossed < copies:
        become = "become" if subject(group)[1] else "becomes"
        return f"In {crossed} of {copies} rehearsals {behind} {become} worse off during the training."
    low, high = known.get("low"), known.get("high")
    if low is not None and high is not None and float(high) > 10.0 * float(low):
        return ""
    middle = at(judged.clock, _two_digits(float(known["time"])))
    span = ""
    if low is not None and high is not None:
        span = f" ({_count(_two_digits(float(low)))} to {_count(_two_digits(float(high)))} in nine of ten trainings)"
    earlier = any(stretch.leader == group and stretch.evaluations >= IN_A_ROW for stretch in one.stretches[:-1])
    if earlier:
        return f"{capital(it)} will be overtaken at about {middle}{span}."
    return f"{capital(it)} will be worse off from about {middle} on{span}; before, no difference is clear."


def _two_digits(time: float) -> float:
    return float(f"{time:.2g}")


def _before(judged: Leaders, one: Difference) -> str:
    """Who was better off before, if that was clear; where nothing is clear at the end, what was clear last."""
    stretches, clock = one.stretches, judged.clock
    earlier = [stretch for stretch in stretches[:-1] if stretch.leader != NOBODY]
    if one.sign[-1] == 0:
        if not earlier:
            return ""
        last = earlier[-1]
        behind = one.pair[1] if last.leader == one.pair[0] else one.pair[0]
        who = f"{_was(behind)} worse off" if behind != ALL else f"{_was(last.leader)} better off"
        when = _from_to(clock, last.first, last.last)
        return f"During training {who}, {when}; at the end no difference is clear."
    now = stretches[-1].leader
    enough = 1 if judged.basis == "values" else IN_A_ROW
    other = [stretch for stretch in earlier if stretch.leader != now and stretch.evaluations >= enough]
    if judged.basis == "forecast" or not other:
        return ""
    until, led = other[-1].last, other[-1].leader
    first = next(stretch.first for stretch in stretches if stretch.first > until and stretch.leader == now)
    if one.pair[1] == ALL:
        side = "better" if led == one.pair[0] else "worse"
        return f"Until {at(clock, until)} {_was(one.pair[0])} {side} off than all others together."
    return f"Until {at(clock, until)} {_was(led)} better off; they changed places {between_at(clock, until, first)}."


def _was(group: Hashable) -> str:
    name, plural = subject(group)
    return f"{name} {'were' if plural else 'was'}"


def _from_to(clock: str, first: float, last: float) -> str:
    return f"at {at(clock, first)}" if first == last else f"from {at(clock, first)} to {_count(last)}"


def _rank(judged: Leaders, one: Difference) -> str:
    """Which groups may be the worst off, where one is named that need not be it."""
    worst = judged.could_be_worst
    if one.pair[1] != ALL or one.sign[-1] == 0 or one.leader[-1] != ALL or len(worst) < 2:
        return ""
    return f"Could be worst off: {', '.join(map(group_name, worst))}."


def _also(judged: Leaders, chosen: Difference) -> str:
    """What else is clear at the end: an intersection that is further behind, else the largest difference of a rate."""
    clear = [one for one in judged.differences if one.judged and one.sign[-1] and one is not chosen]
    crossed = [one for one in clear if one.curve == chosen.curve and _of_several(one)]
    reach = min(abs(float(chosen.lower[-1])), abs(float(chosen.upper[-1]))) if chosen.sign[-1] else 0.0
    crossed = [one for one in crossed if min(abs(float(one.lower[-1])), abs(float(one.upper[-1]))) > reach]
    if crossed:
        return _other(judged, max(crossed, key=lambda one: abs(float(one.gap[-1]))))
    rest = [one for one in clear if one.curve != chosen.curve and not _of_several(one)]
    rates = [one for one in rest if one.curve in RATES] or rest
    if not rates:
        return ""
    return _other(judged, max(rates, key=lambda one: abs(float(one.gap[-1]))))


def _of_several(one: Difference) -> bool:
    """Whether a group by several attributes is compared with all others."""
    return isinstance(one.pair[0], tuple) and one.pair[1] == ALL


def _other(judged: Leaders, one: Difference) -> str:
    """A clear difference in another rate; only error, loss and the declared rate have a side."""
    one, forecast = _worse_first(one), judged.basis == "forecast"
    assert one.values is not None
    first, second = amounts(one.curve, *one.values[-1])
    a, b = (subject(group)[0] if group != ALL else "all others" for group in one.pair)
    sided = one.curve == judged.curve or one.curve not in RATES or one.curve == "error"
    if not sided:
        return f"The {term(one.curve)}s {'will differ' if forecast else 'differ'}: {first} of {a}, {second} of {b}."
    word = one.worse if (one.pair[1] != ALL or one.leader[-1] == ALL) else one.better
    which = f"a {word} {term(one.curve)} than all others together"
    which = which if one.pair[1] == ALL else f"the {word} {term(one.curve)}"
    return capital(f"{has(one.pair[0], forecast)} {which}: {first} against {second}.")


def _not_declared(judged: Leaders) -> str:
    """That the declared rate cannot be judged, and why another one takes its place."""
    wanted = judged.curves[0]
    if wanted == judged.curve:
        return ""
    return f"The {term(wanted)} cannot be judged, with fewer than {FEWEST} such points in a group."


def _settle(judged: Leaders, one: Difference) -> str:
    """How many more points or trainings would make a gap of the size that was seen clear."""
    gap, half = abs(float(one.gap[-1])), float(one.upper[-1] - one.lower[-1]) / 2.0
    size = max(gap, SMALL) if one.curve in RATES else gap
    if not np.isfinite(half) or size <= 0:
        return ""
    this = "of this size" if size == gap else f"of {size_of(one.curve, size)}"
    if judged.scope == "trainings":
        assert judged.run is not None
        trainings = judged.run[one.curve].sizes.get("seed", 1)
        more = int(np.ceil(trainings * max((half / size) ** 2 - 1.0, 0.0)))
        return f"About {more} more trainings would settle a gap {this}." if more else ""
    return more_points(one, half, size, f"settle a gap {this}")


def more_points(one: Difference, half: float, size: float, would: str) -> str:
    """How many more points of the smaller group, or of the one group, make half the width of the limits `size`."""
    factor = (half / size) ** 2
    if one.people is None or not np.isfinite(factor) or factor > 1e4:
        return ""
    place = 0 if one.pair[1] == ALL else int(np.argmin(one.people))
    more = int(np.ceil(one.people[place] * max(factor - 1.0, 0.0)))
    if more < 1:
        return ""
    more = round(more, -max(len(str(more)) - 2, 0))
    name, plural = subject(one.pair[place])
    return f"About {more:,} more {name if plural else f'points of {name}'} would {would}."


def term(curve: str) -> str:
    """What a curve is called in a sentence.

    >>> term("fpr"), term("loss"), term("training_loss")
    ('false positive rate', 'loss', 'training loss')
    """
    return TERMS.get(curve, curve.replace("_", " "))


def plural_term(curve: str) -> str:
    """What several of a curve are called: "errors", "losses"."""
    word = term(curve)
    return f"{word}es" if word.endswith("s") else f"{word}s"


def subject(group: Hashable) -> tuple[str, bool]:
    """A group as the subject of a sentence, and whether it is plural.

    >>> subject("women"), subject("b"), subject("+")
    (('women', True), ('group b', False), ('group +', False))
    """
    name = group_name(group)
    plural = len(name) > 2 and (name.split()[-1].lower() in PLURALS or (name[-1] == "s" and name[-2:] != "ss"))
    return (name, True) if plural else (f"group {name}", False)


def has(group: Hashable, forecast: bool = False) -> str:
    """The group and its verb: "women have", "group b has"; of a forecast "will have"."""
    name, plural = subject(group)
    return f"{name} {'will have' if forecast else 'have' if plural else 'has'}"


def amounts(curve: str, *values: float, apart: int | None = None) -> list[str]:
    """Values of a curve as they stand in a sentence, with as many digits as tell the first `apart` (all) apart.

    >>> amounts("error", 0.121, 0.08), amounts("error", 0.4912, 0.4938), amounts("loss", 0.123456, 0.2)
    (['12 %', '8 %'], ['49.1 %', '49.4 %'], ['0.123', '0.2'])
    """
    if curve not in RATES or max(map(abs, values)) > NO_SHARE:
        return [f"{value:.3g}" for value in values]
    if np.ptp(values[:apart]) < 1e-9:
        return [percent(value, 0) for value in values]
    for digits in (0, 1, 2):
        texts = [percent(value, digits) for value in values]
        if len(set(texts[:apart])) == len(texts[:apart]):
            return texts
    return texts


def size_of(curve: str, size: float) -> str:
    """The size of a difference: points for rates.

    >>> size_of("error", 0.163), size_of("error", 0.01), size_of("loss", 0.3)
    ('16 points', '1 point', '0.3')
    """
    if curve not in RATES or size > NO_SHARE:
        return f"{size:.2g}"
    points = f"{100 * size:.0f}" if 100 * size >= 1 else f"{100 * size:.1g}"
    return f"{points} point" if points == "1" else f"{points} points"


def capital(sentence: str) -> str:
    """The sentence with a capital at its beginning."""
    return sentence[:1].upper() + sentence[1:]


def _exact(judged: Leaders, curve: str, licence: str) -> Headline:
    """Who leads in turn, by exact theory."""
    course = judged.course(curve)
    pair = judged.groups if len(judged.groups) == 2 else None
    if not course.phases:
        claim = f"No group leads: the {term(curve)} of all groups is the same up to rounding."
        return Headline(claim, licence, curve)
    word = "lowest" if pair is None else "lower"
    if judged[curve, judged.differences[0].pair].better == "higher":
        word = "highest" if pair is None else "higher"
    turns = []
    for place, phase in enumerate(course.phases):
        because = f" ({phase.reason})" if phase.reason else ""
        name = "nobody" if phase.leader == NOBODY else subject(phase.leader)[0]
        until = f" until {judged.clock} = {phase.stop:.4g}" if place + 1 < len(course.phases) else ""
        until = " throughout" if len(course.phases) == 1 else until
        verb = f" {'have' if phase.leader != NOBODY and subject(phase.leader)[1] else 'has'} the {word} {term(curve)}"
        turns.append(f"{name}{verb if place == 0 else ''}{until}{because}")
    claim = capital(turns[0] + "".join(f", then {turn}" for turn in turns[1:]))
    since = course.equal_from
    equal = "" if since is None else f"From {judged.clock} = {since:.4g} on the gap is too small to be known."
    both = (pair[0], pair[1]) if pair else None
    return Headline(f"{claim}.", licence, curve, both, course.phases[-1].leader, before=equal)


def _licence(judged: Leaders) -> str:
    """What the claim rests on, in one line."""
    if judged.basis == "exact":
        return "Exact theory."
    if judged.basis == "values":
        return "As recorded, without errors."
    wrong = f"At most {100 * judged.level:g} of 100 such statements are wrong."
    people, among = _people(judged), ""
    if judged.one_of > 1:
        among = f"The pair should have been chosen, of {judged.one_of}, before the data were seen."
    if judged.basis == "forecast":
        sentence = str(judged.promise.get("sentence") or f"{100 * (1 - judged.level):g} % band")
        reliable = judged.promise.get("reliable_until")
        until = f"; reliable up to {at(judged.clock, float(reliable))}" if reliable is not None else ""
        return " ".join(filter(None, (f"{sentence}{until}{f'; {people}' if people else ''}.", wrong, among)))
    wider = "; from recorded standard errors, so limits are wider" if judged.basis == "standard errors" else ""
    return " ".join(filter(None, (f"{_trainings(judged)}{f'; {people}' if people else ''}{wider}.", wrong, among)))


def _trainings(judged: Leaders) -> str:
    """One run, these models, or trainings like these and how far they differ."""
    count = 1 if judged.run is None else judged.run[judged.curve].sizes.get("seed", 1)
    if count == 1:
        return "One run"
    if judged.scope == "models":
        return f"These {count} models"
    spread = _spread(judged)
    return f"{count} trainings{f', which differ by {spread}' if spread else ''}"


def _spread(judged: Leaders) -> str:
    """How far trainings differ in the gap of the claim at the end."""
    chosen = judged.chosen
    if judged.run is None or chosen is None or chosen.weights is None:
        return ""
    last = judged.run[judged.curve].isel(time=-1).transpose("seed", "group").values.astype(float)
    gaps = np.nan_to_num(last) @ chosen.weights
    range_of_gaps = float(gaps.max() - gaps.min())
    return size_of(judged.curve, range_of_gaps) if range_of_gaps > 1e-9 else ""


def _people(judged: Leaders) -> str:
    """How many points of each side were judged."""
    chosen = judged.chosen
    if chosen is None or chosen.people is None:
        return ""
    one = _worse_first(chosen)
    assert one.people is not None
    if one.pair[1] == ALL:
        noun = "people" if judged.question is not None and judged.question.decision else "points"
        return f"{sum(one.people):,} {noun} of {len(judged.groups)} groups judged"
    (a, a_plural), (b, b_plural) = map(subject, one.pair)
    if a_plural and b_plural:
        return f"{one.people[0]:,} {a} and {one.people[1]:,} {b} judged"
    return f"{one.people[0]:,} points of {a} and {one.people[1]:,} of {b} judged"


def _reasons(judged: Leaders) -> str:
    """Why nothing was judged; curves of one group with one reason in one sentence."""
    alike: dict[tuple[str, str], list[str]] = {}
    for name, why in judged.reasons.items():
        curve, _, group = name.partition(" of ")
        alike.setdefault((group, why.removeprefix("it is ")), []).append(term(curve))
    sentences = []
    for (group, why), curves in alike.items():
        several = len(curves) > 1
        names = f"{', '.join(curves[:-1])} and {curves[-1]}" if several else curves[0]
        whose = f" of {group}" if group else ""
        sentences.append(capital(f"{names}{whose} {'are' if several else 'is'} {why}."))
    return " ".join(sentences)


def at(clock: str, time: float) -> str:
    """A time in a sentence.

    >>> at("step", 2000.0), at("t", 5.643)
    ('step 2,000', 't = 5.643')
    """
    if clock == "progress":
        return f"{100 * time:.0f} % of the fall of the loss"
    return f"t = {time:.4g}" if clock == "t" else f"{clock} {_count(time)}"


def between(clock: str, low: float, high: float) -> str:
    """An interval of time in a sentence.

    >>> between("step", 80.0, 100.0), between("t", 12.6, 15.9)
    ('between steps 80 and 100', 'between t = 12.6 and 15.9')
    """
    if clock == "t":
        return f"between t = {low:.4g} and {high:.4g}"
    if clock == "progress":
        return f"between {100 * low:.0f} and {100 * high:.0f} % of the fall of the loss"
    return f"between {clock}s {_count(low)} and {_count(high)}"


def between_at(clock: str, low: float, high: float) -> str:
    """The same, or a time alone where nothing lies between the ends.

    >>> between_at("step", 7.0, 8.0), between_at("step", 80.0, 100.0)
    ('at step 8', 'between steps 80 and 100')
    """
    return f"at {at(clock, high)}" if low == high or _next(clock, low, high) else between(clock, low, high)


def _next(clock: str, low: float, high: float) -> bool:
    """Whether one time is the step after the other."""
    return clock == "step" and high - low == 1.0


def _count(time: float) -> str:
    return f"{time:,.0f}" if float(time).is_integer() else f"{time:,.4g}"
