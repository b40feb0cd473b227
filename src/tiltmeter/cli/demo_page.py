"""The first page of the demo: a forecast against its training, and interventions as bars, drawn for both widths."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tiltmeter.advice.advice import PLAIN, Advice
from tiltmeter.leaders.headline import amounts, capital, in_points, size_of, term
from tiltmeter.leaders.leaders import Leaders
from tiltmeter.names import NOBODY
from tiltmeter.plot.offline_page import page_html
from tiltmeter.plot.theme import group_name
from tiltmeter.record.directory.atomic_files import write_atomically
from tiltmeter.record.trajectory import Trajectory
from tiltmeter.report import svg
from tiltmeter.report.axes import Axes, Frame, stretched_axis
from tiltmeter.report.html import escape, figure, paragraph, section
from tiltmeter.report.page import house_style
from tiltmeter.version import __version__

WIDE = Frame(900.0, 76.0, 132.0, height=300.0)
NARROW = Frame(360.0, 64.0, 104.0, height=220.0)
FRAMES = ((WIDE, "wide"), (NARROW, "narrow"))
#: Marks of the training along each line.
MARKS = 24


def write_demo_page(path: Path, title: str, sections: Sequence[str], theory: Path | None) -> Path:
    """The first page, without any script; `theory` is the page it leads to, if there is one."""
    title_of_theory = "when and why the lead changes"
    link = (
        ""
        if theory is None
        else (f'<p>Exact theory, on a second page: <a href="{escape(theory.name)}">{title_of_theory}</a>.</p>')
    )
    kicker = '<p class="kick">tiltmeter demo</p>'
    body = f"{kicker}<h1>{escape(title)}</h1>{''.join(sections)}{link}<footer>tiltmeter {escape(__version__)}</footer>"
    write_atomically(path, page_html(title, house_style(), body).encode())
    return path


def forecast_part(
    heading: str, text: str, ahead: Trajectory, run: Trajectory, led: tuple[Leaders, Leaders], distance: float
) -> str:
    """The picture first, then what forecast and training say; `led` are the leaders of both, the forecast's first."""
    curve = led[1].curve
    caption = (
        "Lines: forecast before training, with bands of two standard errors. Marks: the training itself. Below: who "
        f"is clearly better off. The two differ by at most {size_of(curve, distance)}."
    )
    drawn = [_forecast(ahead, run, led, frame, kind, curve) for frame, kind in FRAMES]
    named = list(zip(("Forecast", "Trained"), led, strict=True))
    lines = [paragraph(f"{name}: {one.headline.line}") for name, one in named]
    small = [paragraph(f"{name}: {one.headline.licence}", "note") for name, one in named]
    picture = figure(caption, *drawn, strong=f"{capital(term(curve))} of each group.")
    return section("forecast", heading, picture, *lines, *small, paragraph(text, "note"))


def _forecast(
    ahead: Trajectory, run: Trajectory, led: tuple[Leaders, Leaders], frame: Frame, kind: str, curve: str
) -> str:
    values, error, real = ahead[curve], ahead[f"{curve}_se"], run[curve]
    times, steps = (one.coords["time"].values.astype(float) for one in (values, real))
    axis = stretched_axis(times, np.array([change.low for one in led for change in one.changes]))
    top = 1.05 * float(np.nanmax([(values + 2 * error).max(), real.max()]))

    axes = Axes(frame, axis, 0.0, top)
    right, bottom = frame.left + frame.room, frame.bottom
    step = 0.1 if top < 0.6 else 0.2
    parts = (
        axes.levels(
            [(level, amounts(curve, round(level, 6))[0] if level else "0") for level in np.arange(0.0, top, step)]
        )
        + axes.moments()
    )
    parts.append(svg.text(right + 26, bottom + 17, "steps", "tick"))
    parts.append(svg.text(frame.left - 30, frame.top - 10, term(curve), "tick"))
    names, ends = [], []
    groups = values.coords["group"].values.tolist()
    for place, group in enumerate(groups):
        middle, width, marks = (one.sel(group=group).values for one in (values, 2 * error, real))
        parts.append(svg.area(axes.x(times), axes.y(middle - width), axes.y(middle + width), f"band g{place}"))
        parts.append(svg.path(axes.x(times), axes.y(middle), f"line g{place}"))
        apart = np.unique(np.searchsorted(axis.place(steps), np.linspace(0.0, 1.0, MARKS)).clip(max=len(steps) - 1))
        parts += [
            svg.mark(float(axes.x(steps[i])), float(axes.y(marks[i])), f"ring g{place}", size=3.4)
            for i in apart
            if np.isfinite(marks[i])
        ]
        names.append(f"{group_name(group)} {amounts(curve, float(marks[-1]))[0]}")
        ends.append(float(axes.y(marks[-1])))
    for place, (words, height) in enumerate(zip(names, svg.spread(ends, 15.0, frame.top, frame.bottom), strict=True)):
        parts.append(svg.text(right + 8, height + 4, words, f"lab g{place}"))
    below = bottom + 30
    for name, one in zip(("forecast", "trained"), led, strict=True):
        parts.append(svg.text(frame.left - 6, below + 12, name, "sl", "end"))
        for phase in one.phases:
            left, right = float(axes.x(max(phase.start, axis.first))), float(axes.x(phase.stop))
            shade = "none" if phase.leader == NOBODY else f"g{groups.index(phase.leader)}"
            words = "not clear" if phase.leader == NOBODY else group_name(phase.leader)
            parts.append(svg.box(left, below, max(right - left, 1.5), 16, f"st {shade}"))
            if 6.4 * len(words) + 8 < right - left:
                parts.append(svg.text((left + right) / 2, below + 12, words, f"stx {shade}", "middle"))
        below += 22
    title = f"{capital(term(curve))} of each group by step: forecast and trained"
    return svg.picture(frame.width, below + 4, parts, title, f"At the end of training: {', '.join(names)}.", kind)


def advice_part(heading: str, text: str, advice: Advice) -> str:
    """The answer, one bar for each training, and how it was judged."""
    drawn = [_bars(advice, frame, kind) for frame, kind in FRAMES]
    caption = (
        "at the end of training; shorter is better. Lines: 95 % limits of the change against plain, for all bars "
        "together."
    )
    return section(
        "advice",
        heading,
        paragraph(advice.headline),
        figure(caption, *drawn, strong=f"Gap in {term(advice.curve)}"),
        paragraph(f"{advice.method}. {text}", "note"),
    )


def _bars(advice: Advice, frame: Frame, kind: str) -> str:
    rows = [row for row in advice.ranked if np.isfinite(advice.value(advice.runs[row.name]))]
    values = {row.name: advice.value(advice.runs[row.name]) for row in rows}
    plain = values[PLAIN]
    limits = {
        name: (plain + one.gap.low, plain + one.gap.high) for name, one in advice.changes.items() if name in values
    }
    top = max(*values.values(), *(high for _, high in limits.values()))
    left, room = 8.0, frame.width - 16.0
    parts, told, y = [], [], 4.0
    for row in rows:
        change = advice.changes.get(row.name)
        verdict, pays = "", ""
        if change is not None:
            verdict = "smaller gap" if change.helps else "not recommended" if change.reason else "no clear gain"
            names = " and ".join(map(group_name, change.pays))
            pays = f"their error rises: {names}" if names else "no group's error rises"
        notes = [part for part in (verdict, pays) if part]
        words = f"{capital(row.name)} {in_points(advice.curve, values[row.name], unit=True)}"
        parts.append(svg.text(left, y + 12, words, "sh"))
        parts.append(svg.text(left, y + 46, capital("; ".join(notes)), "ann"))
        parts.append(
            svg.box(left, y + 18, values[row.name] / top * room, 14, "bar" if row.name == PLAIN else "st rest")
        )
        if row.name in limits:
            low, high = (left + max(limit, 0.0) / top * room for limit in limits[row.name])
            parts += [svg.line(low, y + 25, high, y + 25, "err")]
            parts += [svg.line(end, y + 21, end, y + 29, "err") for end in (low, high)]
        told.append(f"{words} {'; '.join(notes)}".strip())
        y += 62.0 if notes else 40.0
    return svg.picture(frame.width, y, parts, "Gap with each intervention", ". ".join(told), kind)
