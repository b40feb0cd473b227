"""Blocks: run a compiled loop over independent items on several threads, without changing its result."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise


def in_blocks(work: Callable[[int, int], None], count: int, threads: int | None = None, least: int = 64) -> None:
    """Call `work(start, stop)` for blocks that cover range(count), on all cores.

    >>> seen = []
    >>> in_blocks(lambda start, stop: seen.append((start, stop)), 10)
    >>> seen
    [(0, 10)]

    `work` must release the interpreter lock (numba's `nogil`) and write only to its own items. Blocks of fewer than
    `least` items are not worth a thread.
    """
    threads = min(threads or os.cpu_count() or 1, max(1, count // least))
    if threads == 1:
        work(0, count)
        return
    # Several blocks per thread, so that one slow thread does not delay everything.
    pieces = min(4 * threads, count // least)
    edges = [count * i // pieces for i in range(pieces + 1)]
    with ThreadPoolExecutor(threads) as pool:
        for done in [pool.submit(work, a, b) for a, b in pairwise(edges)]:
            done.result()
