"""Reasons: the section that says why: base rates against decisions, thresholds, calibration, drivers of a theory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tiltmeter.fairness.calibration import Calibration
from tiltmeter.fairness.thresholds import OwnThreshold
from tiltmeter.fairness.why import UNKNOWN, BaseRateSplit, split_sentence, trained_shares
from tiltmeter.leaders.headline import capital
from tiltmeter.plot.theme import group_name
from tiltmeter.preview.causes import SHOWN, Causes
from tiltmeter.report import svg
from tiltmeter.report.axes import short
from tiltmeter.report.changes import threshold_of, threshold_sentence
from tiltmeter.report.findings import Findings
from tiltmeter.report.html import Cell, card_table, figure, paragraph, section
from tiltmeter.report.wording import listed, number, points
from tiltmeter.shown_text import minus, percent

if TYPE_CHECKING:
    from tiltmeter.forecast.kernel.why import Why

#: What a run leaves open, and what to run for it.
TO_ASK = (
    "A run alone does not tell whether the shares, base rates or spread of the training data matter. To ask a table: "
    "tm.preview(train, held_out).causes(); give the result to tm.report(..., why=)."
)


def why_section(found: Findings, why: Why | Causes | None = None) -> str:
    """Why the groups differ, as far as it is known, and what is not; `why` is what a forecast says of training data."""
    parts: list[str] = []
    if found.splits:
        parts.append('<div class="two">')
        parts += [
            figure(split_sentence(one), _bars(one), strong=claim(one, named=not found.two))
            for one in found.splits
            if one.gap.known
        ]
        parts.append("</div>")
        note = "A difference is split exactly into the part of base rates (each label treated as in the mean of both "
        note += (
            "groups) and that of cases with the same label (at the mean of both base rates). Arithmetic, not a cause."
        )
        if not found.two:
            note += " The two groups furthest apart in error are compared; limits allow for that choice."
        parts.append(paragraph(note, "note"))
    threshold = threshold_of(found)
    ranked = roc_figure(found, threshold)
    if ranked:
        parts.append(ranked)
    elif threshold is not None:
        parts.append(paragraph(threshold_sentence(threshold)))
    if found.calibration is not None and found.calibration.groups:
        parts.append(_reliability(found, found.calibration))
    shares = trained_shares(found.run)
    told = [f"{group_name(group)} {percent(share)}" for group, share in shares.items()]
    first = f"Shares of the training data: {listed(told)}. " if shares else ""
    if isinstance(why, Causes):
        parts.append(paragraph(f"{first}{why.sentence()}"))
        parts.append(causes_table(why))
    elif why is not None:
        parts.append(paragraph(f"{first}A forecast with one reason taken away at a time says: {why}"))
    elif shares or found.scope != "exact":
        parts.append(paragraph(f"{first}{TO_ASK} {UNKNOWN}"))
    return section("why", "Why the groups differ", *parts)


def causes_table(causes: Causes) -> str:
    """The gap early, middle and late: as it is, and in each population; nothing where there are no causes."""
    kinds = list(dict.fromkeys(row.cause for row in causes.rows))
    if not kinds:
        return ""

    def cell(phase: str, cause: str) -> Cell:
        row = causes.of(cause, phase)
        return Cell(causes.size(row.gap_without), ("named",) if row.named else ())

    rows = [
        [
            Cell(phase, head=True),
            Cell(causes.size(causes.of(kinds[0], phase).gap)),
            *(cell(phase, cause) for cause in kinds),
        ]
        for phase in dict.fromkeys(row.phase for row in causes.rows)
    ]
    return card_table(["", "as it is", *(SHOWN[cause] for cause in kinds)], rows, causes.caption())


def claim(split: BaseRateSplit, named: bool = False) -> str:
    """Which part makes the difference; `named` says between which groups.

    >>> from tiltmeter.fairness.estimate import Estimate
    >>> parts = Estimate(0.06, 0.05, 0.07), Estimate(0.07, 0.06, 0.08), Estimate(-0.01, -0.02, 0.01)
    >>> claim(BaseRateSplit("error", ("men", "women"), *parts, 0.05))
    'The difference in error comes from base rates.'
    """
    gap, base, within = split.gap, split.base_rates, split.within_labels
    between = f" between {' and '.join(map(group_name, split.pair))}" if named else ""
    what, same_label = f"the difference in {split.curve}{between}", "how cases with the same label are treated"
    if not gap.shown:
        return f"No difference in {split.curve}{between} is clear."
    by_rates, by_decisions = (part.shown and part.value * gap.value > 0 for part in (base, within))
    if by_rates and by_decisions:
        return f"{capital(what)} comes from base rates and from {same_label}."
    if by_rates:
        return f"{capital(what)} comes from base rates."
    if by_decisions:
        return f"{capital(what)} comes from {same_label}, not from base rates."
    return f"It is not clear whether {what} comes from base rates or from {same_label}."


def _bars(split: BaseRateSplit) -> str:
    """Three bars from zero: the difference and its parts, with limits."""
    names = ("difference", "base rates", "same label")
    rows = list(zip(names, (split.gap, split.base_rates, split.within_labels), ("bar tot", "bar", "bar"), strict=True))
    ends = [value for _, one, _ in rows for value in (one.low, one.value, one.high, 0.0) if value == value]
    low, high = min(ends), max(ends)
    span = (high - low) or 1.0

    def x(value: float) -> float:
        return 100 + (value - low) / span * 220

    parts = [svg.line(x(0.0), 4, x(0.0), 92, "axis")]
    for place, (name, one, kind) in enumerate(rows):
        y = 8 + 28 * place
        parts.append(svg.text(94, y + 14, name, "sl", "end"))
        parts.append(svg.box(min(x(0.0), x(one.value)), y, abs(x(one.value) - x(0.0)), 18, kind))
        if one.known:
            parts.append(svg.line(x(one.low), y + 9, x(one.high), y + 9, "ci rest"))
        words = minus(100 * one.value, 1) if split.curve == "error" else number(one.value)
        parts.append(svg.text(x(max(one.high if one.known else one.value, one.value, 0.0)) + 8, y + 14, words, "ann"))
    unit = " in points" if split.curve == "error" else ""
    return svg.picture(400, 96, parts, f"Parts of the difference in {split.curve}{unit}", split_sentence(split), "")


def _reliability(found: Findings, judged: Calibration) -> str:
    """Probability against what happened, for up to five groups (of more, the lowest and the highest)."""
    chosen = list(judged.groups)
    if len(chosen) > 5:
        names = {found.groups[place] for place in found.pair}
        chosen = [one for one in chosen if one.group in names]
    pictures, kinds = [], found.colours
    for one in chosen:
        kind = kinds[found.groups.index(one.group)]
        parts = [
            svg.line(60, 256, 300, 16, "even"),
            svg.line(60, 256, 300, 256, "axis"),
            svg.line(60, 256, 60, 16, "axis"),
        ]
        for share in (0.0, 0.5, 1.0):
            parts.append(svg.text(55, 260 - 240 * share, percent(share, 0), "tick", "end"))
            parts.append(svg.text(60 + 240 * share, 273, percent(share, 0), "tick", "middle"))
        for part in one.bins:
            x, y = 60 + 240 * part.probability, 256 - 240 * part.share.value
            parts.append(svg.line(x, 256 - 240 * part.share.low, x, 256 - 240 * part.share.high, f"ci {kind}"))
            parts.append(svg.mark(x, y, f"dot {kind}"))
        chance = f"chance gives up to {points(one.limit)}"
        caption = f"off by {points(one.error)} on average ({chance})" + (
            ": clearly wrong." if one.shown else ": not clearly wrong."
        )
        drawn = svg.picture(320, 280, parts, f"Reliability of {group_name(one.group)}", caption, "")
        pictures.append(figure(caption, drawn, strong=group_name(one.group)))
    text = (
        f"Calibration: probability of {judged.of} (across) against the share for which it came true (up), in ten bins "
        "of equal size with 95% limits. On the dashed line probabilities are right."
    )
    return f'{paragraph(text)}<div class="mult">{"".join(pictures)}</div>'


#: Right end of the picture: so many times the largest false positive rate, from these rates on.
ROOM, LEAST = 3.0, 0.05
WIDTH, HEIGHT, LEFT, TOP, RIGHT = 620.0, 220.0, 52.0, 10.0, 150.0


def roc_figure(found: Findings, threshold: OwnThreshold | None) -> str:
    """The curves of two to five groups with the points where the model stands; nothing for other pages."""
    if not 2 <= len(found.rocs) <= 5 or len(found.groups) > 5:
        return ""
    end = min(1.0, max(LEAST, ROOM * max(one.at[0] for one in found.rocs), _wanted(found, threshold)))
    end = next(round_end for round_end in (0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0) if round_end >= end)
    across = np.linspace(0.0, end, 121)
    parts = []
    for share in (0.0, 0.5, 1.0):
        y, x = TOP + (1.0 - share) * HEIGHT, LEFT + share * (WIDTH - LEFT - RIGHT)
        parts += [
            svg.line(LEFT, y, WIDTH - RIGHT, y, "grid"),
            svg.text(LEFT - 5, y + 4, percent(share, 0), "tick", "end"),
        ]
        parts.append(svg.text(x, TOP + HEIGHT + 17, percent(share * end, 0 if end >= 0.1 else 1), "tick", "middle"))
    ends = []
    for one in found.rocs:
        place = found.groups.index(one.group)
        heights = one.tpr(across)
        parts.append(svg.path(_x(across, end), _y(heights), f"line thin g{place}"))
        parts.append(svg.mark(float(_x(one.at[0], end)), float(_y(one.at[1])), f"dot g{place}", place % 2 == 1, 4.5))
        ends.append((float(_y(heights[-1])), f"{one.auc:.2f} {group_name(one.group)}", place))
    if threshold is not None:
        parts += _moved(found, threshold, end)
    for (_, words, place), y in zip(ends, svg.spread([e[0] for e in ends], 15.0, TOP, TOP + HEIGHT), strict=True):
        parts.append(svg.text(WIDTH - RIGHT + 5, y + 4, short(words, RIGHT - 5), f"lab g{place}"))
    areas = listed([f"{group_name(one.group)} {number(one.auc)}" for one in found.rocs])
    caption = (
        "True positive rate (up) against false positive rate (across), for every threshold; marks: the one in use. "
        f"Numbers are areas under the whole curves (AUC). {_finding(found)}"
    )
    if threshold is not None:
        caption += f" {threshold_sentence(threshold)}"
    drawn = svg.picture(WIDTH, TOP + HEIGHT + 24, parts, "ROC of every group", f"Areas: {areas}", "")
    return figure(caption, drawn, strong="Ranking and threshold.", middle=True)


def _wanted(found: Findings, threshold: OwnThreshold | None) -> float:
    """The false positive rate at a threshold of its own."""
    if threshold is None:
        return 0.0
    own = next((one for one in found.rocs if one.group == threshold.group), None)
    return 0.0 if own is None else 1.2 * float((own.negatives > threshold.threshold).mean())


def _moved(found: Findings, threshold: OwnThreshold, end: float) -> list[str]:
    own = next((one for one in found.rocs if one.group == threshold.group), None)
    if own is None:
        return []
    at = float((own.negatives > threshold.threshold).mean()), float((own.positives > threshold.threshold).mean())
    if at[0] > end:
        return []
    x, y = float(_x(at[0], end)), float(_y(at[1]))
    kind = f"g{found.groups.index(threshold.group)}"
    ring = f'<circle class="ring {kind}" cx="{x:.1f}" cy="{y:.1f}" r="5.5"/>'
    return [ring, svg.text(x + 9, y + 14, f"at {threshold.threshold:.2f}", "ann")]


def _finding(found: Findings) -> str:
    row = found.extra.get("auc")
    if row is None or not found.two or not row.known:
        return ""
    if not row.clear:
        cut = ": one threshold cuts the groups at different places" if found.headline.clear else ""
        return f"No difference in ranking is clear{cut}."
    better = group_name(row.better_off()[0])
    worse = found.headline.worse_off()
    though = ", though worse off at the threshold in use" if worse and group_name(worse[0]) == better else ""
    return f"On the whole {better} is ranked better{though}."


def _x(share: np.ndarray | float, end: float) -> np.ndarray:
    return np.asarray(LEFT + np.asarray(share) / end * (WIDTH - LEFT - RIGHT))


def _y(share: np.ndarray | float) -> np.ndarray:
    return np.asarray(TOP + (1.0 - np.asarray(share)) * HEIGHT)
