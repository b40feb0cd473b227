"""The explorer: from a key press on a slider to redrawn curves, against a page that only moves a line; lists; lag.

    python benchmarks/explorer.py      # or: tiltmeter bench explorer

Needs Chromium, playwright and the extra `[explore]`. Times of a browser depend on the machine and on what else it does:
run it on an idle machine. The first ratio is measured in one run, in alternation. Bars: at most twice the page that
only moves a line; 2,000 run directories listed within 1 s; an evaluation of a live run on the page within 0.3 s
(median); the event loop at most 20 ms late, even once, while forecasts run. The goal for the slider is 35 ms, 60 ms at
the 95th percentile."""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

import xarray as xr

sys.path.insert(0, str(Path(__file__).parent))
from _explorer_page import in_chromium
from _measure import report

from tiltmeter.explorer.run_curves import run_curves
from tiltmeter.explorer.run_rows import run_rows
from tiltmeter.record import Origin, Recorder
from tiltmeter.record.directory.atomic_files import sealed_line

EVALUATIONS, RUNS = 100_000, 2000
Row = dict[str, Any]


def main() -> None:
    rows: dict[str, Row] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows |= listing(folder / "many")
        rows |= long_run(folder / "long")
        command = [sys.executable, str(Path(__file__).with_name("_explorer_server.py")), str(folder / "live")]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            assert server.stdout is not None
            address = server.stdout.readline().strip()
            times = in_chromium(address, folder / "live")
            rows = {
                **slider(times),
                "an evaluation of a live run, from disk to page, median ms": within(times["live"], 300),
                **rows,
            }
            rows |= lag(address)
        finally:
            server.terminate()
            server.wait()
    report("explorer", rows, "starlette", "uvicorn", "playwright")


def slider(times: dict[str, list[float]]) -> dict[str, Row]:
    ratio = statistics.median(times["theory"]) / statistics.median(times["plain"])
    found: dict[str, Row] = {
        "key press to redrawn curves over a page that moves a line": {"ratio": ratio, "bar": 2.0, "met": ratio <= 2.0}
    }
    for name, word in (("theory", "theory page"), ("plain", "page that moves a line")):
        found[f"key press to redrawn, {word}, median ms"] = spread(times[name])
    late = spread(times["theory"])["at 95 %"]
    found["key press to redrawn, theory page, 95th percentile ms"] = {"ratio": late, "bar": 60, "met": late <= 60}
    found["key press to redrawn, theory page, median ms"] |= {
        "bar": 35,
        "met": statistics.median(times["theory"]) <= 35,
    }
    return found


def listing(folder: Path) -> dict[str, Row]:
    """2,000 run directories, listed for the first time and again."""
    write(folder / "r0", 20)
    for number in range(1, RUNS):
        shutil.copytree(folder / "r0", folder / f"r{number}")
    found = {}
    for word in ("first", "again"):
        begun = time.perf_counter()
        assert len(run_rows(str(folder))["rows"]) == RUNS
        spent = time.perf_counter() - begun
        found[f"{RUNS:,} runs listed, {word}, seconds"] = {"ratio": spent, "bar": 1.0, "met": spent <= 1.0}
    return found


def long_run(folder: Path) -> dict[str, Row]:
    """A day's run of 100,000 evaluations: read for the first time, and again after one more look."""
    write(folder / "day", 1)
    (folder / "day" / "end.json").unlink()
    curves = folder / "day" / "curves.jsonl"
    more = (
        {"kind": "evaluation", "time": step, "values": {"loss": [1.0 / step, 0.3]}}
        for step in range(2, EVALUATIONS + 2)
    )
    lines = [sealed_line(json.dumps(one, separators=(",", ":")).encode()) for one in more]
    with curves.open("ab") as file:
        file.writelines(lines[:-1])
    found = {}
    for word in ("first", "after one more look"):
        begun = time.perf_counter()
        told = run_curves(str(folder), ["day"], "loss", {})["day"]
        spent = 1000 * (time.perf_counter() - begun)
        found[f"a run of {EVALUATIONS:,} evaluations, {word}, ms"] = {
            "ratio": spent,
            "evaluations sent": len(told["times"]),
        }
        with curves.open("ab") as file:
            file.write(lines[-1])
    return found


def lag(address: str) -> dict[str, Row]:
    """How late the event loop comes back to its clock while the digits are forecast, and while it is idle."""
    asked = lambda path: urllib.request.urlopen(address + path, timeout=900).read()  # noqa: E731
    asked("lag")
    time.sleep(3.0)
    idle = json.loads(asked("lag"))
    for lr in (0.006, 0.005, 0.004):
        asked(f"api/forecast?lr={lr}&steps=600&full=yes")
    busy = json.loads(asked("lag"))
    found = {"event loop late while idle, longest ms": {**spread(idle), "ratio": max(idle)}}
    found["event loop late while forecasting, longest ms"] = {
        **spread(busy),
        "ratio": max(busy),
        "bar": 20,
        "met": max(busy) <= 20,
    }
    return found


def within(times: list[float], bar: float) -> Row:
    return {**spread(times), "bar": bar, "met": statistics.median(times) <= bar}


def spread(times: list[float]) -> Row:
    ordered = sorted(times)
    late = ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))]
    return {
        "ratio": statistics.median(ordered),
        "median": statistics.median(ordered),
        "at 95 %": late,
        "longest": ordered[-1],
        "measured": len(ordered),
    }


def write(path: Path, evaluations: int) -> None:
    with Recorder(path, clock="step", origin=Origin("example")) as recorder:
        for step in range(1, evaluations + 1):
            values = xr.DataArray([1.0 / step, 0.3], dims="group", coords={"group": ["a", "b"]})
            recorder.append(step, {"loss": values})


if __name__ == "__main__":
    main()
