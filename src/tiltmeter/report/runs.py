"""report: runs as one HTML page that opens offline, to hand to a reviewer."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import xarray as xr

from tiltmeter.analysis.comparison import comparison
from tiltmeter.analysis.crossings import Crossings, crossings
from tiltmeter.analysis.exact import revived
from tiltmeter.analysis.phases import Phases, phases
from tiltmeter.analysis.stopping import stopping
from tiltmeter.forecast.horizon import noted_horizon
from tiltmeter.names import better_of
from tiltmeter.plot.curves import curves as draw
from tiltmeter.record import Trajectory, load
from tiltmeter.record.run_names import numbered
from tiltmeter.report import facts
from tiltmeter.report.model_card import model_card
from tiltmeter.report.page import Section, write_page
from tiltmeter.report.trained_to_the_end import dataset_sections
from tiltmeter.version import __version__

Run = Trajectory | xr.Dataset | str | os.PathLike[str]

#: Curves in this order first, then a user's own.
ORDER = (
    *("loss", "error", "squared_error", "positive_rate", "tpr", "fpr", "ppv"),
    *("margin", "confidence", "calibration_gap"),
)
#: In these the lead is followed, where they exist.
FOLLOWED = ("loss", "error", "squared_error")


def report(runs: Sequence[Run], path: str | os.PathLike[str], *, title: str = "Bias during training") -> Path:
    """Write one self-contained HTML page about runs (trajectories, equilibria, run directories); where it was written.

    What was trained, group sizes, curves with bands and phases, crossings, stopping advice with the price of each rule,
    settings, and a Markdown section for a model card; for several runs also a comparison.
    """
    if isinstance(runs, (Trajectory, xr.Dataset, str, os.PathLike)):
        raise TypeError(f"`runs` should be a list of runs, as [run]. Found {type(runs).__name__}.")
    if not runs:
        raise ValueError("`report` needs at least one run. Found none.")
    loaded = [load(run) if isinstance(run, (str, os.PathLike)) else run for run in runs]
    names = _names(runs, loaded)
    moving = {name: one for name, one in zip(names, loaded, strict=True) if isinstance(one, Trajectory)}
    sections: list[Section] = []
    if moving:
        curve = _main_curve(list(moving.values()))
        if len(moving) > 1:
            sections.append(_together(list(moving.values()), list(moving), curve))
    for one, name in zip(loaded, names, strict=True):
        heading = name if len(loaded) > 1 else ""
        sections += run_sections(one, heading) if isinstance(one, Trajectory) else dataset_sections(one, heading)
    return write_page(Path(path), title, sections, f"tiltmeter {__version__}")


def run_sections(trajectory: Trajectory, name: str = "") -> list[Section]:
    """All about one run."""
    before = f"{name}: " if name else ""
    trajectory = revived(trajectory)  # a theory from disk is solved again once, not for every question
    shown = _shown(trajectory)
    followed, found = _followed(trajectory)
    sentences = _sentences(trajectory, followed, found)
    sections = [Section(f"{before}In short", sentences or ["No curve of groups in which one could lead."])]
    sections.append(Section(f"{before}What was trained", tables=[facts.trained(trajectory)]))
    table = facts.groups(trajectory)
    if table is not None:
        small = _small(trajectory)
        warning = [f"Too few points to judge (fewer than 30): {', '.join(small)}."] if small else []
        sections.append(Section(f"{before}Groups", warning, [table]))
    shades = {curve: lead for curve, lead in followed.items() if isinstance(lead, Phases)}
    charts = [draw(trajectory, curve=curve, phases=shades.get(curve)) for curve in shown]
    sections.append(Section(f"{before}Curves", [_bands(trajectory)], charts=charts))
    if any(lead or lead.undecided for lead in found.values()):
        sections.append(Section(f"{before}Changes of leader", tables=[facts.crossing_rows(found, trajectory.clock)]))
    sections.append(_stopping(trajectory, before, found))
    sections.append(Section(f"{before}Settings", tables=[facts.settings(trajectory)]))
    sections.append(Section(f"{before}For the model card", code=[model_card(trajectory, sentences)]))
    return sections


def lead_sentences(trajectory: Trajectory) -> list[str]:
    """What is said in short about who leads, curve by curve."""
    return _sentences(trajectory, *_followed(trajectory))


def _followed(trajectory: Trajectory) -> tuple[dict[str, Phases | Crossings], dict[str, Crossings]]:
    shown = _shown(trajectory)
    followed = {curve: _lead(trajectory, curve) for curve in FOLLOWED if curve in shown}
    found = {curve: lead.crossings if isinstance(lead, Phases) else lead for curve, lead in followed.items()}
    return followed, found


def _sentences(
    trajectory: Trajectory, followed: dict[str, Phases | Crossings], found: dict[str, Crossings]
) -> list[str]:
    sentences = [f"In {curve}: {_sentence(lead, found[curve])}" for curve, lead in followed.items()]
    horizon = noted_horizon(trajectory)
    return sentences if horizon is None else [*sentences, str(horizon)]


def _bands(trajectory: Trajectory) -> str:
    if any(curve.sizes.get("seed", 1) > 1 for curve in trajectory.values()):
        return "Bands are two standard errors over seeds."
    if any(name.endswith("_se") for name in trajectory):
        return (
            "Bands are two standard errors from the finite number of points. They leave out the noise of training: "
            "another seed may go another way, so confirm a crossing over several seeds before building on it."
        )
    return "These curves are exact, or come without a known uncertainty."


def _together(loaded: Sequence[Trajectory], names: Sequence[str], curve: str) -> Section:
    same = len({trajectory.clock for trajectory in loaded}) == 1
    charts = [draw(*loaded, curve=curve, labels=names)] if same else []
    text = [] if same else ["The runs count time differently and cannot share a chart: convert one with `on_clock`."]
    return Section("Beside one another", text, [facts.compared(comparison(loaded, names, curve))], charts)


def _stopping(trajectory: Trajectory, before: str, found: dict[str, Crossings]) -> Section:
    heading = f"{before}When to stop"
    try:
        advice = stopping(trajectory, curve=next(iter(found)))
    except (ValueError, StopIteration) as error:
        return Section(heading, [str(error) or "No curve to advise from."])
    text = [
        f"Among looks whose mean {advice.curve} is within {advice.within:.0%} of the best seen. Advice from the points "
        "that will judge the model is optimistic."
    ]
    return Section(heading, text, [facts.stopping_rows(advice)])


def _lead(trajectory: Trajectory, curve: str) -> Phases | Crossings:
    """Who leads: phases of two groups, crossings of more."""
    return phases(trajectory, curve) if trajectory[curve].sizes["group"] == 2 else crossings(trajectory, curve)


def _sentence(lead: Phases | Crossings, found: Crossings) -> str:
    return str(lead) + "".join(f" In the noise: {doubt}." for doubt in found.undecided)


def _shown(trajectory: Trajectory) -> list[str]:
    """Curves that a chart can show: of groups, of one run, with at least one positive time."""
    fit = [
        name
        for name, values in trajectory.items()
        if "group" in values.dims
        and set(values.dims) <= {"time", "group", "seed"}
        and not name.endswith("_se")
        and values.sizes["group"] > 1
        and (values.coords["time"].values > 0).any()
    ]
    own = [name for name in fit if name not in ORDER and better_of(name, trajectory[name]) != "neither"]
    return [name for name in ORDER if name in fit] + own


def _main_curve(loaded: Sequence[Trajectory]) -> str:
    for name in FOLLOWED:
        if all(name in trajectory for trajectory in loaded):
            return name
    raise ValueError(f"The runs share none of the curves {', '.join(FOLLOWED)}: nothing to report.")


def _small(trajectory: Trajectory) -> list[str]:
    problem: Any = trajectory.origin.problem
    sizes = problem["look"]["sizes"] if isinstance(problem, dict) and "look" in problem else []
    return [f"{label} ({size})" for label, size in sizes if size < 30]


def _source(run: Trajectory | xr.Dataset) -> str:
    if isinstance(run, Trajectory):
        return run.origin.source
    if isinstance(run, xr.Dataset):
        origin = run.attrs.get("origin")
        return str(origin["source"]) if isinstance(origin, dict) else "dataset"
    raise TypeError(f"`report` takes trajectories, datasets or run directories. Found {type(run).__name__}.")


def _names(runs: Sequence[Run], loaded: Sequence[Trajectory | xr.Dataset]) -> list[str]:
    """The name of the directory, or what made the run; numbered where that does not tell them apart."""
    names = [
        Path(run).name if isinstance(run, (str, os.PathLike)) else _source(one)
        for run, one in zip(runs, loaded, strict=True)
    ]
    return numbered(names)
