"""`tiltmeter reproduce`: run published findings again and judge them."""

from __future__ import annotations

import json as machine
import sys
from collections.abc import Sequence
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

import tiltmeter as tm
from tiltmeter_lab.catalogue import EXPERIMENTS, entry_of, known
from tiltmeter_lab.quick_times import QUICK_SECONDS

if TYPE_CHECKING:
    from tiltmeter_lab.outcome import Outcome

#: A flag without a value and without a `--no-` form.
Switch = Annotated[bool, Parameter(negative="", show_default=False)]
Json = Annotated[bool, Parameter(negative="", show_default=False, help="Print the results as JSON.")]


def reproduce(
    *names: str,
    all: Switch = False,
    list: Switch = False,
    scale: Literal["quick", "full"] = "quick",
    seeds: int | None = None,
    to: Path = Path("runs/reproduce"),
    jobs: int = 1,
    partial: Switch = False,
    store: Path | None = None,
    json: Json = False,
) -> int:
    """Run published experiments again and report, claim by claim, what is clear, contradicted or undecided.

    Complete experiments in the directory are not run again, so you can repeat an interrupted command to continue it.
    The page verdicts.html there shows all verdicts with their pictures. Exit code 1: an experiment failed; a claim that
    is contradicted is a result, not a failure.

    Parameters
    ----------
    names
        Names of the experiments.
    all
        Run all of them.
    list
        Only list them (or those named).
    scale
        quick: seconds to a few minutes each; full: the published setting.
    seeds
        Number of seeds, instead of the experiment's default.
    to
        Folder for the runs and the page verdicts.html; complete experiments there are not run again.
    jobs
        Number of experiments to run at the same time, each in its own process.
    partial
        Compute nothing: judge what an interrupted experiment has so far, with its counts. For those whose runs are
        cells of a study.
    store
        Also store all outcomes in this JSON file, of which the documentation makes its pages; others there stay.
    """
    for name in names:
        known(name)
    if list:
        _list(names or tuple(EXPERIMENTS), json)
        return 0
    if all == bool(names):
        raise ValueError("Name experiments, or pass --all, or --list to see all names.")
    from tiltmeter_lab.one_experiment import one_experiment, side_by_side
    from tiltmeter_lab.reproduce import outcomes_in
    from tiltmeter_lab.verdict_page import write_outcomes
    from tiltmeter_lab.verdicts import write_verdicts

    for word, number in (("seeds", seeds), ("jobs", jobs)):
        if number is not None and number < 1:
            raise ValueError(f"`{word}` should be a number of them, at least 1. Found {word} = {number}.")
    chosen = tuple(EXPERIMENTS) if all else tuple(dict.fromkeys(names))
    work = [(name, scale, seeds, to, f"[{i}/{len(chosen)}]", partial) for i, name in enumerate(chosen, start=1)]
    try:
        to.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"`to` should be a writable folder. Found {to}: {error.strerror}.") from None
    try:
        outcomes = [one_experiment(*each) for each in work] if jobs == 1 else side_by_side(work, jobs)
    except KeyboardInterrupt:
        print(f"Interrupted: repeat the command to continue; complete experiments are in {to}.", file=sys.stderr)
        raise
    _tell(outcomes, json)
    found = outcomes_in(to)
    # With --json, stdout is for machines only.
    print(f"\nPage: {write_verdicts(found, to / 'verdicts.html')}", file=sys.stderr if json else sys.stdout)
    if store is not None:
        print(f"Wrote {write_outcomes(found, store)}", file=sys.stderr)
    return 1 if any(one.state == "failed" for one in outcomes) else 0


def _tell(outcomes: list[Outcome], json: bool) -> None:
    if json:
        print(machine.dumps([one.to_json() for one in outcomes], indent=2, allow_nan=False))
        return
    from tiltmeter_lab.verdicts import in_short

    print(in_short(outcomes))
    for one in outcomes:
        print(f"\n{one.sentence}")
        if one.state == "run":
            for claim in one.claims:
                print(f"  {claim}")
    print("\nIntervals hold with 95 %; a number without one is exact, or has no known error (measured).")


def _list(names: Sequence[str], json: bool) -> None:
    rows = [(entry, [one for one in entry.needs if not tm.data.is_present(one)]) for entry in map(entry_of, names)]
    if json:
        found = [
            {
                "name": entry.name,
                "title": entry.title,
                "paper": entry.paper,
                "needs": ", ".join(entry.needs),
                "absent": ", ".join(absent),
                "quick_seconds": QUICK_SECONDS.get(entry.name),
            }
            for entry, absent in rows
        ]
        print(machine.dumps(found, indent=2))
        return
    from rich import box
    from rich.console import Console
    from rich.table import Column, Table

    # Names are never truncated, so that they can be copied.
    first = Column("experiment", no_wrap=True, min_width=max(map(len, names)))
    console = Console(highlight=False, markup=False, emoji=False)
    table = Table(first, *(("quick",) if len(rows) > 1 else ()), "shows", box=box.SIMPLE_HEAD)
    room = console.width - max(map(len, names)) - 20
    for entry, absent in rows:
        if len(rows) > 1:
            time = spell(QUICK_SECONDS[entry.name]) if entry.name in QUICK_SECONDS else ""
            table.add_row(
                entry.name, "no data" if absent else time, shorten(entry.title, max(room, 20), placeholder=" …")
            )
            continue
        lines = [entry.title, entry.paper]
        if entry.name in QUICK_SECONDS:
            lines.append(f"Takes about {spell(QUICK_SECONDS[entry.name])} at scale quick.")
        if entry.needs:
            lacking = f"; not here: {', '.join(absent)}" if absent else ""
            lines.append(f"Needs the data of {', '.join(entry.needs)}{lacking}.")
        table.add_row(entry.name, "\n".join(lines))
    seconds = sum(QUICK_SECONDS.get(entry.name, 0) for entry, _ in rows)
    total = f" At scale quick, about {spell(seconds)} on two cores." if len(rows) > 1 and seconds else ""
    print(f"{len(rows)} experiment{'s' if len(rows) != 1 else ''}.{total}")
    console.print(table)  # cells are plain text: brackets are not markup, and colons are not emoji
    if len(rows) > 1:
        print("All about one: tiltmeter reproduce --list NAME")


def spell(seconds: float) -> str:
    """A time in words.

    >>> spell(600)
    '10 min'
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
