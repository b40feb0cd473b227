"""Memory: what a kernel needs, what there is, and which sample would fit."""

from __future__ import annotations

import math

import numpy as np

from tiltmeter.memory import SHARE, available_memory

#: Bytes that the gradients of one block of points may take beside the kernel, however little memory there is.
CHUNK_BYTES = 2**28


def kernel_memory(
    n: int, m: int, outputs_count: int = 1, *, outputs: str = "full", dtype: np.typing.DTypeLike = np.float64
) -> int:
    """Bytes at the peak of computing K between n and m points: the kernel, as much again for gradients, and a chunk.

    Models whose gradients are large take more for the chunk where there is more, up to an eighth of the free memory.

    >>> f"{kernel_memory(10_000, 10_000) / 2**30:.1f} GiB"
    '1.7 GiB'
    """
    side = outputs_count if outputs == "full" else 1
    return 2 * n * m * side**2 * np.dtype(dtype).itemsize + CHUNK_BYTES


def chunk_bytes() -> int:
    """Bytes for the gradients of one block of points: large models need few and large blocks to be fast."""
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
    """Refuse a kernel that cannot fit, and say which `sample` would; of the m columns, `fixed` stay for any sample.

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
    room = max(SHARE * there - CHUNK_BYTES, 0.0) / ((needed - CHUNK_BYTES) / (n * m))  # in products of points
    # The sample shrinks on both sides: slope fits^2 + fixed fits = room.
    slope = (m - fixed) / n
    fits = math.floor(2 * room / (fixed + math.sqrt(fixed**2 + 4 * slope * room))) if room else 0
    fits = fits // 100 * 100 if fits >= 1000 else fits  # two leading figures less are easier to read
    raise ValueError(
        f"`sample` should be at most {fits} to fit in memory. Found {n} points with {outputs_count} "
        f"{'output' if outputs_count == 1 else 'outputs'}, whose kernel needs {needed / 2**30:.1f} GiB of the "
        f"{there / 2**30:.1f} GiB that are free{_cheaper(outputs, outputs_count)}."
    )


def _cheaper(outputs: str, outputs_count: int) -> str:
    return f'; outputs="trace" needs {outputs_count**2} times less' if outputs == "full" and outputs_count > 1 else ""
