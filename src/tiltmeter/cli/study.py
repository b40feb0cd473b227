"""`tiltmeter study`: grids of runs that can be interrupted and continued."""

from __future__ import annotations

import json as json_module
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter

from tiltmeter.cli.flags import Json, Switch
from tiltmeter.cli.study_file import find_study

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
        print(json_module.dumps({**status.to_json(), "folder": str(found.to)}))
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
    print(json_module.dumps(found.to_json()) if json else found)


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
        print(json_module.dumps([vars(one) for one in found]))
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
        frame.to_csv(csv, index=False)
    if json:
        print(frame.to_json(orient="records"))
        return
    print(f"{found.status()}")
    print(f"Wrote {csv}" if csv is not None else frame.to_string(index=False))


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
