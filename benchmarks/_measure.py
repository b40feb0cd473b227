"""What benchmarks share: time two things in one run, print their ratio, write it down with the environment."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


def best(work: Callable[[], Any], repeats: int = 5, clock: Callable[[], float] = time.perf_counter) -> float:
    """The shortest of several times, by the clock on the wall or another: noise on a shared machine only ever adds."""
    times = []
    for _ in range(repeats):
        start = clock()
        work()
        times.append(clock() - start)
    return min(times)


def environment(*packages: str) -> dict[str, Any]:
    """Versions and the number of cores: what a ratio may depend on."""
    found = {}
    for package in ("tiltmeter", "numpy", "scipy", "numba", "xarray", *packages):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = None
    return {"python": platform.python_version(), "machine": platform.machine(), "cores": os.cpu_count(), **found}


def written(name: str) -> dict[str, dict[str, float]]:
    """The rows of an earlier run, to which those of a part of the benchmark are added."""
    file = RESULTS / f"{name}.json"
    return dict(json.loads(file.read_text(encoding="utf-8"))["rows"]) if file.exists() else {}


def report(name: str, rows: dict[str, dict[str, float]], *packages: str) -> None:
    """Print one line per comparison and write all of them to results/<name>.json. A row has seconds and a threshold,
    `bar`."""
    for label, row in rows.items():
        verdict = "" if "bar" not in row else f"  (threshold {row['bar']:g}: {'met' if row['met'] else 'MISSED'})"
        print(f"{label:<58} {row['ratio']:9.2f}x{verdict}")
    RESULTS.mkdir(exist_ok=True)
    found = {"rows": rows, "environment": environment(*packages)}
    (RESULTS / f"{name}.json").write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
