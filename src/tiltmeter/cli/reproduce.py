"""`tiltmeter reproduce`: published findings, run again and judged."""

from __future__ import annotations

import json as machine
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Literal

from rich import box
from rich.console import Console
from rich.table import Table

from tiltmeter.cli.flags import Json, Switch
from tiltmeter.experiments.catalogue import EXPERIMENTS, find
from tiltmeter.experiments.outcome import Outcome
from tiltmeter.experiments.reproduce import failure, outcomes_in, without
from tiltmeter.experiments.reproduce import reproduce as run
from tiltmeter.experiments.verdicts import in_short, write_markdown, write_verdicts


def reproduce(
    *names: str,
    all: Switch = False,
    list: Switch = False,
    scale: Literal["quick", "full"] = "quick",
    seeds: int | None = None,
    to: Path = Path("runs/reproduce"),
    jobs: int = 1,
    markdown: Path | None = None,
    json: Json = False,
) -> int:
    """Run published experiments again and say, claim by claim, whether they hold.

    Exit code 1: an experiment failed.

    Parameters
    ----------
    names
        Which experiments.
    all
        All of them.
    list
        Only list them.
    scale
        quick: seconds to a minute each; full: the published setting.
    seeds
        How many seeds, instead of the experiment's own number.
    to
        Where to keep the runs and the page verdicts.html; what is complete there is not run again.
    jobs
        How many experiments at a time, each in a process of its own.
    markdown
        Write all verdicts as a page of the documentation, too.
    """
    if list:
        _list(json)
        return 0
    if all == bool(names):
        raise ValueError("Name experiments, or pass --all, or --list to see which there are.")
    for name in names:
        if name not in EXPERIMENTS:
            raise KeyError(f"No experiment {name!r}. There are: {', '.join(EXPERIMENTS)}.")
    for word, number in (("seeds", seeds), ("jobs", jobs)):
        if number is not None and number < 1:
            raise ValueError(f"`{word}` should be a number of them, at least 1. Found {word} = {number}.")
    chosen = tuple(EXPERIMENTS) if all else tuple(dict.fromkeys(names))
    work = [(name, scale, seeds, to, f"[{i}/{len(chosen)}]") for i, name in enumerate(chosen, start=1)]
    if jobs == 1:
        outcomes = [_one(*each) for each in work]
    else:
        # Fresh processes: a fork would share the threads of libraries that do not survive it.
        with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
            outcomes = [one.result() for one in [pool.submit(_one, *each) for each in work]]
    _tell(outcomes, json)
    to.mkdir(parents=True, exist_ok=True)
    found = outcomes_in(to)
    print(f"Page: {write_verdicts(found, to / 'verdicts.html')}", file=sys.stderr)
    if markdown is not None:
        print(f"Wrote {write_markdown(found, markdown)}", file=sys.stderr)
    return 1 if any(one.state == "failed" for one in outcomes) else 0


def _one(name: str, scale: Literal["quick", "full"], seeds: int | None, to: Path, place: str) -> Outcome:
    """One experiment; its failure is told and does not stop the others."""

    def progress(text: str) -> None:
        print(f"{place} {name}: {text}", file=sys.stderr, flush=True)

    progress("begins")
    began = time.perf_counter()
    try:
        outcome = run(name, scale, seeds, to, progress)
    except Exception as error:
        outcome = without(name, scale, failure(error), "failed")
    progress(f"{outcome.state}, {time.perf_counter() - began:.1f} s")
    return outcome


def _tell(outcomes: list[Outcome], json: bool) -> None:
    if json:
        print(machine.dumps([one.to_json() for one in outcomes], indent=2, allow_nan=False))
        return
    print(in_short(outcomes))
    for one in outcomes:
        print(f"\n{one.sentence}")
        if one.state == "run":
            for claim in one.claims:
                print(f"  {claim}")


def _list(json: bool) -> None:
    rows = []
    for name in EXPERIMENTS:
        try:
            module = find(name)
            rows.append((name, module.TITLE, module.PAPER, ", ".join(module.NEEDS)))
        except ModuleNotFoundError as error:
            rows.append((name, f"(needs {error.name}, which is not installed)", "", ""))
    if json:
        keys = ("name", "title", "paper", "needs")
        print(machine.dumps([dict(zip(keys, row, strict=True)) for row in rows], indent=2))
        return
    table = Table("experiment", "shows", "finding of", "needs data", box=box.SIMPLE_HEAD)
    for row in rows:
        table.add_row(*row)
    print(f"{len(rows)} experiments.")
    Console(highlight=False).print(table)
