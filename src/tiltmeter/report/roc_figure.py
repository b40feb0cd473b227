"""ROC near the threshold in use: whether groups are ranked differently, or ranked alike and cut at other places."""

from __future__ import annotations

import numpy as np

from tiltmeter.fairness.thresholds import OwnThreshold
from tiltmeter.plot.theme import group_name
from tiltmeter.report import svg
from tiltmeter.report.axes import short
from tiltmeter.report.changes import threshold_sentence
from tiltmeter.report.findings import Findings
from tiltmeter.report.html import figure
from tiltmeter.report.wording import listed, number
from tiltmeter.shown_text import percent

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
