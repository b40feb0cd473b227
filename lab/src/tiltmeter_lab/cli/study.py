"""`tiltmeter study`: grids of runs that can be interrupted and continued."""

from __future__ import annotations

import json as json_module
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter

from tiltmeter.cli.terminal import Json, Switch, print_json
from tiltmeter.cli.toml_file import Between, check_keys, check_table, read_toml
from tiltmeter.export.tables import csv_text
from tiltmeter.record.directory.atomic_files import write_atomically
from tiltmeter.shown_text import visible
from tiltmeter_lab.study import Study
from tiltmeter_lab.study.folder import STUDY, read_study
from tiltmeter_lab.study.function_reference import FunctionReference

#: What `[study]` may hold.
HINTS: dict[str, Any] = {
    "cell": str,
    "to": str,
    "seeds": Annotated[int, Between(1)] | tuple[int, ...],
    "version": str,
    "tries": Annotated[int, Between(1)],
    "limit": Annotated[float, Between(0, low_too=False)],
    "fraction": Annotated[float, Between(0, 1, low_too=False)],
}


def find_study(place: Path, run: bool = False) -> Study:
    """The study that a TOML file describes, or that a folder holds; its function is imported only if it shall `run`."""
    if place.is_dir():
        return Study.load(place)
    tables = read_toml(place)
    check_keys(tables, ("study", "factors", "cells"), str(place))
    said = check_table(tables.get("study", {}), HINTS, f"{place}, [study]")
    if "cell" not in said:
        raise KeyError(f'{place}, [study]: `cell` is missing; it names a function, as in cell = "mine:train".')
    function = FunctionReference.from_text(said.pop("cell"), place.parent)
    # Paths are relative to the TOML file, not to the current folder.
    to = place.parent / said.pop("to", f"studies/{place.stem}")
    for name, kind in (("factors", Mapping), ("cells", list)):
        if name in tables and not isinstance(tables[name], kind):
            raise TypeError(f"{place}: `{name}` should be {'a table' if kind is Mapping else 'a list of tables'}.")
    cell = function.find() if run else _stored(to, function)
    return Study(cell, tables.get("factors"), to=to, cells=tables.get("cells"), **said)


def _stored(to: Path, named: FunctionReference) -> FunctionReference:
    """The function by the name under which its cells are stored: that of the module which defines it."""
    return FunctionReference.from_json(read_study(to)["cell"]) if (to / STUDY).is_file() else named


study = App(
    name="study",
    help="Run a grid of settings that survives crashes, on this machine or on a Dask cluster.",
    help_epilogue="Example: `tiltmeter study mine.toml --jobs 2`",
)

Only = Annotated[tuple[str, ...], Parameter(negative_iterable=(), show_default=False)]


@study.default
def run(
    file: Path,
    *,
    jobs: int | None = None,
    dask: str | None = None,
    only: Only = (),
    retry_failed: Switch = False,
    fail_fast: Switch = False,
    json: Json = False,
) -> int:
    """Compute the cells that are missing. Repeat the command to continue after an interruption.

    Exit code 1: a cell failed.

    Parameters
    ----------
    file
        A TOML file that describes the study, or the folder of one that was begun.
    jobs
        Processes of this machine (default: one for each core).
    dask
        The address of a running scheduler (tcp://...), or "local" for one that is started now.
    only
        Only cells with this value, as in width=64; may be repeated.
    retry_failed
        Compute again what failed before.
    fail_fast
        Stop at the first cell that fails.
    """
    found = find_study(file, run=True)
    wanted = _only(only)
    with _executor(dask, jobs) as (executor, processes):
        status = found.run(executor, jobs=processes, only=wanted, retry_failed=retry_failed, fail_fast=fail_fast)
    failures = found.failures()
    if json:
        print_json({**status.to_json(), "folder": str(found.to)})
    else:
        print(status)
        for failure in failures[:10]:
            print(f"  failed: {failure}")
        if len(failures) > 10:
            print(f"  and {len(failures) - 10} more: `tiltmeter study failures {file}`")
    return 1 if failures else 0


@study.command
def status(file: Path, *, json: Json = False) -> None:
    """How many cells are done, failed, running and left.

    Parameters
    ----------
    file
        The TOML file of the study, or its folder.
    """
    found = find_study(file).status()
    if json:
        print_json(found.to_json())
    else:
        print(found)


@study.command(show=False)
def resume(file: Path) -> None:
    """Say how a study is continued."""
    raise ValueError(f"There is no `study resume`: `tiltmeter study {file}` goes on where it stopped.")


@study.command
def failures(file: Path, *, json: Json = False) -> None:
    """The cells that failed, each with its error and where it happened.

    Parameters
    ----------
    file
        The TOML file of the study, or its folder.
    """
    found = find_study(file).failures()
    if json:
        print_json([vars(one) for one in found])
        return
    print(f"{len(found)} cell{'' if len(found) == 1 else 's'} failed.")
    for one in found:
        print(f"\n{one}\n{one.traceback}".rstrip())


@study.command
def table(file: Path, *, csv: Path | None = None, json: Json = False) -> None:
    """The last values of all cells as one table, one row for each cell.

    Parameters
    ----------
    file
        The TOML file of the study, or its folder.
    csv
        Write the table to this file.
    """
    found = find_study(file)
    frame = found.table().to_dataframe().reset_index()
    if csv is not None:
        write_atomically(csv, csv_text(frame.copy()).encode())
    if json:
        print(frame.to_json(orient="records"))
        return
    print(f"{found.status()}")
    print(f"Wrote {csv}" if csv is not None else visible(frame.to_string(index=False)))


def _only(given: Sequence[str]) -> dict[str, list[Any]]:
    wanted: dict[str, list[Any]] = {}
    for one in given:
        name, sign, value = one.partition("=")
        if not sign:
            raise ValueError(f"`--only` should be a factor and its value, as in width=64. Found {one!r}.")
        try:
            wanted.setdefault(name, []).append(json_module.loads(value))
        except ValueError:
            wanted.setdefault(name, []).append(value)
    return wanted


@contextmanager
def _executor(dask: str | None, jobs: int | None) -> Iterator[tuple[Any, int | None]]:
    """The executor and the number of processes for `Study.run`."""
    if dask is None:
        yield None, jobs
        return
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        raise ImportError("`--dask` needs Dask: pip install 'tiltmeter[cluster]'") from None
    if dask == "local":
        with (
            LocalCluster(n_workers=jobs, threads_per_worker=1, dashboard_address=":0") as cluster,
            Client(cluster) as client,
        ):
            yield client, None
        return
    if jobs is not None:
        raise ValueError("`--jobs` counts processes of this machine: leave it out with the address of a scheduler.")
    try:
        client = Client(dask, timeout=10)
    except (OSError, ValueError) as error:
        raise ValueError(f"`--dask` should be the address of a running scheduler. Found {dask}: {error}.") from None
    with client:
        print(f"Dask: {client.scheduler.address if client.scheduler else dask}", file=sys.stderr)
        yield client, None
