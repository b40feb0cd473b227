"""One experiment of `tiltmeter reproduce`: here, or as the cell of a study in a process of its own."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import xarray as xr

import tiltmeter_lab as lab

if TYPE_CHECKING:
    from tiltmeter_lab.outcome import Outcome

#: Arguments of `one_experiment`: name, scale, seeds, folder, its position in the list, and whether to judge it in part.
Work: TypeAlias = tuple[str, Literal["quick", "full"], int | None, Path, str, bool]


def one_experiment(
    name: str, scale: Literal["quick", "full"], seeds: int | None, to: Path, place: str, partial: bool = False
) -> Outcome:
    """Run one experiment; its failure is reported and does not stop the others."""
    from tiltmeter_lab.reproduce import failure, without
    from tiltmeter_lab.reproduce import reproduce as run

    def progress(text: str) -> None:
        print(f"{place} {name}: {text}", file=sys.stderr, flush=True)

    progress("begins")
    began = time.perf_counter()
    try:
        outcome = run(name, scale, seeds, to, progress, partial)
    except Exception as error:
        outcome = without(name, scale, failure(error), "failed")
    progress(f"{outcome.state}, {time.perf_counter() - began:.1f} s")
    return outcome


def experiment_cell(settings: dict[str, Any]) -> xr.Dataset:
    """The outcome as text: a cell of a study may hold attributes only."""
    work = {**settings, "to": Path(settings["to"])}
    return xr.Dataset(attrs={"outcome": json.dumps(one_experiment(**work).to_json())})


def side_by_side(work: Sequence[Work], jobs: int) -> list[Outcome]:
    """Run several at a time, each in a watched process: one that dies (for example out of memory) stops no other."""
    from tiltmeter_lab.outcome import Outcome
    from tiltmeter_lab.reproduce import without

    names = ("name", "scale", "seeds", "to", "place", "partial")
    cells = [dict(zip(names, (*each[:3], str(each[3].resolve()), *each[4:]), strict=True)) for each in work]
    # In a folder that is thrown away: what an experiment keeps are its runs, and claims are judged anew every time.
    # It is tried once, since an experiment goes on from its runs when the command is repeated.
    with TemporaryDirectory() as folder:
        study = lab.Study(experiment_cell, cells=cells, seeds=None, to=folder, tries=1)
        study.run(progress=False, jobs=jobs)
        found = {str(one["name"]): Outcome.from_json(json.loads(held.attrs["outcome"])) for one, held in results(study)}
        died = {str(one.settings["name"]): one.error for one in study.failures()}
    return [found[each[0]] if each[0] in found else without(each[0], each[1], died[each[0]], "failed") for each in work]


def results(study: lab.Study) -> list[tuple[dict[str, Any], xr.Dataset]]:
    """Complete cells, which all hold datasets."""
    return [(settings, held) for settings, held in study.results() if isinstance(held, xr.Dataset)]
