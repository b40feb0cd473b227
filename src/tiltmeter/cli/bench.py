"""`tiltmeter bench`: the speed comparisons of a source checkout."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path


def bench(*names: str, folder: Path = Path("benchmarks")) -> None:
    """Run the speed comparisons of a source checkout: ratios of two things measured in one run.

    Parameters
    ----------
    names
        Names of the benchmarks, without .py (default: all).
    folder
        The folder of the benchmarks.
    """
    scripts = {path.stem: path for path in sorted(folder.glob("[!_]*.py"))}
    if not scripts:
        raise FileNotFoundError(f"No benchmarks in {folder}: they come with the source checkout; pass --folder.")
    for name in names or scripts:
        if name not in scripts:
            raise KeyError(f"No benchmark {name!r}. There are: {', '.join(scripts)}.")
        print(f"# {name}", flush=True)
        before, sys.argv = sys.argv, [str(scripts[name])]
        try:
            runpy.run_path(str(scripts[name]), run_name="__main__")
        finally:
            sys.argv = before
