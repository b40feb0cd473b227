"""`tiltmeter demo`: the main use of tiltmeter, on built-in data and problems."""

from __future__ import annotations

import sys
from json import dumps
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from rich import box
from rich.table import Table as Grid

from tiltmeter import plot
from tiltmeter.analysis.drivers import drivers
from tiltmeter.analysis.phases import phases
from tiltmeter.analysis.stopping import Stopping, stopping
from tiltmeter.cli.demo_cure import cure_section
from tiltmeter.cli.demo_digits import digits_section
from tiltmeter.cli.flags import Json
from tiltmeter.cli.terminal import print_table
from tiltmeter.problem import cases
from tiltmeter.problem.sgd import SGD
from tiltmeter.problem.teacher_mixture import teacher_mixture
from tiltmeter.report.page import Section, Table, page_place, write_page
from tiltmeter.theory.predict import predict
from tiltmeter.theory.stability import timescales
from tiltmeter.version import __version__

STORIES = {
    "One crossing: larger variance first, more data last": cases.centred_crossing,
    "Three phases: shift, then variance, then representation": cases.three_phases,
    "Negative control: equal groups, no bias at any time": cases.no_bias,
}


def demo(page: Path = Path("tiltmeter-demo.html"), *, json: Json = False) -> None:
    """Show what tiltmeter does, on built-in examples; writes one HTML page.

    Parameters
    ----------
    page
        Where to write the page.
    """
    page_place(page)
    print("Digits: forecast, then trained ...", file=sys.stderr)
    first, told = digits_section()
    print("Digits with a shortcut: cures forecast, the best one trained ...", file=sys.stderr)
    cured, told_of_cures = cure_section()
    told += told_of_cures
    sections, rows = [first, cured], []
    for heading, case in STORIES.items():
        print(f"{heading} ...", file=sys.stderr)
        problem, sgd, times = case()
        theory = predict(problem, sgd, times)
        found = phases(theory)
        name = case.__name__.replace("_", " ")
        for phase in found:
            span = f"{phase.start:.3g} to {phase.stop:.4g}"
            rows.append((name, span, str(phase.leader), f"{phase.size:.4f}", phase.reason or ""))
        if not found:
            rows.append((name, f"{times[0]:.3g} to {times[-1]:.4g}", "none", "0", "groups alike"))
        charts: list[Any] = [plot.curves(theory, phases=found, timescales=timescales(problem, sgd))]
        text = [(case.__doc__ or "").split("\n")[0], str(found)]
        tables = []
        if found:
            charts += [plot.drivers(drivers(problem, sgd, times)), plot.order_parameters(theory)]
            tables.append(_stopping_table(stopping(theory)))
        sections.append(Section(heading, text, tables, charts))
    print("Phase diagram ...", file=sys.stderr)
    sections.append(_phase_diagram())
    header = ("problem", "t", "leader", "mean gap", "because")
    sections.insert(0, Section("In short", told, [Table(header, rows)]))
    written = write_page(page, "Which group a model favours, when, and why", sections, f"tiltmeter {__version__}")
    if json:
        stories = [dict(zip(header, row, strict=True)) for row in rows]
        print(dumps({"sentences": told, "stories": stories, "page": str(written.resolve())}, indent=2))
        return
    for line in told:
        print(line)
    grid = Grid(*header, box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for row in rows:
        grid.add_row(*row)
    print_table(grid)
    print(f"Pictures: {written.resolve()}")


def _stopping_table(advice: Stopping) -> Table:
    rules = ("smallest gap", "best mean", "best worst group")
    rows = [
        (word, f"{rule.time:.3g}", f"{rule.gap:.4f}", f"{rule.mean:.4f}", f"{rule.worst:.4f}")
        for word, rule in zip(rules, advice.rules, strict=True)
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
    return Section("Where the lead changes", text, charts=[plot.phase_diagram(grid)])
