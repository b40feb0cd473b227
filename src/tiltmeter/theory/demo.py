"""The second page of the demo: when and why the lead changes, by exact theory."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from tiltmeter import plot
from tiltmeter.leaders.leaders import leaders
from tiltmeter.leaders.stopping import Stopping, stopping
from tiltmeter.report.page import Section, Table, write_page
from tiltmeter.theory.drivers import drivers
from tiltmeter.theory.dynamics.predict import predict
from tiltmeter.theory.dynamics.stability import timescales
from tiltmeter.theory.plot.drivers import drivers as draw_drivers
from tiltmeter.theory.plot.phase_diagram import phase_diagram
from tiltmeter.theory.problem import cases
from tiltmeter.theory.problem.sgd import SGD
from tiltmeter.theory.problem.teacher_mixture import teacher_mixture
from tiltmeter.version import __version__

STORIES = {
    "One crossing: larger variance first, more data last": cases.centred_crossing,
    "Three phases: shift, then variance, then representation": cases.three_phases,
    "Negative control: equal groups, no bias at any time": cases.no_bias,
}


HEADER = ("problem", "t", "leader", "mean gap", "because")


def theory_page(page: Path) -> list[tuple[str, ...]]:
    """Write the page; returns its first table, a row for each phase, under `HEADER`."""
    sections: list[Section] = []
    rows = []
    for heading, case in STORIES.items():
        print(f"{heading} ...", file=sys.stderr)
        problem, sgd, times = case()
        theory = predict(problem, sgd, times)
        led = leaders(theory, "loss")
        name = case.__name__.replace("_", " ")
        for phase in led.phases:
            span = f"{phase.start:.3g} to {phase.stop:.4g}"
            rows.append((name, span, str(phase.leader), f"{phase.size:.4f}", phase.reason or ""))
        if not led.phases:
            rows.append((name, f"{times[0]:.3g} to {times[-1]:.4g}", "none", "0", "groups alike"))
        charts: list[Any] = [plot.curves(theory, leaders=led, timescales=timescales(problem, sgd))]
        text = [" ".join((case.__doc__ or "").split("\n\n")[0].split()), led.headline.line]
        tables = []
        if led.phases:
            charts += [draw_drivers(drivers(problem, sgd, times)), plot.order_parameters(theory)]
            tables.append(_stopping_table(stopping(theory)))
        sections.append(Section(heading, text, tables, charts))
    print("Phase diagram ...", file=sys.stderr)
    sections.append(_phase_diagram())
    sections.insert(0, Section("In short", tables=[Table(HEADER, rows)]))
    write_page(page, "When and why the lead changes: exact theory", sections, f"tiltmeter {__version__}")
    return [HEADER, *rows]


def _stopping_table(advice: Stopping) -> Table:
    rows = [
        (rule.rule, f"{rule.time:.3g}", f"{rule.gap:.4f}", f"{rule.mean:.4f}", f"{rule.worst:.4f}")
        for rule in advice.rules
    ]
    return Table(("stop for the", "at t", "gap", "mean loss", "worst group"), rows)


def _phase_diagram() -> Section:
    ratio, share = np.geomspace(0.2, 5.0, 100), np.linspace(0.05, 0.95, 100)
    name = "variance of - / variance of +"
    variance = xr.DataArray(0.5 * ratio, dims=name, coords={name: ratio})
    rho = xr.DataArray(share, dims="share of +", coords={"share of +": share})
    problem = teacher_mixture(rho=rho, variance=(0.5, variance), overlap=0.5)
    grid = predict(problem, SGD(lr=0.1), np.geomspace(0.01, 500.0, 120), curves=("loss",))
    text = ["Every point is a separate problem: which group leads at the end, and whether the lead ever changed."]
    return Section("Where the lead changes", text, charts=[phase_diagram(grid)])
