"""live: who leads in a training, drawn again in a notebook while it goes on."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

import numpy as np

from tiltmeter.arguments import checked_kind
from tiltmeter.explorer.run_judgement import live_differences, live_told
from tiltmeter.leaders.headline import RATES, at, capital, term
from tiltmeter.leaders.leaders import asked_of, leaders
from tiltmeter.plot.theme import PALETTE, group_name
from tiltmeter.progress import in_notebook
from tiltmeter.record import Trajectory
from tiltmeter.report import svg
from tiltmeter.report.wording import number
from tiltmeter.shown_text import percent, text_html
from tiltmeter.training.probe import Probe

#: Seconds between two drawings: a drawing costs time that the training would use.
PAUSE = 2.0


def live(probe: Probe) -> LiveProbe:
    """A probe that draws what it has seen in the notebook, at most every two seconds; at the end the headline.

    >>> import numpy as np, torch, tiltmeter as tm
    >>> data = tm.GroupedData(np.eye(40, dtype="float32"), [0, 1] * 20, ["a"] * 20 + ["b"] * 20)
    >>> with tm.live(tm.Probe(torch.nn.Linear(40, 1), data, budget=None)) as probe:
    ...     for step in range(3):
    ...         probe(step)
    >>> probe.trajectory()["loss"].sizes["time"]
    3

    While it trains, limits hold for all planned evaluations together, so that looking often names nobody by chance;
    the probe must know how many that are: `Probe(..., settings={"steps": 5000})`. The curve is that of the question of
    the data, else the loss. Outside a notebook nothing is drawn, and one sentence says so.

    Args:
        probe: Probe of the training; call this instead of it.
    """
    checked_kind("probe", probe, Probe, "a Probe, as tm.Probe(model, held_out)")
    return LiveProbe(probe)


class LiveProbe:
    """A probe that draws what it has seen; see `live`."""

    def __init__(self, probe: Probe) -> None:
        self.probe, self._next, self._seen = probe, 0.0, 0
        self._handle: Any = None
        if in_notebook():
            from IPython.display import display

            self._handle = display({"text/plain": "Nothing was evaluated yet."}, raw=True, display_id=True)
        if self._handle is None:
            print("`live` draws in a notebook, and there is none here: nothing is drawn.", file=sys.stderr)

    def __call__(self, step: int) -> None:
        """Evaluate the model after `step` updates, if the probe would, and draw."""
        self.probe(step)
        if self._handle is not None and time.monotonic() >= self._next:
            with suppress(Exception):  # what only shows a run must not end it
                self._draw(self.trajectory())
            self._next = time.monotonic() + PAUSE

    def __enter__(self) -> Self:
        self.probe.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.probe.__exit__(kind, error, trace)
        if self._handle is not None:
            with suppress(Exception):  # what only shows a run must not end it
                judged = leaders(run := self.trajectory())
                self._update(f"{text_html(str(judged.headline))}{_picture(run, judged.curve)}")

    def trajectory(self) -> Trajectory:
        """What is recorded so far."""
        return self.probe.trajectory()

    def _draw(self, run: Trajectory) -> None:
        curve = _curve(run)
        if curve not in run or run[curve].sizes["time"] == self._seen:
            return
        self._seen = run[curve].sizes["time"]
        try:
            pairs, planned = live_differences([run], curve)
            words = str(live_told(pairs, run, planned)["sentence"])
        except ValueError as refused:  # the plan is not known: curves are drawn, and nobody is named
            words = str(refused)
        self._update(f"{text_html(words)}{_picture(run, curve)}")

    def _update(self, html: str) -> None:
        self._handle.update({"text/html": html}, raw=True)


def _curve(run: Trajectory) -> str:
    """The curve of the question of the data, else the loss."""
    question = asked_of(run)
    return "loss" if question is None or question.asked not in run else question.asked


def _picture(run: Trajectory, curve: str) -> str:
    """One line for each group, its name and last value at the end."""
    values: Any = run[curve].transpose("time", "group")
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    x = 4 + 296 * np.arange(len(values)) / max(len(values) - 1, 1)
    y = 30 + 84 * (high - values.values) / ((high - low) or 1.0)
    title = f"{capital(term(curve))} of each group up to {at(run.clock, float(values.coords['time'][-1]))}"
    parts = [svg.text(4, 12, title, "")]
    apart = svg.spread([float(end) for end in np.nan_to_num(y[-1], nan=114.0)], 14.0, 30.0, 114.0)
    for place, group in enumerate(values.coords["group"].values.tolist()):
        last = float(values[-1, place])
        told = percent(last, 0) if curve in RATES else number(last)
        colour = PALETTE[place % len(PALETTE)]
        parts.append(f'<g fill="none" stroke="{colour}" stroke-width="2">{svg.path(x, y[:, place], "")}</g>')
        parts.append(svg.text(306, apart[place] + 4, f"{told} {group_name(group)}", ""))
    drawn = svg.picture(460, 122, parts, title, "", "")
    return f'<div style="max-width:34rem;font-size:12px;fill:currentColor">{drawn}</div>'
