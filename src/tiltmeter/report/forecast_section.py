"""Forecast: what was forecast before or during training, beside the run, and what was promised."""

from __future__ import annotations

import numpy as np

from tiltmeter.forecast.bands import nowcast_step, promise_sentence
from tiltmeter.leaders.headline import capital
from tiltmeter.plot.promise_rule import promised_since
from tiltmeter.report import svg
from tiltmeter.report.axes import Axes, Frame, stretched_axis
from tiltmeter.report.findings import Findings, Row
from tiltmeter.report.html import figure, paragraph, section
from tiltmeter.report.wording import moment

FRAME = Frame(600.0, 60.0, 60.0, 14.0, 200.0)


def forecast_section(ahead: Findings, found: Findings | None) -> str:
    """The forecast in words and, where a run is there, drawn as circles on its lines."""
    curve = found.headline.term.curve if found is not None else ahead.headline.term.curve
    sentence, step = promise_sentence(ahead.run), promised_since(ahead.run)
    texts = ["The forecast promises nothing about the end." if sentence is None else f"{sentence}."]
    row = ahead.rows.get(curve)
    if found is None or row is None or row.course is None:
        return section(
            "forecast", "What was forecast", paragraph(" ".join(texts) or "There is no run to compare with.")
        )
    told = _ends(row, ahead.names)
    real = _ends(found.headline, ahead.names)
    begun = nowcast_step(ahead.run.origin)
    caption = f"{row.term.title}. Circles: forecast. Lines: run."
    if begun is not None:
        last = float(row.course.coords["time"][-1])
        texts.insert(0, f"From step {moment(begun)} on, forecast from the weights and the optimiser at that step.")
        texts.append(f"At step {moment(last)} the forecast of {row.term.name} is {told}.")
        return section(
            "forecast",
            "How the training is forecast to go on",
            paragraph(" ".join(texts)),
            figure(caption, _draw(found, row, step), middle=True),
        )
    texts.append(f"At the end the forecast of {row.term.name} is {told}; the run has {real}.")
    texts.append(_leaders(ahead, found, curve))
    caption += " Shaded: nothing is promised." if step else ""
    return section(
        "forecast",
        "What was forecast before training",
        paragraph(" ".join(texts)),
        figure(caption, _draw(found, row, step), middle=True),
    )


def _ends(row: Row, names: tuple[str, ...]) -> str:
    told = row.term.row(*(one.value for one in row.values))
    return ", ".join(f"{value} for {name}" for value, name in zip(told[:6], names, strict=False))


def _leaders(ahead: Findings, found: Findings, curve: str) -> str:
    """Whether forecast and run put the same group ahead, of two."""
    if not found.two or ahead.groups != found.groups:
        return ""
    first, second = (one.rows[curve].values for one in (ahead, found))
    same = np.sign(first[0].value - first[1].value) == np.sign(second[0].value - second[1].value)
    if not found.rows[curve].clear:
        return "In the run no difference is clear, so there is no leader to compare with."
    judged = ahead.judged.of(curve).differences if ahead.judged.basis == "forecast" else ()
    if judged and not judged[0].sign[-1]:
        return "The forecast names no leader at the end: its limits contain zero."
    return capital("the forecast has the same group ahead." if same else "the forecast has the other group ahead.")


def _draw(found: Findings, row: Row, step: float | None) -> str:
    real = found.headline.course
    assert real is not None
    assert row.course is not None
    times, values = real.coords["time"].values.astype(float), real.values
    steps, circles = row.course.coords["time"].values.astype(float), row.course.values
    # A nowcast goes on beyond the last evaluation of the run.
    axis = stretched_axis(np.union1d(times, steps) if steps[0] > times[0] else times)
    every = np.concatenate([values.ravel(), circles.ravel()])
    finite = every[np.isfinite(every)]
    low, high = min(0.0, float(finite.min())), float(finite.max()) or 1.0

    axes = Axes(FRAME, axis, low, high)
    parts = []
    if step is not None and step > 0:
        parts.append(svg.box(60, 14, float(axes.x(min(step, axis.last))) - 60, 200, "dim"))
    parts += axes.levels([(level, row.term.told(level, 0)) for level in (low, (low + high) / 2, high)])
    parts += axes.moments()
    for place, kind in enumerate(found.colours):
        parts.append(svg.path(axes.x(times), axes.y(values[:, place]), f"line thin {kind}"))
        for at, value in list(zip(steps, circles[:, place], strict=True))[::2]:
            if np.isfinite(value) and at <= axis.last and kind != "rest":
                parts.append(svg.mark(float(axes.x(at)), float(axes.y(value)), f"dot {kind}", size=2.6))
    return svg.picture(600, 240, parts, f"{row.term.title}: forecast and run", _ends(found.headline, found.names), "")
