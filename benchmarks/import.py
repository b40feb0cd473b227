"""Importing tiltmeter against importing what it cannot do without, each in a fresh interpreter."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from _measure import best, report


def importing(what: str) -> float:
    def run() -> None:
        subprocess.run([sys.executable, "-c", f"import {what}"], check=True)

    return best(run, 9)


def main() -> None:
    ours, theirs = importing("tiltmeter"), importing("xarray, scipy.special")
    front = importing("tiltmeter; tiltmeter.predict, tiltmeter.Trajectory, tiltmeter.SGD, tiltmeter.teacher_mixture")
    report(
        "import",
        {
            "import tiltmeter over import xarray, scipy.special": {
                "ratio": ours / theirs,
                "bar": 1.3,
                "met": ours / theirs <= 1.3,
            },
            "with its daily names looked up": {"ratio": front / theirs},
        },
    )


if __name__ == "__main__":
    main()
