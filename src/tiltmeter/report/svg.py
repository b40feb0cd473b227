"""svg: pictures as text, drawn by hand so that a page needs no script and its colours follow the theme."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tiltmeter.report.html import escape


def text(x: float, y: float, words: object, kind: str, anchor: str = "start") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def box(x: float, y: float, width: float, height: float, kind: str) -> str:
    return f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{max(width, 0):.1f}" height="{max(height, 0):.1f}"/>'


def mark(x: float, y: float, kind: str, square: bool = False, size: float = 3.2) -> str:
    """A round or square dot."""
    if square:
        return box(x - size, y - size, 2 * size, 2 * size, kind)
    return f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{size}"/>'


def path(x: np.ndarray, y: np.ndarray, kind: str) -> str:
    """A line through the finite points, broken where one is missing."""
    parts: list[str] = []
    pen = False
    for a, b in zip(x, y, strict=True):
        if not (np.isfinite(a) and np.isfinite(b)):
            pen = False
            continue
        parts.append(f"{'L' if pen else 'M'}{a:.1f},{b:.1f}")
        pen = True
    return f'<path class="{kind}" d="{"".join(parts)}"/>' if parts else ""


def area(x: np.ndarray, low: np.ndarray, high: np.ndarray, kind: str) -> str:
    """The band between two lines, where both are known."""
    known = np.isfinite(x) & np.isfinite(low) & np.isfinite(high)
    if known.sum() < 2:
        return ""
    there = [f"{a:.1f},{b:.1f}" for a, b in zip(x[known], high[known], strict=True)]
    back = [f"{a:.1f},{b:.1f}" for a, b in zip(x[known][::-1], low[known][::-1], strict=True)]
    return f'<path class="{kind}" d="M{"L".join([*there, *back])}Z"/>'


def picture(width: float, height: float, parts: Sequence[str], title: str, finding: str, kind: str = "wide") -> str:
    """A whole picture; `finding` says in words what is seen."""
    return (
        f'<svg class="{kind}" viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="{escape(title)}">'
        f"<title>{escape(title)}</title><desc>{escape(finding)}</desc>{''.join(parts)}</svg>"
    )


def spread(places: Sequence[float], least: float, low: float, high: float) -> list[float]:
    """Heights of labels moved apart to at least `least`, in the same order, within a frame.

    >>> spread([10.0, 11.0, 50.0], 12.0, 0.0, 60.0)
    [4.5, 16.5, 50.0]
    """
    order = np.argsort(places, kind="stable")
    found = np.asarray(places, dtype=float)[order]
    if len(found) * least <= high - low:
        found = np.clip(found, low, high)
    for _ in range(200):
        gaps = np.diff(found)
        tight = np.flatnonzero(gaps < least - 1e-6)
        if not len(tight):
            break
        for i in tight:
            push = (least - (found[i + 1] - found[i])) / 2
            if push > 0:
                found[i], found[i + 1] = found[i] - push, found[i + 1] + push
        found = np.clip(found, low, high) if len(found) * least <= high - low else found
    result = np.empty(len(found))
    result[order] = found
    return [float(value) for value in result]
