"""The first screen: the headline of `leaders`, four facts, all measures as dots, the curve, changes, and questions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tiltmeter.fairness.estimate import UNKNOWN, Estimate
from tiltmeter.leaders.difference import ALL
from tiltmeter.leaders.headline import capital, gap_size
from tiltmeter.leaders.judgement import NOT_JUDGED
from tiltmeter.plot.theme import group_name
from tiltmeter.report import svg
from tiltmeter.report.answers import answers
from tiltmeter.report.axes import BOLD, PLAIN, short
from tiltmeter.report.changes import Change, offered
from tiltmeter.report.findings import Findings, Row
from tiltmeter.report.hero import hero, in_row
from tiltmeter.report.html import escape, figure, paragraph
from tiltmeter.report.positive_label import positive_label
from tiltmeter.report.wording import listed, moment, number, points, when
from tiltmeter.shown_text import percent

#: Width of a row of dots, and where its scale begins and ends.
WIDTH, LEFT, RIGHT = 230.0, 6.0, 224.0
#: The scale of rates ends at the first of these that holds every limit.
ENDS = (0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
#: Who must know which group a person belongs to, by where a change uses the group.
GROUP_NEEDED = {
    "at every decision": "Condition: each decision must know the person's group.",
    "in training": "Condition: the training must know the groups; decisions need not.",
    "on held-out points": "Condition: groups of the held-out cases are known.",
}


def first_screen(found: Findings, others: tuple[Findings, ...] = ()) -> str:
    """The answer, how sure it is, since when, and what would change it."""
    line = found.judged.headline
    small = "".join(f"<span>{escape(word)}</span>" for word in kicker(found))
    top = (
        f'<header><p class="kick">{small}</p><h1>{escape(line.claim)}</h1>'
        f"{paragraph(in_words(found), 'lead')}{paragraph(licence(found), 'scope')}</header>"
    )
    offers = offered(found, others)
    curve = ""
    if found.several:
        curve = figure(caption(found), hero(found), strong=f"{found.headline.term.title} during training.")
    pair = f'<section class="first" aria-label="In short">{dots(found)}{curve}</section>'
    return f"{top}{facts_row(found, others, offers)}{pair}{cards(found, offers)}{questions(found, others)}"


def licence(found: Findings) -> str:
    """What the headline rests on, what would settle it, and a positive label that nobody chose."""
    line, label = found.judged.headline, positive_label(found.run)
    guess = label.guess if label is not None and not label.declared and "tpr" in found.rows else ""
    notes = " ".join(
        f"{note}." for note in found.judged.notes if note.startswith(NOT_JUDGED) and note not in line.claim
    )
    settle = line.settle
    return " ".join(part for part in (_rests_on(found), settle, notes, guess) if part)


def _rests_on(found: Findings) -> str:
    """The licence for a reader who knows no statistics."""
    judged = found.judged
    if judged.basis in ("exact", "values", "forecast") or not judged.differences:
        return judged.headline.licence
    noun = "training" if found.several else "model"
    return f"One {noun}; another may differ." if found.seeds == 1 else f"{found.seeds} {noun}s{_same_sign(found)}."


def kicker(found: Findings) -> list[str]:
    """What stands in small letters above the headline."""
    words = [f"run: {found.name}"] if found.name else []
    if found.many:
        words.append(f"{len(found.groups)} groups")
    label = positive_label(found.run)
    if label is not None and "tpr" in found.rows:
        words.append(f"positive case: {label.with_column}")
    exact = "exact values, " if found.scope == "exact" else ""
    told = found.several and found.judged.headline.clear and not exact  # below: "of 2,000 training steps"
    if not told and (found.several or found.last):
        words.append(f"{exact}{_length(found) if found.several else f'at {when(found.clock, found.last)}'}")
    if found.evaluation is not None:
        words.append(f"tested on {len(found.evaluation.codes):,} new cases")
    return words


def _length(found: Findings) -> str:
    """How long the training was."""
    if found.clock == "t":
        return f"up to {when(found.clock, found.last)}"
    return f"{moment(found.last)} training {found.clock}s"


def in_words(found: Findings) -> str:
    """The gap, since when, what was before and what else is clear; and what all wrong decisions say beside it."""
    line = found.judged.headline
    return " ".join(part for part in (line.gap, line.since, line.before, line.also, _beside_error(found)) if part)


def _beside_error(found: Findings) -> str:
    """That wrong decisions are more frequent for another group than the headline's, where that is clear."""
    row, error = found.headline, found.rows.get("error")
    if error is None or error is row or not row.clear or not error.clear or found.many:
        return ""
    worse, others = error.worse_off(), row.worse_off()
    if not worse or not others or worse[0] in others:
        return ""
    most, least = sorted(found.pair, key=lambda place: -error.values[place].value)
    values = [percent(error.values[place].value) for place in (most, least)]
    name = found.names[most]
    return f"But all wrong decisions together are more frequent for {name}: {values[0]} against {values[1]}."


def facts_row(found: Findings, others: tuple[Findings, ...], offers: Sequence[Change]) -> str:
    """Facts in large letters: how much, since when (of several evaluations), how sure, what was tried."""
    since = (_since(found),) if found.several else ()
    facts = (_how_much(found), *since, _how_sure(found), _tried(others, offers))
    cells = "".join(f"<div><b>{escape(large)}</b><span>{escape(small)}</span></div>" for large, small in facts)
    return f'<div class="facts">{cells}</div>'


def _how_much(found: Findings) -> tuple[str, str]:
    one, row = found.judged.chosen, found.headline
    if one is None or not one.judged:
        return "not judged", found.not_judged
    gap = Estimate(*(float(part[-1]) for part in (one.gap, one.lower, one.upper)))
    if one.sign[-1] == 0:
        size = row.term.size(max(abs(gap.low), abs(gap.high)))
        return "not clear", f"the gap in {row.term.name} may be zero, or up to {size}"
    gap = gap if gap.value > 0 else gap.times(-1.0)
    sure = "" if found.scope == "exact" else f"; likely {row.term.limits(gap)}"
    size = gap_size(one, gap.value) if row.term.share else number(gap.value)
    return size, f"{'percentage points apart' if row.term.share else 'gap'}{sure}"


def _size_of(found: Findings, row: Row, gap: float) -> str:
    """The size of a gap; one digit more where that of the headline disagrees with the rounded shares."""
    if not row.term.share:
        return number(gap)
    first, second = (round(100 * row.values[place].value) for place in found.pair)
    # 62 % and 73 % are 10.4 points apart, not 10
    fine = row is found.headline and found.two and abs(first - second) != round(100 * abs(gap))
    return f"{100 * gap:.1f} points" if fine else points(gap)


def _since(found: Findings) -> tuple[str, str]:
    one = found.judged.chosen
    if one is None or not one.sign.any():
        return "never", "no gap is clear at any time of the training"
    if not one.sign[-1]:
        return "only earlier", "a gap was clear during training, and is not at the end"
    start = one.since
    if start == one.times[0]:
        return "from the start", "to the end of the training"
    if start == found.last:
        return f"at {when(found.clock, start)}", "clear at the end of the training only"
    whole = moment(found.last) if found.clock == "t" else _length(found)
    return f"since {when(found.clock, start)}", f"of {whole}; it stays"


def _how_sure(found: Findings) -> tuple[str, str]:
    if found.scope == "exact":
        return "exact", "chance has no part in these values"
    if not found.judged.differences:
        return "not judged", found.not_judged
    if found.judged.basis == "forecast":
        licence = found.judged.headline.licence  # said above already; its end is how far to trust it
        return ("as forecast" if found.judged.headline.clear else "not clear"), licence.partition(".")[0]
    if not found.judged.headline.clear:
        return "may be chance", "no gap is larger than chance could make it"
    return (
        "hardly chance",
        "the gap is larger than chance would make it",
    )


def _same_sign(found: Findings) -> str:
    """In how many seeds the headline's difference has the same sign, as the end of a sentence."""
    gaps = found.seed_gaps
    if gaps is None:
        return ""
    same = int((gaps > 0).sum())
    return f"; the gap has the same direction in {'all' if same == len(gaps) else f'{same}'}"


def _tried(others: tuple[Findings, ...], offers: Sequence[Change]) -> tuple[str, str]:
    tried = len(others) + any(one.uses_group == "at every decision" for one in offers)
    if not tried:
        return "no change tried", "the command “tiltmeter advise” tries changes"
    if not offers:
        return "no change narrows it", f"tried: {listed([one.name for one in others], 2)}"
    many = f"{len(offers)} of {tried} changes" if tried > 1 else "1 change"
    large = f"{many} {'narrows' if len(offers) == 1 else 'narrow'} it"
    best, rest = (
        ("it leaves", f"; the other{'s do' if tried > 2 else ' does'} not")
        if len(offers) == 1
        else ("the best leaves", "")
    )
    return large, f"{best} a gap of about {points(abs(offers[0].left.value))}{rest if tried > 1 else ''}"


def caption(found: Findings) -> str:
    """What the lines and bands of the picture are."""
    parts = ["Coloured bands: likely range."] if f"{found.headline.term.curve}_se" in found.run else []
    if found.seeds > 1:
        parts.append("Thin lines: each training.")
    if found.many:
        parts.append("In colour two groups, dotted all others, grey the rest.")
        few = sum(not found.enough(place) for place in range(len(found.groups)))
        parts.append(f"{few} with too few cases {'are' if few > 1 else 'is'} not drawn." if few else "")
    return " ".join(part for part in parts if part)


def dots(found: Findings) -> str:
    """Every rate of every group with its limits on one scale, and whether a difference is clear."""
    ordered = sorted(found.rows.values(), key=lambda row: row is not found.headline)
    rows = [row for row in ordered if row.term.share] or ordered
    end = _end(rows)
    shown = [place for place, kind in enumerate(found.colours) if kind != "rest" and found.enough(place)]
    shown = shown if found.focus is None else [found.focus]
    body = "".join(
        f"<tr><th scope='row'>{escape(capital(row.term.meaning))}<span>{escape(row.term.name)}</span></th>"
        f'<td class="dots">{_dots(found, row, shown, end)}</td><td>{_verdict(found, row)}</td></tr>'
        for row in rows
    )
    scale = "" if found.scope == "exact" or not rows[0].term.share else "Line through a mark: likely range."
    scale += "" if found.scope == "exact" else " Clear: too large to be chance."
    legend = "".join(
        f'<b class="lg {found.colours[place]}">{escape(found.names[place])}</b>{escape(_size(found, place))}'
        f"{' cases' if place == shown[0] and found.evaluation is not None else ''} "
        for place in shown
    )
    legend += "" if found.focus is None else f'<b class="lg all">{ALL}</b> '
    return (
        f"<div><h2>{'At the end of training' if found.several else 'By group'}</h2>"
        f"<p class='leg'>{legend}<i>{escape(scale)}</i></p>"
        f'<table class="dotted"><tbody>{body}</tbody></table></div>'
    )


def _size(found: Findings, place: int) -> str:
    return "" if found.evaluation is None else f" {int(found.evaluation.counts[place].sum()):,}"


def _end(rows: Sequence[Row]) -> float:
    if not rows[0].term.share:
        return 1.0
    highest = max((one.high if one.known else one.value for row in rows for one in row.values), default=1.0)
    return next((end for end in ENDS if end >= min(highest, 1.0)), 1.0)


def _dots(found: Findings, row: Row, shown: Sequence[int], end: float) -> str:
    top = end
    if not row.term.share:
        finite = [one.value for one in row.values if np.isfinite(one.value)]
        top = 1.15 * max(finite, default=1.0) or 1.0
    marks = [(row.values[place], found.colours[place], place % 2 == 1) for place in shown]
    spoken = ", ".join(f"{found.names[place]} {row.values[place].value:.3g}" for place in shown)
    if found.focus is not None and (gap := _against_all(found, row)).known:
        together = row.values[found.focus].value - gap.value
        marks.append((Estimate(together, np.nan, np.nan), "all", True))
        spoken += f", {ALL} {together:.3g}"
    height = 15.0 * max(len(marks), 1) + 6.0
    parts = [svg.line(LEFT, height / 2, RIGHT, height / 2, "grid")]
    for level, (one, kind, square) in enumerate(marks):
        y = 10.0 + 15.0 * level
        if kind != "all" and not row.enough(shown[level]):
            parts.append(svg.text(LEFT, y + 4, f"too few of {short(found.names[shown[level]], 130, PLAIN)}", "dv none"))
            continue
        if not np.isfinite(one.value):
            continue
        x = LEFT + (RIGHT - LEFT) * min(max(one.value / top, 0.0), 1.0)
        left = right = x
        if one.known:
            left, right = (LEFT + (RIGHT - LEFT) * min(max(part / top, 0.0), 1.0) for part in (one.low, one.high))
            parts.append(svg.line(left, y, right, y, f"ci {kind}"))
        parts.append(svg.mark(x, y, f"dot {kind}", square=square, size=4.5))
        words = in_row(found, row, one.value)
        room = right + 8 + BOLD * len(words) <= WIDTH
        parts.append(svg.text(right + 6 if room else left - 6, y + 4, words, f"dv {kind}", "start" if room else "end"))
    return svg.picture(WIDTH, height, parts, f"{row.term.title} of every group", spoken, "dots")


def _against_all(found: Findings, row: Row) -> Estimate:
    """The difference of the headline's group from all together."""
    pairs = zip(row.pairs, row.differences, strict=True)
    return next(
        (one for pair, one in pairs if found.focus is not None and pair[0] == found.groups[found.focus]), UNKNOWN
    )


def _verdict(found: Findings, row: Row) -> str:
    """Clear, with the largest difference; or not clear, and how large it may be. Of many groups, the headline's."""
    shown = row.differences if found.focus is None else (_against_all(found, row),)
    known = [one for one in shown if one.known]
    if not known:
        return '<b class="tag none">not judged</b>'
    if found.focus is None and row.clear:
        (first, second), gap = row.clear[0]
        size = _size_of(found, row, gap.value)
        names = " and ".join(short(group_name(group), 120, PLAIN) for group in (first, second))
        return _tag("clear", size if found.two else f"{size}, {names}")
    clear = known[0].shown and found.focus is not None
    others = len(row.clear) - clear
    rest = f"{'; also clear' if clear else ' here; clear'} for {others} other group{'s' if others > 1 else ''}"
    seen = max(abs(one.value) for one in known)
    chosen = found.judged.chosen
    size = row.term.size(seen)
    if chosen is not None and row is found.headline and row.term.share:
        size = gap_size(chosen, seen)
    which = "" if not clear or row.term.better == "neither" else " worse"
    if which and (known[0].value > 0) == (row.term.better == "higher"):
        which = " better"
    return _tag("clear" if clear else "not clear", f"{size}{which}{rest if others else ''}")


def _tag(verdict: str, words: str) -> str:
    return f'<b class="tag {"real" if verdict == "clear" else "none"}">{verdict}</b><span>{escape(words)}</span>'


def cards(found: Findings, offers: Sequence[Change]) -> str:
    """At most three changes: what each does to the difference, its price, who pays, and where it uses the group."""
    if not offers:
        return ""
    now = abs(found.gap)
    inside = []
    for one in offers[:3]:
        left = abs(one.left.value)
        uses = GROUP_NEEDED.get(one.uses_group, "")
        between_groups = f" between {' and '.join(found.names[place] for place in found.pair)}:" if found.many else ""
        before = _size_of(found, found.headline, now)
        at = f"{one.what.partition(';')[0]}. " if one.uses_group == "at every decision" else ""
        effect = f"{capital(at)}Gap{between_groups or ':'} about {points(left).split()[0]} instead of {before}."
        inside.append(
            f'<div class="card"><b>{escape(capital(one.name))}</b>'
            f"<p>{escape(f'{effect} Price: {one.brief} {uses}')}</p></div>"
        )
    listing = "".join(inside)
    return f'<section aria-label="Changes"><h2>What would change it</h2><div class="cards">{listing}</div></section>'


def questions(found: Findings, others: tuple[Findings, ...]) -> str:
    """The questions of a reviewer, folded, each with the first sentence of its answer."""
    folded = []
    for one in answers(found, others):
        first, _, rest = one.text.partition(". ")
        short_answer = f"{first}." if rest else first
        inside = f"<p>{escape(rest)}</p>" if rest else ""
        folded.append(
            f"<details><summary>{escape(one.question)} <span>{escape(short_answer)}</span></summary>{inside}</details>"
        )
    return f'<section class="questions" aria-label="Questions">{"".join(folded)}</section>'
