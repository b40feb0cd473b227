"""When a student counts as diverged."""

from __future__ import annotations

#: A squared length Q beyond this is divergence; at the start it is of order one.
HUGE = 1e12
