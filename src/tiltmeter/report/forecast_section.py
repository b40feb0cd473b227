"""Forecast: what was forecast before or during training, beside the run, and what was promised."""

from __future__ import annotations

import numpy as np

from tiltmeter.forecast.bands import nowcast_step, promise_sentence
from tiltmeter.plot.promise_rule import promised_since
from tiltmeter.record.trajectory import Trajectory
from tiltmeter.report import svg
from tiltmeter.report.findings import Findings, Row
from tiltmeter.report.html import figure, paragraph, section
from tiltmeter.report.stretched_axis import stretched_axis
from tiltmeter.report.wording import capital, moment, number, percents
from tiltmeter.shown_text import percent


def forecast_section(ahead: Findings, found: Findings | None) -> str:
    """The forecast in words and, where a run is there, drawn as circles on its lines."""
    curve = found.headline.term.curve if found is not None else ahead.headline.term.curve
    texts, step = _trusted(ahead.run)
    row = ahead.rows.get(curve)
    if found is None or row is None or row.course is None:
        return section(
            "forecast", "What was forecast", paragraph(" ".join(texts) or "There is no run to compare with.")
        )
    told = _ends(row, ahead.names)
    real = _ends(found.headline, ahead.names)
    begun = nowcast_step(ahead.run.origin)
    if begun is not None:
        last = float(row.course.coords["time"][-1])
        texts.insert(0, f"From step {moment(begun)} on, forecast from the weights and the optimiser at that step.")
        texts.append(f"At step {moment(last)} the forecast of {row.term.name} is {told}.")
        return section(
            "forecast",
            "How the training is forecast to go on",
            paragraph(" ".join(texts)),
            figure(f"{row.term.title}. Circles: forecast. Lines: run.", _draw(found, row, step), middle=True),
        )
    texts.append(f"At the end the forecast of {row.term.name} is {told}; the run has {real}.")
    texts.append(_leaders(ahead, found, curve))
    picture = _draw(found, row, step)
    caption = f"{row.term.title}. Circles: forecast. Lines: run." + (" Shaded: nothing is promised." if step else "")
    return section(
        "forecast",
        "What was forecast before training",
        paragraph(" ".join(texts)),
        figure(caption, picture, middle=True),
    )


def _trusted(ahead: Trajectory) -> tuple[list[str], float | None]:
    """What the forecast promises, in words, and the step from which on it does."""
    sentence = promise_sentence(ahead)
    said = "The forecast promises nothing about the end." if sentence is None else f"{sentence}."
    return [said], promised_since(ahead)


def _ends(row: Row, names: tuple[str, ...]) -> str:
    values = [one.value for one in row.values]
    told = percents(*values) if row.term.share else [number(value) for value in values]
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

    def y(part: np.ndarray) -> np.ndarray:
        return np.asarray(14 + (high - part) / (high - low) * 200)

    def x(part: np.ndarray | float) -> np.ndarray:
        return np.asarray(60 + axis.place(part) * 480)

    parts = []
    if step is not None and step > 0:
        parts.append(svg.box(60, 14, float(x(min(step, axis.last))) - 60, 200, "dim"))
    for level in (low, (low + high) / 2, high):
        at = float(y(np.asarray(level)))
        parts.append(svg.line(60, at, 540, at, "grid"))
        parts.append(svg.text(55, at + 4, percent(level, 0) if row.term.share else number(level), "tick", "end"))
    for time in axis.ticks(480.0):
        parts.append(svg.text(float(x(time)), 232, moment(time), "tick", "middle"))
    for place, kind in enumerate(found.colours):
        parts.append(svg.path(x(times), y(values[:, place]), f"line thin {kind}"))
        for at, value in list(zip(steps, circles[:, place], strict=True))[::2]:
            if np.isfinite(value) and at <= axis.last and kind != "rest":
                parts.append(svg.mark(float(x(at)), float(y(np.asarray(value))), f"dot {kind}", size=2.6))
    return svg.picture(600, 240, parts, f"{row.term.title}: forecast and run", _ends(found.headline, found.names), "")
