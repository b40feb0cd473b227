"""Measures against the straightforward way to get the same numbers, which must agree: effective rank, spectral lines,
sensitivity, and the largest eigenvalue of the Hessian. Each at least ten times as fast.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from _measure import report

PARTS = ("rank", "spectral", "sensitivity", "hessian")


def main() -> None:
    rows: dict[str, dict[str, float]] = {}
    for part in PARTS:
        rows |= import_module(f"_measures_{part}").compare()
    report("measures", rows, "torch")


if __name__ == "__main__":
    main()
