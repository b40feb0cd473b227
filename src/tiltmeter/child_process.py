"""Child process: how tiltmeter starts another Python, without running code of the current folder by accident."""

from __future__ import annotations

import os
import sys


def module_command(module: str) -> list[str]:
    """The command that runs a module of an installed package; `-P` keeps the current folder off the import path."""
    return [sys.executable, "-P", "-m", module]


def module_environment() -> dict[str, str]:
    """The environment for it: this one, and the import path of this process.

    The current folder is left out, unless the user's own PYTHONPATH names it: a `queue.py` beside the runs is a file of
    the user, and so is a `msvcrt.py`, which Python looks for on every system.
    """
    here = os.path.realpath(os.curdir)
    chosen = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    path = [place for place in sys.path if place and (place in chosen or os.path.realpath(place) != here)]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
