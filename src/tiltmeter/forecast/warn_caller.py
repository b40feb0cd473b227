"""warn_caller: a warning that points to the line of the user's code."""

from __future__ import annotations

import sys
import warnings


def warn_caller(text: str) -> None:
    """Warn at the first caller outside this package."""
    level, frame = 1, sys._getframe(0)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("tiltmeter."):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, stacklevel=level)
