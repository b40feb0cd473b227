"""report: runs as one HTML page that opens offline and needs no script, to hand to a reviewer."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import xarray as xr

from tiltmeter.arguments import checked_kind, checked_list, checked_path
from tiltmeter.data.any_frame import is_table
from tiltmeter.fairness.why import refuse_other_than_why
from tiltmeter.plot.offline_page import page_html, script_json
from tiltmeter.plugins import PARTS, plugin
from tiltmeter.question import Question, checked_question
from tiltmeter.record import Trajectory, load
from tiltmeter.record.directory.atomic_files import write_atomically
from tiltmeter.report.comparison_section import comparison_section
from tiltmeter.report.findings import Findings, findings
from tiltmeter.report.first_screen import first_screen
from tiltmeter.report.forecast_section import forecast_section
from tiltmeter.report.html import escape, fold
from tiltmeter.report.page import house_style, page_place
from tiltmeter.report.positive_label import PositiveLabel
from tiltmeter.report.run_page import DISCOVERED, LEVELS, body, contents, discovered_section, facts, levels_section
from tiltmeter.shown_text import numbered
from tiltmeter.version import __version__

if TYPE_CHECKING:
    from tiltmeter.discover.discovery import Discovery
    from tiltmeter.forecast.kernel.why import Why
    from tiltmeter.preview.causes import Causes

Run = Trajectory | xr.Dataset | str | os.PathLike[str]


def report(
    runs: Run | Sequence[Run] | Mapping[str, Run],
    path: str | os.PathLike[str] = "tiltmeter-report.html",
    *,
    title: str | None = None,
    question: Question | None = None,
    why: Why | Causes | None = None,
    discovery: Discovery | None = None,
) -> Path:
    """Write one self-contained HTML page about runs (trajectories, equilibria, run directories); where it was written.

    >>> import tiltmeter as tm
    >>> problem = tm.teacher_mixture(rho=0.8, variance=(0.5, 1.5), overlap=0.5)
    >>> tm.report([tm.predict(problem, tm.SGD(lr=0.1), [1.0, 10.0, 100.0])], "theory.html").name
    'theory.html'

    The first run that was trained is told in full, and begins with the headline of `leaders`: who is worse off, how
    much, since when, how sure, and what would change it at which price. Other trainings stand beside it: what they
    change for each group at the last evaluation and over training (`scorecard`). A forecast is compared with the run.
    All numbers come from one place, and a difference is called clear only by limits that hold over all evaluations,
    measures and groups of a run together.

    Args:
        runs: Trajectories, equilibria or run directories, or one alone; {name: run} names them on the page.
        path: HTML file to write.
        title: Title of the page; None: "Bias during training", or "Bias of the model" for one evaluation.
        question: What a positive decision means to a person; None: the question that the data of a run carry.
        why: Causes of a preview, or what `tangent(...).why(...)` says of the training data; None: left out.
        discovery: Groups nobody labelled, from `tm.discover`; None: left out.
    """
    if discovery is not None:
        from tiltmeter.discover.discovery import Discovery

        checked_kind("discovery", discovery, Discovery, "what tm.discover returns, or None")
    refuse_other_than_why("why", why)
    if is_table(runs):
        raise TypeError(
            "A table of predictions becomes a run first: "
            "tm.report(tm.predictions.run(table, label='label', group='group'))."
        )
    written, told = page(runs, path, title=title, question=question, why=why, discovery=discovery)
    label = told.get("positive_label")
    if label is not None and not label["declared"]:
        warnings.warn(PositiveLabel(**label).guess, stacklevel=2)
    return written


def page(
    runs: Run | Sequence[Run] | Mapping[str, Run],
    path: str | os.PathLike[str],
    *,
    title: str | None,
    question: Question | None = None,
    why: Why | Causes | None = None,
    discovery: Discovery | None = None,
) -> tuple[Path, dict[str, Any]]:
    """The page as `report` writes it, and its numbers."""
    checked_kind("title", title, (str, type(None)), "a text")
    checked_question(question)
    given, runs = _checked_runs(runs)
    path = page_place(checked_path("path", path))
    loaded = [load(run) if isinstance(run, (str, os.PathLike)) else run for run in runs]
    names = given or _names(runs, loaded)
    several = len(loaded) > 1 or given is not None
    asked = [
        findings(one, name if several or isinstance(run, (str, os.PathLike)) else "", _asked(one, question))
        for run, one, name in zip(runs, loaded, names, strict=True)
        if isinstance(one, Trajectory)
    ]
    still = [
        _dataset_section(one, name if several else "")
        for one, name in zip(loaded, names, strict=True)
        if isinstance(one, xr.Dataset)
    ]
    main, others, ahead = _roles(asked) if asked else (None, (), ())
    title = title or ("Bias during training" if main is None or main.several else "Bias of the model")
    told: dict[str, Any] = {
        "title": title,
        "question": None if question is None else question.to_json(),
        "version": __version__,
    }
    top = f'<a class="skip" href="#table">Skip to the table</a><p class="kick title">{escape(title)}</p>'
    if main is None:
        inside = f"<h1>{escape(title)}</h1><main>{''.join(still)}</main>"
    else:
        named = {} if discovery is None else {"discovered": (DISCOVERED, discovered_section(discovery))}
        told |= facts(main, others)
        if main.evaluation is not None and all(isinstance(group, tuple) for group in main.groups):
            named["levels"] = LEVELS, levels_section(main)
        inside = top + _inside(main, others, ahead, asked, still, why, named)
        if discovery is not None:
            told["discovered"] = {"claim": discovery.claim, "groups": [group.to_json() for group in discovery.groups]}
    data = f'<script type="application/json" id="facts">{script_json(told)}</script>'
    footer = (
        f"<footer>Written by tiltmeter {escape(__version__)}. Nothing on this page is loaded from elsewhere.</footer>"
    )
    write_atomically(path, page_html(title, house_style(), f"{inside}\n{footer}\n{data}").encode())
    return path, told


def _checked_runs(runs: Run | Sequence[Run] | Mapping[str, Run]) -> tuple[list[str] | None, list[Run]]:
    """The runs, and the names that were given to them; None: none were."""
    given: list[str] | None = None
    if isinstance(runs, Mapping) and not isinstance(runs, (Trajectory, xr.Dataset)):
        given, runs = [str(name) for name in runs], list(runs.values())
    if isinstance(runs, (Trajectory, xr.Dataset, str, os.PathLike)):
        runs = [runs]
    runs = checked_list("runs", runs, "a list of runs, as [run]")
    for run in runs:
        checked_kind("runs", run, (Trajectory, xr.Dataset, str, os.PathLike), "a list of runs, as [run]")
    if not runs:
        raise ValueError("`report` needs at least one run. Found none.")
    return given, runs


def _inside(
    main: Findings,
    others: tuple[Findings, ...],
    ahead: tuple[Findings, ...],
    asked: list[Findings],
    still: list[str],
    why: Why | Causes | None,
    named: Mapping[str, tuple[str, str]],
) -> str:
    compared = comparison_section(main, others, ahead) if len(asked) > 1 else ""
    forecast = "".join(forecast_section(one, main if one is not main else None) for one in ahead[:1])
    extra = (*((("runs", "Runs"),) if compared else ()), *((anchor, words) for anchor, (words, _) in named.items()))
    rest = "".join(
        fold(f"{one.name}: the whole page of this run", f'<div class="run">{first_screen(one)}{measures}</div>')
        for one, measures in ((one, body(one)) for one in (*others, *ahead))
        if one is not main
    )
    first = first_screen(main, others)
    told = body(main, others, forecast, why)
    more = "".join(text for _, text in named.values())
    return f"{first}{contents(extra, main.several)}<main>{compared}{more}{told}{''.join(still)}{rest}</main>"


def _roles(asked: list[Findings]) -> tuple[Findings, tuple[Findings, ...], tuple[Findings, ...]]:
    """The run to tell in full, the other runs, and forecasts."""
    ahead = tuple(one for one in asked if one.run.origin.source == "forecast")
    trained = [one for one in asked if one.run.origin.source != "forecast"]
    main = trained[0] if trained else asked[0]
    others = tuple(one for one in trained[1:])
    return main, others, tuple(one for one in ahead if one is not main)


def _asked(run: Trajectory, question: Question | None) -> Question | None:
    """The question, for runs that have the curve it asks for; a theory beside them may not."""
    return question if question is not None and question.asked in run else None


def _source(run: Trajectory | xr.Dataset) -> str:
    if isinstance(run, Trajectory):
        return run.origin.source
    origin = run.attrs.get("origin")
    return str(origin["source"]) if isinstance(origin, dict) else "dataset"


def _names(runs: Sequence[Run], loaded: Sequence[Trajectory | xr.Dataset]) -> list[str]:
    """The name of the directory, or what made the run; numbered where that does not tell them apart."""
    names = [
        Path(run).name if isinstance(run, (str, os.PathLike)) else _source(one)
        for run, one in zip(runs, loaded, strict=True)
    ]
    return numbered(names)


def _dataset_section(trained: xr.Dataset, name: str) -> str:
    """The section of a Dataset of `equilibrium`, drawn by the house that made it."""
    section = plugin(PARTS, "equilibrium-section")
    if section is None:
        raise ModuleNotFoundError(
            "A report of fully trained students needs exact theory: pip install 'tiltmeter[theory]'", name="numba"
        )
    return str(section(trained, name))
