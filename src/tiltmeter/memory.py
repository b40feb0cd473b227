"""memory: how much there is, and a sentence instead of a killed process for what cannot fit."""

from __future__ import annotations

import os

#: Share of the free memory that one result may take.
SHARE = 0.9


def available_memory() -> int | None:
    """Bytes of memory that can be had without swapping; None where the system does not say."""
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return None


def check_fits(name: str, value: int, each: float, what: str, available: int | None = None) -> None:
    """Refuse `value` of something that takes `each` bytes, if all of it cannot fit, and say how many would.

    >>> check_fits("looks", 10**9, 1000, "looks at 2 groups", available=2**30)
    Traceback (most recent call last):
    ValueError: `looks` should be at most 966,000 to fit in memory. Found 1,000,000,000 looks at 2 groups, which need
    931.3 GiB of the 1.0 GiB that are free.
    """
    there = available_memory() if available is None else available
    if there is None or value * each <= SHARE * there:
        return
    fits = int(SHARE * there / each)
    fits = fits // 1000 * 1000 if fits >= 10_000 else fits
    raise ValueError(
        f"`{name}` should be at most {fits:,} to fit in memory. Found {value:,} {what}, which need "
        f"{value * each / 2**30:,.1f} GiB of the {there / 2**30:.1f} GiB that are free."
    )
