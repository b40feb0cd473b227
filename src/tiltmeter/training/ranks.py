"""ranks: which process of a distributed training writes, and whether all processes look at the same points."""

from __future__ import annotations

import hashlib
import os
import warnings
from typing import Any

import numpy as np
from torch import distributed, nn

from tiltmeter.data.nested import Nested
from tiltmeter.data.streamed import Streamed

#: Launchers set the rank of a process in one of these before torch.distributed is started.
RANKS, SIZES = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK"), ("WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE")

#: Seconds of a look after which it is said that other ranks are waiting.
LONG = 60.0


def rank() -> int:
    """Return the rank of this process: from torch.distributed, else from the launcher, else 0."""
    if started():
        return distributed.get_rank()
    numbers = [_number(name) for name in SIZES]
    if max((number for number in numbers if number is not None), default=1) < 2:
        return 0
    return next((number for number in map(_number, RANKS) if number is not None), 0)


def refuse_sharded(model: nn.Module) -> None:
    """Refuse a model whose weights are split over several processes: one alone cannot evaluate it."""
    kinds = {type(module).__name__ for module in model.modules()}
    fully = any("FSDPModule" in {cls.__name__ for cls in type(module).__mro__} for module in model.modules())
    if fully or "FullyShardedDataParallel" in kinds:
        raise TypeError(
            "`model` is sharded by FSDP, so that no rank can evaluate it alone. Save full state dicts while training "
            "and look at an unsharded copy, or train with DistributedDataParallel."
        )


class SlowLooks:
    """Says once, where other ranks wait in a collective call, that a look takes a large part of their patience."""

    def __init__(self) -> None:
        self._told = not started() or distributed.get_world_size() < 2

    def check(self, seconds: float) -> None:
        """Warn about a look that took longer than a tenth of the shortest usual time limit, 10 minutes."""
        if self._told or seconds <= LONG:
            return
        self._told = True
        warnings.warn(
            f"A look took {seconds:.0f} s, and the other ranks wait meanwhile; a process group gives up after its "
            "`timeout`, often 10 minutes. Look at fewer points, in parts (sharded=True), or set a longer timeout.",
            stacklevel=4,
        )


class LookedAt:
    """Tells the other ranks, without waiting for any, which points this rank looks at.

    A collective call would hang if only rank 0 has a probe. The store of the process group can be read and written by
    each rank at any time.
    """

    _count = 0

    def __init__(self, data: Any) -> None:
        self._told = False
        self._store = distributed.distributed_c10d._get_default_store() if started() else None
        self._size = distributed.get_world_size() if started() else 1
        self._own = _fingerprint(data)
        LookedAt._count += 1
        self._name = f"tiltmeter/look/{LookedAt._count}"
        if self._store is not None:
            self._store.set(f"{self._name}/{rank()}", self._own)

    def check(self) -> None:
        """On rank 0: warn once if another rank looks at other points, which are not recorded."""
        if self._store is None or self._told:
            return
        for other in range(1, self._size):
            key = f"{self._name}/{other}"
            if self._store.check([key]) and self._store.get(key).decode() != self._own:
                self._told = True
                warnings.warn(
                    f"Rank {other} was given other points to look at than rank 0. Only those of rank 0 are recorded: "
                    "give every rank the whole look set, or say sharded=True if each has a part of it.",
                    stacklevel=4,
                )
                return


def started() -> bool:
    """Whether torch.distributed has a process group."""
    return bool(distributed.is_available() and distributed.is_initialized())


def _number(name: str) -> int | None:
    text = os.environ.get(name, "")
    return int(text) if text.isdigit() else None


def _fingerprint(data: Any) -> str:
    found = hashlib.sha256(repr((data.x.shape, data.groups)).encode())
    # Streamed points are not read for this; those in parts are told apart part by part.
    parts = [] if isinstance(data.x, Streamed) else data.x.values if isinstance(data.x, Nested) else [data.x]
    rows = [part[:: max(1, len(part) // 1000)] for part in parts]
    arrays = [part if isinstance(part, np.ndarray) else part.detach().cpu().float().numpy() for part in rows]
    for part in (*arrays, data.y, data.codes):
        found.update(np.ascontiguousarray(part).tobytes())
    return found.hexdigest()
