"""Memory: how much a kernel needs, how much is free, and which sample size would fit."""

from __future__ import annotations

import math

import numpy as np

from tiltmeter.threads import SHARE, available_memory

#: Bytes that the gradients of one block of points may always take in addition to the kernel.
CHUNK_BYTES = 2**28


def kernel_memory(
    n: int, m: int, outputs_count: int = 1, *, outputs: str = "full", dtype: np.typing.DTypeLike = np.float64
) -> int:
    """Peak memory in bytes for K between n and m points: the kernel, the same again for gradients, and a chunk.

    >>> f"{kernel_memory(10_000, 10_000) / 2**30:.1f} GiB"
    '1.7 GiB'

    Models with large gradients use a larger chunk if memory is free, up to an eighth of the free memory.
    """
    side = outputs_count if outputs == "full" else 1
    return 2 * n * m * side**2 * np.dtype(dtype).itemsize + CHUNK_BYTES


def chunk_bytes() -> int:
    """Bytes for the gradients of one block of points: large models are fast only with few, large blocks."""
    return max(CHUNK_BYTES, (available_memory() or 0) // 16)


def check_memory(
    n: int,
    m: int | None = None,
    outputs_count: int = 1,
    *,
    outputs: str = "full",
    dtype: np.typing.DTypeLike = np.float64,
    available: int | None = None,
    fixed: int = 0,
) -> None:
    """Refuse a kernel that does not fit, and say which `sample` would; `fixed` columns do not shrink with the sample.

    >>> check_memory(100_000, available=24 * 2**30)
    Traceback (most recent call last):
    ...
    ValueError: `sample` should be at most 37800 to fit in memory. Found 100000 points with 1 output, whose kernel \
needs 149.3 GiB of the 24.0 GiB that are free.
    """
    there = available_memory() if available is None else available
    m = n if m is None else m
    needed = kernel_memory(n, m, outputs_count, outputs=outputs, dtype=dtype)
    if there is None or needed <= SHARE * there:
        return
    room = max(SHARE * there - CHUNK_BYTES, 0.0) / ((needed - CHUNK_BYTES) / (n * m))  # in pairs of points
    # The sample shrinks on both sides: slope fits^2 + fixed fits = room.
    slope = (m - fixed) / n
    fits = math.floor(2 * room / (fixed + math.sqrt(fixed**2 + 4 * slope * room))) if room else 0
    fits = fits // 100 * 100 if fits >= 1000 else fits  # rounded down, which is easier to read
    several = outputs == "full" and outputs_count > 1
    cheaper = f'; outputs="trace" needs {outputs_count**2} times less' if several else ""
    raise ValueError(
        f"`sample` should be at most {fits} to fit in memory. Found {n} points with {outputs_count} "
        f"{'output' if outputs_count == 1 else 'outputs'}, whose kernel needs {needed / 2**30:.1f} GiB of the "
        f"{there / 2**30:.1f} GiB that are free{cheaper}."
    )
