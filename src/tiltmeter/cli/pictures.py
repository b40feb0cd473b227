"""Pictures of a summarised run, for the verbs that take `--save`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from tiltmeter.cli.summary import Summary


def save_pictures(summary: Summary, paths: Sequence[Path]) -> None:
    """Draw the run's curve, with its phases and time scales where known, to every path."""
    if not paths:
        return
    from tiltmeter import plot
    from tiltmeter.theory.stability import timescales

    scales = timescales(*summary.theory) if summary.theory and not summary.theory[1].scheduled else None
    chart = plot.curves(summary.trajectory, curve=summary.curve, phases=summary.phases, timescales=scales)
    for path in paths:
        plot.save(chart, path)
        print(f"Drew {path}", file=sys.stderr)
