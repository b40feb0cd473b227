"""Headline: the answer in one sentence, and the line that says what it rests on; the same on every surface."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tiltmeter.leaders.difference import ALL, Difference
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
#: Words that are plural without an s.
PLURALS = ("men", "women", "people", "children")


@dataclass(frozen=True)
class Headline(NotebookText):
    """The claim, what it rests on (`licence`), and what would settle it where nothing is clear.

    >>> import tiltmeter as tm
    >>> print(tm.leaders(tm.predict(*tm.theory.cases.no_crossing()), "loss").headline.claim)
    Group + has the lower loss throughout (more data).

    Args:
        claim: One sentence: who is better off, by how much, since when.
        licence: What the claim rests on: seeds, evaluations, error rate.
        curve: Curve that it is about.
        pair: The two groups that it compares; None: no difference is clear, or it is about more than two.
        leader: Group that is better off at the end; "": none is clear.
        settle: What would settle it where nothing is clear; or that the rate that was asked about is not clear.
        before: What was clear earlier.
        alone: Of groups by several attributes, that one attribute alone differs at least as much.
        brief: The claim without the time.
    """

    claim: str
    licence: str
    curve: str
    pair: tuple[Hashable, Hashable] | None = None
    leader: Hashable = NOBODY
    settle: str = ""
    before: str = ""
    brief: str = ""
    alone: str = ""

    @property
    def line(self) -> str:
        """The first line on every surface: the claim, and what was before."""
        return " ".join(filter(None, (self.claim, self.before, self.alone)))

    def __str__(self) -> str:
        rest = f"{self.licence} {self.settle}".strip()
        return f"{self.line}\n{rest}" if rest else self.line

    def to_json(self) -> dict[str, Any]:
        """All but `brief`."""
        plain = {name: value for name, value in vars(self).items() if name != "brief"}
        pair = None if self.pair is None else [label_to_json(group) for group in self.pair]
        return {**plain, "pair": pair, "leader": label_to_json(self.leader)}


def headline(judged: Leaders) -> Headline:
    """The largest difference that is clear at the end, in the decisions of the task before losses."""
    licence, curve = _licence(judged), headline_curve(judged)
    if judged.basis == "exact":
        return _exact(judged, curve, licence)
    differences = [one for one in judged.differences if one.judged]
    if not differences:
        why = " ".join(f"{note}." for note in judged.notes) or _reasons(judged)
        return Headline(why or "There is nothing to compare.", licence if judged.basis == "values" else "", curve)
    clear = [one for one in differences if one.sign[-1] != 0]
    if not clear:
        return _nothing_clear(judged, curve, differences, licence)
    chosen = _largest(judged, clear)
    same = [one for one in clear if one.curve == chosen.curve]
    two = len(judged.groups) == 2
    unclear, settle = _asked_but_not_clear(judged, clear)
    brief = capital(f"{unclear}{_two(judged, chosen) if two else _several(judged, chosen, same)}")
    claim = f"{brief}{_time(judged, chosen)}."
    before = _before(chosen, judged.clock) if two else ""
    leader = chosen.leader[-1]
    alone = _by_one_attribute(judged, chosen)
    return Headline(claim, licence, chosen.curve, chosen.pair, leader, settle, before, f"{brief}.", alone)


def _by_one_attribute(judged: Leaders, chosen: Difference) -> str:
    """Of groups by several attributes, the clear difference by one of them alone that is even larger."""
    from tiltmeter.leaders.levels import by_one_attribute

    by_level = by_one_attribute(judged, chosen.curve)
    if by_level is None or abs(by_level.gap) <= abs(chosen.gap[-1]):
        return ""
    names = " and ".join(map(group_name, by_level.pair))
    values = " against ".join(amounts(chosen.curve, *by_level.values))
    return f"By {by_level.attribute or 'one attribute'} alone, {names} are even further apart: {values}."


def _asked_but_not_clear(judged: Leaders, clear: Sequence[Difference]) -> tuple[str, str]:
    """That the rate of the task's question is not clear, as the beginning of the claim, and how large it can be.

    Both are empty if it is clear, or nobody asked.
    """
    curve = "" if judged.question is None else judged.question.asked
    differences = [one for one in judged.differences if one.judged and one.curve == curve]
    if not differences or any(one.curve == curve for one in clear):
        return "", ""
    largest = max(max(abs(one.lower[-1]), abs(one.upper[-1])) for one in differences)
    unclear = f"The difference in {term(curve)} is not clear, but "
    return unclear, f"The difference in {term(curve)} is at most {size_of(curve, largest)}."


def _time(judged: Leaders, one: Difference) -> str:
    """Since when the difference is clear, as the end of a claim; nothing for one table without steps."""
    trajectory = judged.trajectory
    alone = len(one.times) == 1 and not one.times[0]
    if alone and trajectory is not None and trajectory.origin.source == "predictions":
        return ""
    comma = "," if one.curve in RATES or len(judged.groups) > 2 else ""
    return f"{comma} {_since(one, judged.clock)}"


def headline_curve(judged: Leaders) -> str:
    """The curve that the headline is about: of the largest clear difference, else the first that was asked for."""
    if judged.basis == "exact":
        return judged.asked[0] if judged.asked else "loss" if "loss" in judged.curves else judged.curves[0]
    differences = [one for one in judged.differences if one.judged]
    clear = [one for one in differences if one.sign[-1] != 0]
    if clear:
        return _largest(judged, clear).curve
    order = judged.asked or (*RATES, *judged.curves)
    return next((name for name in order if any(one.curve == name for one in differences)), judged.curves[0])


def term(curve: str) -> str:
    """What a curve is called in a sentence.

    >>> term("fpr"), term("loss"), term("training_loss")
    ('false positive rate', 'loss', 'training loss')
    """
    return TERMS.get(curve, curve.replace("_", " "))


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
    if curve not in RATES:
        return [f"{value:.3g}" for value in values]
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
    if curve not in RATES:
        return f"{size:.2g}"
    points = f"{100 * size:.0f}" if 100 * size >= 1 else f"{100 * size:.1g}"
    return f"{points} point" if points == "1" else f"{points} points"


def capital(sentence: str) -> str:
    """The sentence with a capital at its beginning."""
    return sentence[:1].upper() + sentence[1:]


def _largest(judged: Leaders, clear: Sequence[Difference]) -> Difference:
    """The difference that the headline is about: first by what was asked, then decisions, then size."""
    order = judged.asked or (*RATES, *judged.curves)
    if judged.asked:
        by_curve = sorted(clear, key=lambda one: order.index(one.curve) if one.curve in order else len(order))
        clear = [one for one in clear if one.curve == by_curve[0].curve]
    else:
        rates = [one for one in clear if one.curve in RATES]
        clear = rates or list(clear)
    return max(clear, key=lambda one: abs(one.gap[-1]))


def _values(judged: Leaders, curve: str, groups: Sequence[Hashable], at: float) -> list[float]:
    assert judged.trajectory is not None
    values = judged.trajectory[curve]
    values = values.mean("seed") if "seed" in values.dims else values
    last = values.sel(time=at)
    labels = last.coords["group"].values.tolist()
    return [float(last.values[labels.index(group)]) for group in groups]


def _two(judged: Leaders, one: Difference) -> str:
    """Who is worse off, by how much, since when, and what was before."""
    forecast = judged.basis == "forecast"
    leader, other = one.leader[-1], one.behind
    if one.curve in RATES:
        at_worst, at_best = _values(judged, one.curve, (other, leader), float(one.times[-1]))
        numbers = amounts(one.curve, at_worst, at_best)
        return f"{has(other, forecast)} the {one.worse} {term(one.curve)}, {numbers[0]} against {numbers[1]}"
    return f"{has(leader, forecast)} the {one.better} {term(one.curve)}"


def _since(one: Difference, clock: str) -> str:
    """From when on the leader of the end is clear."""
    last = one.stretches[-1]
    if len(one.stretches) == 1:
        return "throughout" if len(one.times) > 1 else f"at {at(clock, float(one.times[0]))}"
    before = _evaluation_before(one, last.first)
    if last.evaluations == 1:
        return f"at {at(clock, last.last)}, the last evaluation"
    if _next(clock, before, last.first):
        return f"from {at(clock, last.first)} to the end"
    return f"from {between(clock, before, last.first)} to the end"


def _evaluation_before(one: Difference, time: float) -> float:
    return float(one.times[int(np.searchsorted(one.times, time)) - 1])


def _before(one: Difference, clock: str) -> str:
    """What was clear before, or that nothing was."""
    earlier = [stretch for stretch in one.stretches[:-1] if stretch.leader != NOBODY]
    if earlier and earlier[-1].leader != one.stretches[-1].leader:
        before, last = earlier[-1], one.stretches[-1].first
        until = "" if before.last == _evaluation_before(one, last) else f" up to {at(clock, before.last)}"
        if one.curve in RATES:  # "led" would read as the opposite of "has the higher error"
            return f"Before, it was the other way round{until}."
        return f"Before, {subject(before.leader)[0]} led{until}."
    if not any(stretch.leader == NOBODY and stretch.bound > 0 for stretch in one.stretches[:-1]):
        return ""
    if len(earlier) == 1:
        return f"It was also clear {_from_to(clock, earlier[0].first, earlier[0].last)}."
    if earlier:
        return f"It was also clear at times before, last at {at(clock, earlier[-1].last)}."
    return f"Before {at(clock, one.stretches[-1].first)} the two cannot be told apart."


def _from_to(clock: str, first: float, last: float) -> str:
    return f"at {at(clock, first)}" if first == last else f"from {at(clock, first)} to {at(clock, last)}"


def _several(judged: Leaders, chosen: Difference, clear: Sequence[Difference]) -> str:
    """The worst-off group against the rest, or the largest clear difference."""
    forecast = judged.basis == "forecast"
    leader, other = chosen.leader[-1], chosen.behind
    time = float(chosen.times[-1])
    if chosen.pair[1] == ALL:
        group, better_off = chosen.pair[0], leader == chosen.pair[0]
        word = chosen.better if better_off else chosen.worse
        (its,) = _values(judged, chosen.curve, (group,), time)
        value, of_all = amounts(chosen.curve, its, its - float(chosen.gap[-1]))
        return f"{has(group, forecast)} a {word} {term(chosen.curve)} than all together: {value} against {of_all}"
    # Of decisions the group that is worse off than all others is named first, of losses the one that leads them all.
    ends = {True: (other, "highest", "lowest"), False: (leader, "lowest", "highest")}
    for worst in (True, False) if chosen.curve in RATES else (False, True):
        group, *words = ends[worst]
        against = [one for one in clear if group in one.pair and (one.leader[-1] == group) != worst]
        if len(against) == len(judged.groups) - 1:
            rest = [one for one in judged.groups if one != group]
            its, *others = _values(judged, chosen.curve, (group, *rest), time)
            nearest = min(others, key=lambda value: abs(value - its))
            its_own, *rounded = amounts(chosen.curve, its, nearest, min(others), max(others), apart=2)
            extreme = words[chosen.better == "higher"]
            claim = f"{has(group, forecast)} the {extreme} {term(chosen.curve)}, {its_own}"
            return f"{claim}; the others have {' to '.join(dict.fromkeys(rounded[1:]))}"
    at_worst, at_best = _values(judged, chosen.curve, (other, leader), time)
    numbers = amounts(chosen.curve, at_worst, at_best)
    claim = f"{has(other, forecast)} a {chosen.worse} {term(chosen.curve)} than {subject(leader)[0]}"
    return f"{claim}: {numbers[0]} against {numbers[1]}"


def _nothing_clear(judged: Leaders, curve: str, differences: Sequence[Difference], licence: str) -> Headline:
    """That no difference is clear at the end, how large it can be, and what would settle it."""
    own = [one for one in differences if one.curve == curve]
    largest = max(max(abs(one.lower[-1]), abs(one.upper[-1])) for one in own)
    earlier = [one for one in own if one.sign.any()]
    end, size = " at the end" if earlier else "", size_of(curve, float(largest))
    claim = f"The difference in {term(curve)} is not clear{end}; it is at most {size}."
    if len(judged.groups) > 2:
        among = f"No difference in {term(curve)} among {len(judged.groups)} groups"
        claim = f"{among} is clear{end}; the largest is at most {size}."
    before = ""
    if earlier:
        one = max(earlier, key=lambda difference: float(np.abs(difference.gap).max()))
        stretch = [stretch for stretch in one.stretches if stretch.leader != NOBODY][-1]
        when = at(judged.clock, stretch.last)
        before = f"{capital(subject(stretch.leader)[0])} had the {one.better} {term(curve)} up to {when}."
    return Headline(claim, licence, curve, settle=_settle(judged, own), before=before)


def _settle(judged: Leaders, differences: Sequence[Difference]) -> str:
    """How many more points or seeds would make the gap that was seen clear."""
    one = max(differences, key=lambda difference: abs(float(difference.gap[-1])))
    gap, half = abs(float(one.gap[-1])), float(one.upper[-1] - one.lower[-1]) / 2.0
    size = max(gap, SMALL) if one.curve in RATES else gap
    if not np.isfinite(half) or size <= 0 or one.pair[1] == ALL:
        return ""
    factor = (half / size) ** 2
    if judged.scope == "recipe" or judged.basis == "seeds":
        assert judged.trajectory is not None
        seeds = judged.trajectory[one.curve].sizes.get("seed", 1)
        more = int(np.ceil(seeds * max(factor - 1.0, 0.0)))
        return f"About {more} more seeds would show a gap of {size_of(one.curve, size)}." if more else ""
    if judged.basis != "points" or judged.trajectory is None:
        return ""
    from tiltmeter.leaders.points import kept_points

    kept = kept_points(judged.trajectory)
    counts = {} if kept is None else kept.counts(one.curve)
    if not counts:
        return ""
    fewest = min(one.pair, key=lambda group: counts.get(group, 0))
    more = int(np.ceil(counts.get(fewest, 0) * max(factor - 1.0, 0.0)))
    if more < 1 or factor > 1e4:
        return ""
    digits = max(len(str(more)) - 2, 0)
    rounded = round(more, -digits)
    return (
        f"About {rounded:,} more held-out cases of {group_name(fewest)} would settle whether the measured gap of "
        f"{size_of(one.curve, size)} is real."
    )


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
    tested = judged.family
    if judged.basis == "forecast":
        promise: Any = {} if judged.trajectory is None else judged.trajectory.origin.settings.get("promise") or {}
        sentence = str(promise.get("sentence") or f"{100 * (1 - judged.level):g} % band over {tested}")
        reliable = promise.get("reliable_until")
        until = f"; reliable up to {at(judged.clock, float(reliable))}" if reliable is not None else ""
        return f"{sentence}{until}."
    seeds = 1
    if judged.trajectory is not None:
        seeds = judged.trajectory[judged.curves[0]].sizes.get("seed", 1)
    runs = "One run" if seeds == 1 else f"{seeds} runs" if judged.scope == "runs" else f"{seeds} seeds"
    together = "" if tested == "one evaluation" else "tested together, "
    chosen = f", if this one of {judged.one_of} pairs was chosen before" if judged.one_of > 1 else ""
    wider = "; from recorded standard errors, so limits are wider" if judged.basis == "standard errors" else ""
    return f"{runs}, {tested}{' ' if together else ', '}{together}{100 * judged.level:g} % error rate{chosen}{wider}."


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
