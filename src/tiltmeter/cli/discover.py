"""`tiltmeter discover`: groups nobody labelled, by the learning curves of the held-out points."""

from __future__ import annotations

import json as machine
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from tiltmeter.cli.terminal import Json, print_json, print_rows


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """How groups are found and judged."""

    level: float = 0.05
    "How often any group may be called clear by chance, over all rules and evaluations together."
    judge: float = 0.5
    "The share of the points that is set aside to judge what the others find."
    most: int = 6
    "Most rules that are judged, by the loss at the end and again by the course of training."
    depth: int = 3
    "Conditions that a rule may have."
    seed: int = 0
    "Which points judge."


def discover(
    run: Path,
    *,
    table: Path,
    without: Annotated[tuple[str, ...], Parameter(negative_iterable=())] = (),
    options: SearchOptions = SearchOptions(),
    to: Path | None = None,
    run_to: Path | None = None,
    json: Json = False,
) -> None:
    """Find groups that are worse off or learned later, in the words of a table, and judge them on other points.

    Parameters
    ----------
    run
        The run directory; its probe should have kept the held-out points.
    table
        A .csv, .parquet or .feather file: the table that was trained on, or one row for every held-out point, in order.
    without
        A column that is left out, as the label; may be repeated.
    to
        Write the groups to this new file (.json), for `tiltmeter report --groups` and `tm.results.Discovery`.
    run_to
        Save the points that judged, in the clear groups, as a new run directory, for `tiltmeter report` and others.
    """
    from tiltmeter.data.any_frame import frame_from_file
    from tiltmeter.discover.discover import discover as search
    from tiltmeter.record import Trajectory, load, save
    from tiltmeter.record.directory.atomic_files import write_atomically

    if to is not None and (to.exists() or to.suffix != ".json"):
        raise ValueError(f"`--to` should be a new file that ends in .json. Found {to}.")
    loaded = load(run)
    if not isinstance(loaded, Trajectory):
        raise ValueError(f"{run} holds a dataset, not a run over time.")
    rows = frame_from_file(table)
    for name in without:
        if name not in rows.columns:
            raise KeyError(f"`--without`: no column {name!r}. There are: {', '.join(map(repr, rows.columns))}.")
    rows = rows.drop(columns=list(without))
    discovery = search(loaded, rows, **asdict(options))
    if to is not None:
        write_atomically(to, (machine.dumps(discovery.to_json(), indent=2, allow_nan=False) + "\n").encode())
    if run_to is not None:
        save(discovery.run(), run_to)
    if json:
        print_json(discovery.to_json())
        return
    print(discovery)
    if discovery.groups:
        print_rows(discovery.heads, map(discovery.cells, discovery.groups))
    for word, place in {"Groups": to, "Run": run_to}.items():
        if place is not None:
            print(f"{word}: {place.resolve()}")
