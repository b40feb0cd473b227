"""Pictures, for the verbs that have `--save`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tiltmeter.cli.summary import Summary


def save_pictures(summary: Summary, paths: Sequence[Path]) -> None:
    """Draw the run's curve, with its phases and time scales if known, to every path."""
    if not paths:
        return
    from tiltmeter import plot
    from tiltmeter.theory.stability import timescales

    if "class" in summary.trajectory[summary.curve].dims:
        draw(plot.class_curves(summary.trajectory, summary.curve), paths)
        return
    scales = timescales(*summary.theory) if summary.theory and not summary.theory[1].scheduled else None
    draw(plot.curves(summary.trajectory, curve=summary.curve, phases=summary.phases, timescales=scales), paths)


def draw(chart: Any, paths: Sequence[Path]) -> None:
    """Write the chart to every path, and report it."""
    from tiltmeter import plot

    for path in paths:
        plot.save(chart, path)
        print(f"Drew {path}", file=sys.stderr)
