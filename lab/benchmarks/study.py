"""Studies: what a cell of no work costs, how two workers compare with one, and how fast a large study is read.

Cells are timed by the clock on the wall, since the work is done in other processes; reading a study by the time of this
process. Bars: two workers at least 1.8
times as fast as one on cells of a second; resuming a finished study of 10,000 cells in under 3 s; its table in under
10 s. The seconds of cells are spent sleeping, so that the ratio shows the engine and not the load of the machine.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import xarray as xr

sys.path.insert(0, str(Path(__file__).parent))
from _measure import best, report

from tiltmeter_lab.study import Study

MANY = 10_000


def nothing(settings: dict[str, Any]) -> xr.Dataset:
    """A cell of no work, which says when it was done."""
    return xr.Dataset({"x": settings["a"] / 3, "done": time.time()})


def second(settings: dict[str, Any]) -> xr.Dataset:
    """A cell of one second that uses no core."""
    time.sleep(1.0)
    return nothing(settings)


def per_cell(cell: Any, folder: Path, count: int, **settings: Any) -> float:
    """Seconds from cell to cell, after the first quarter: until then processes may still be starting."""
    study = Study(cell, {"a": list(range(count))}, to=folder / f"{cell.__name__}-{os.urandom(4).hex()}")
    study.run(progress=False, **settings)
    ends = sorted(study.table()["done"].values.ravel().tolist())
    first = count // 4
    return (ends[-1] - ends[first]) / (count - 1 - first)


def main() -> None:
    rows: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with ThreadPoolExecutor(1) as pool:
            direct = per_cell(nothing, folder, 400, executor=pool)
            slots = per_cell(nothing, folder, 400, jobs=1)
            dask = on_dask(folder)
        one, two = (per_cell(second, folder, 24, jobs=jobs) for jobs in (1, 2))
        many = Study(nothing, {"a": list(range(MANY))}, to=folder / "many")
        with ThreadPoolExecutor(1) as pool:
            many.run(pool, progress=False)
        fresh = Study(nothing, {"a": list(range(MANY))}, to=folder / "many")
        resume = best(lambda: fresh.run(progress=False), 1, time.process_time)
        table = best(fresh.table, 1, time.process_time)
    rows["overhead of a cell of no work, processes over in place"] = {
        "ratio": slots / direct,
        "milliseconds": 1e3 * slots,
    }
    if dask is not None:
        rows["overhead of a cell of no work, Dask over in place"] = {"ratio": dask / direct, "milliseconds": 1e3 * dask}
    rows["two workers over one on cells of a second"] = {"ratio": one / two, "bar": 1.8, "met": one / two >= 1.8}
    rows["resuming a finished study of 10,000 cells, seconds"] = {"ratio": resume, "bar": 3, "met": resume < 3}
    rows["table of 10,000 cells, seconds"] = {"ratio": table, "bar": 10, "met": table < 10}
    report("study", rows, "dask", "distributed")


def on_dask(folder: Path) -> float | None:
    """The same on a local Dask cluster with one worker; None without Dask."""
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        return None
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        return per_cell(nothing, folder, 400, executor=client)


if __name__ == "__main__":
    main()
