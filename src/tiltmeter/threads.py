"""Threads and memory of this machine: how many are used, and whether something fits."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

#: Share of the free memory that one result may take.
SHARE = 0.9
#: Where a user says how many threads there should be.
CHOSEN = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
#: Multiplications of one forward pass up to which a step is small, and how often a weight of a convolution is used.
SMALL, PLACES = 2e7, 64


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

    >>> check_fits("evaluations", 10**9, 1000, "evaluations at 2 groups", available=2**30)
    Traceback (most recent call last):
    ValueError: `evaluations` should be at most 966,000 to fit in memory. Found 1,000,000,000 evaluations at 2 groups,
    which need 931.3 GiB of the 1.0 GiB that are free.
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


@contextmanager
def one_thread(small: bool = True) -> Iterator[None]:
    """Inside, torch and the linear algebra behind NumPy use one thread, if the work of a call is small.

    >>> import torch
    >>> before = torch.get_num_threads()
    >>> with one_thread():
    ...     pass
    >>> torch.get_num_threads() == before
    True

    Threads that wait for each other cost more than small work itself, many times more on a busy machine. The numbers
    are as before afterwards. Whoever has set them, by `torch.set_num_threads` or in the environment, is left alone.
    """
    import torch
    from threadpoolctl import threadpool_limits

    before = torch.get_num_threads()
    usual = before in {os.cpu_count(), max(1, (os.cpu_count() or 2) // 2), _cores()}
    if not small or before == 1 or not usual or any(name in os.environ for name in CHOSEN):
        yield
        return
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1, user_api="blas"):
            yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Inside, the linear algebra behind NumPy uses one thread, unless somebody has set a number in the environment.

    Its threads wait for each other in a loop. On a machine whose cores are all in use, flat products of matrices took
    fifty times as long on two threads as on one; on an idle one they gain little."""
    from threadpoolctl import threadpool_limits

    if any(name in os.environ for name in CHOSEN):
        yield
        return
    with threadpool_limits(1, user_api="blas"):
        yield


def small_steps(model: Any, batch: int) -> bool:
    """Whether one step of a network is small work, by its weights and the points of a batch.

    A weight of a convolution, or of a layer that goes along a sequence, is used at many places.
    """
    from torch import nn

    kinds = (nn.modules.conv._ConvNd, nn.MultiheadAttention, nn.RNNBase)
    places = PLACES if any(isinstance(module, kinds) for module in model.modules()) else 1
    return bool(sum(weight.numel() for weight in model.parameters()) * batch * places <= SMALL)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


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
