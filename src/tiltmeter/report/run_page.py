"""The page of one run: the sections that back its first screen, and its numbers as plain JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tiltmeter.leaders.judgement import NOT_JUDGED
from tiltmeter.leaders.stopping import Stopping, stopping
from tiltmeter.report.answers import Answer, answers
from tiltmeter.report.changes import TO_TRY, change_rows, change_table, comparable, stop_sentence, what_would_change
from tiltmeter.report.comparison_section import score_of
from tiltmeter.report.data_section import data_section, pairs_table, setting_rows, trained_rows
from tiltmeter.report.findings import Findings
from tiltmeter.report.html import Cell, block, bullets, card_table, escape, figure, fold, paragraph, section
from tiltmeter.report.model_card import model_card
from tiltmeter.report.onset import events
from tiltmeter.report.positive_label import positive_label
from tiltmeter.report.reasons import why_section
from tiltmeter.report.small_multiples import small_multiples
from tiltmeter.report.strips import strips_figure
from tiltmeter.report.tables import curve_table, measure_table
from tiltmeter.report.wording import number, when
from tiltmeter.shown_text import group_name, percent

if TYPE_CHECKING:
    from tiltmeter.discover.discovery import Discovery
    from tiltmeter.forecast.kernel.why import Why
    from tiltmeter.preview.causes import Causes

#: The heading of what `tm.discover` found.
DISCOVERED = "Groups nobody named"

#: The heading of the groups by each attribute.
LEVELS = "Level by level"

#: What a statement about one training is about.
ONE_RUN = (
    "One run means: these weights, this order of data. From five seeds on, statements are about the training settings: "
    "points and seeds are both counted."
)

#: Anchors and words of the sections, in order.
SECTIONS = (
    ("table", "All measures"),
    ("why", "Why"),
    ("when", "When"),
    ("change", "What would change it"),
    ("stop", "When to stop"),
    ("data", "Data"),
    ("method", "Method and limits"),
    ("card", "To take along"),
)


def contents(extra: tuple[tuple[str, str], ...] = (), several: bool = True) -> str:
    """Links to the sections; those about time only where there are several evaluations."""
    listed = [(name, words) for name, words in (*extra, *SECTIONS) if several or name not in ("when", "stop")]
    items = "".join(f'<li><a href="#{name}">{escape(words)}</a></li>' for name, words in listed)
    return f'<nav aria-label="Sections"><ul>{items}</ul></nav>'


def body(found: Findings, others: tuple[Findings, ...] = (), ahead: str = "", why: Why | Causes | None = None) -> str:
    """The sections of one run; `ahead` is that of its forecast, `why` what a forecast says of the training data."""
    over_time = (_when(found), _stop(found)) if found.several else ("", "")
    parts = [_measures(found), why_section(found, why), over_time[0], _change(found, others), over_time[1], ahead]
    return "".join([*parts, data_section(found), _method(found), _along(found, others)])


def discovered_section(discovery: Discovery) -> str:
    """Groups that nobody labelled: the claim, every rule that was tried, and what the judgement rests on."""
    head = ("Group", "Judged on other points", "Points", "Loss at the end", "Of the others")
    rows = [
        [
            Cell(group.name, (group.described,) if group.described else (), head=True),
            Cell(discovery.verdict_text(group)),
            Cell(f"{group.points:,}", (f"{percent(group.share, 1)} of those that judge",)),
            Cell(number(group.loss)),
            Cell(number(group.loss_of_others)),
        ]
        for group in discovery.groups
    ]
    table = card_table(head, rows, "") if rows else ""
    return section("discovered", DISCOVERED, paragraph(discovery.claim), table, paragraph(discovery.licence, "note"))


def levels_section(found: Findings) -> str:
    """The declared rate of every group by each attribute alone, then of their intersections, against all others."""
    row, rows = found.headline, []
    for one in found.judged.differences_in(row.term.curve):
        if not one.judged or one.values is None:
            continue
        its, others = (row.term.told(float(value)) for value in one.values[-1])
        name, people = group_name(one.pair[0]), "" if one.people is None else f"{one.people[0]:,}"
        against = f"{group_name(one.pair[1])}: {others}"
        clear = "clear" if one.sign[-1] else "not clear"
        rows.append([Cell(name, head=True), Cell(people), Cell(its), Cell(against), Cell(clear)])
    small = "".join(f"{note}." for note in found.judged.notes if note.startswith(NOT_JUDGED))
    table = card_table(("Group", "People", row.term.title, "Against", "Clear?"), rows, "")
    return section("levels", LEVELS, table, paragraph(small))


def _measures(found: Findings) -> str:
    charts = [figure(text, picture, strong=title) for title, text, picture in small_multiples(found)]
    grid = f'<div class="mult">{"".join(charts)}</div>' if charts else ""
    text = ""
    if "tpr" in found.rows:
        text = "While base rates differ, no useful model equalises all measures: which one counts depends on what the "
        text += "decision does to a person."
    return section("table", "All measures", paragraph(text), measure_table(found), grid)


def _when(found: Findings) -> str:
    items = "".join(
        f"<li><b>{escape(when(found.clock, one.first))}</b><span>{escape(one.text)}</span></li>"
        for one in events(found)
    )
    return section("when", "What changed when", strips_figure(found), f'<ol class="when">{items}</ol>')


def _change(found: Findings, others: tuple[Findings, ...]) -> str:
    table = "" if comparable(found, others) else change_table(found, ())
    return section(
        "change", "What would change it", paragraph(what_would_change(found, others)), table, paragraph(TO_TRY, "note")
    )


def _stop(found: Findings) -> str:
    try:
        curve = next(name for name in ("loss", "error", "squared_error") if name in found.rows)
        advice = stopping(found.run, curve=curve)
    except (ValueError, StopIteration) as error:
        return section("stop", "When to stop", paragraph(str(error) or "There is no curve to advise from."))
    text = stop_sentence(found)
    note = "" if advice.judged == "exact" else (
        "Chosen on the points that judge it, so too good: set points aside with data.split(held_out=, judge=) and use "
        "tm.fairness.stopping(run, judge=other)."
    )  # fmt: skip
    return section("stop", "When to stop", paragraph(text), _stopping(advice, found.clock), paragraph(note, "note"))


def _stopping(advice: Stopping, clock: str) -> str:
    head = ["Stop for the", "At", "Gap", f"Mean {advice.curve}", "Price in mean", "Worst group"]
    rows = []
    for rule in advice.rules:
        price = rule.mean / advice.best_mean.mean - 1.0 if advice.best_mean.mean else 0.0
        cells = [when(clock, rule.time), number(rule.gap), number(rule.mean), f"{price:+.1%}", number(rule.worst)]
        rows.append([Cell(rule.rule, head=True), *map(Cell, cells)])
    caption = f"By {advice.curve}, among evaluations whose mean is within {percent(advice.within, 0)} of the best seen."
    return card_table(head, rows, caption)


def _method(found: Findings) -> str:
    level = f"{100 * found.judged.level:g} %"
    better_off = (
        "Better off follows the measure: lower loss, error and false positive rate, higher true positive rate. Whether "
        "a higher selection rate is better depends on what the decision does: say so with a question (tm.Question)."
    )
    families = "Limits of the question hold together, and so do those of all other measures."
    if found.several:
        families = (
            "The question is asked of the last evaluation, then of those before it; all else of the last one only."
        )
    items = [
        f"Clear means: the limits leave out 0. {families} Of many such pages about groups that are alike at most "
        f"{level} name anybody." + (" Each group is compared with all others together." if found.many else ""),
        "Not clear is not equal: the limits are printed, wide ones mean too few points, narrow ones that a large "
        "difference is ruled out.",
        better_off,
        "Limits of one group are Wilson's or two standard errors. Those of precision, errors removed, impact ratio and "
        "parts of a difference come from points, and from five seeds on seeds, drawn anew.",
        "The calibration error of a calibrated model is not 0 with finitely many points: what chance gives is printed.",
        "Four fifths is a rule of thumb that ignores the number of points. This page describes a model; it is not a "
        "legal audit.",
    ]
    if found.several:
        items.insert(0, ONE_RUN)
    if found.scope == "exact":
        items = ["Values are exact, or come without known errors; a group leads where its value is better.", better_off]
    notes = [f"{note}." for note in found.judged.notes]
    notes += [f"{name}: {why}." for name, why in list(found.judged.reasons.items())[:12]]
    return section("method", "Method and limits", bullets([*items, *notes]))


def _along(found: Findings, others: tuple[Findings, ...]) -> str:
    return section(
        "card",
        "To take along",
        fold("Section for a model card (Markdown)", block(model_card(found, others))),
        fold("Curves as numbers", curve_table(found)) if found.several else "",
        fold("What was trained", pairs_table(trained_rows(found.run))),
        fold("All settings", pairs_table(setting_rows(found.run.origin.settings))),
    )


def facts(found: Findings, others: tuple[Findings, ...] = ()) -> dict[str, Any]:
    """The page's numbers as plain JSON."""

    def clean(value: float) -> float | None:
        return float(value) if value == value and abs(value) != float("inf") else None

    def told(one: Any) -> list[float | None]:
        return [clean(value) for value in one]

    said: list[Answer] = answers(found, others)
    label = positive_label(found.run)
    return {
        "run": found.name,
        "headline": found.judged.headline.claim,
        "line": found.judged.headline.line,
        "licence": found.judged.headline.licence,
        "answers": {one.question: one.text for one in said},
        "positive_label": None if label is None else label._asdict(),
        "groups": list(found.names),
        "level": found.judged.level,
        "measures": {
            curve: {
                "values": [told(one) for one in row.values],
                "differences": [told(one) for one in row.differences],
                "better_off": [group_name(group) for group in row.better_off()],
            }
            for curve, row in {**found.rows, **found.extra}.items()
        },
        "changes": [
            {"name": one.name, "what": one.what, "uses_group": one.uses_group, "change": told(one.change)}
            for one in change_rows(found, others)[1:]
        ],
        "scorecard": None if isinstance(card := score_of([found, *others]), str) else card.to_json(),
        "impact_ratio": None if found.impact is None else told(found.impact.ratio),
        "calibration": None
        if found.calibration is None
        else {group_name(one.group): [one.error, one.chance, one.limit] for one in found.calibration.groups},
    }
