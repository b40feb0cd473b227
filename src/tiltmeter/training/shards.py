"""Shards: every rank looks at its own part of the points, and all ranks get the scores of all points."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Hashable, Sequence
from datetime import timedelta
from typing import Any

import numpy as np
import torch
from torch import Tensor, distributed, nn

from tiltmeter.data.grouped import GroupedData
from tiltmeter.data.nested import Nested, Streamed
from tiltmeter.record.labelled import label_from_json, label_to_json
from tiltmeter.shown_text import tell_caller


def processes() -> int:
    """Return how many processes train together; 1 without torch.distributed."""
    if distributed.is_available() and distributed.is_initialized():
        return distributed.get_world_size()
    return 1


def summed(values: Tensor) -> Tensor:
    """Return the sum over all processes, on the device of the values; the values themselves where there is only one."""
    if processes() == 1:
        return values
    moved = values.cuda() if distributed.get_backend() == "nccl" else values.clone()
    distributed.all_reduce(moved)
    return moved.to(values.device)


#: Launchers set the rank of a process in one of these before torch.distributed is started.
RANKS, SIZES = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK"), ("WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE")

#: Seconds of an evaluation after which it is said that other ranks are waiting.
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


class SlowEvaluations:
    """Says once, where other ranks wait in a collective call, that an evaluation takes a large part of their
    patience."""

    def __init__(self) -> None:
        self._told = not started() or distributed.get_world_size() < 2

    def check(self, seconds: float) -> None:
        """Warn about an evaluation that took longer than a tenth of the shortest usual time limit, 10 minutes."""
        if self._told or seconds <= LONG:
            return
        self._told = True
        tell_caller(
            f"An evaluation took {seconds:.0f} s, and the other ranks wait meanwhile; a process group gives up "
            "after its "
            "`timeout`, often 10 minutes. Look at fewer points, in parts (sharded=True), or set a longer timeout.",
        )


class SameHeldOut:
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
        SameHeldOut._count += 1
        self._name = f"tiltmeter/held_out/{SameHeldOut._count}"
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
                tell_caller(
                    f"Rank {other} was given other points to look at than rank 0. Only those of rank 0 are recorded: "
                    "give every rank the whole held-out data, or say sharded=True if each has a part of it.",
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


#: Seconds that ranks wait for one another before they say who is missing.
PATIENCE = 300.0


class Shards:
    """The parts of the held-out data on the ranks of a distributed training; `whole` has all labels and groups.

    Ranks meet at the store of the process group, where waiting ends after `patience` seconds, before they make any
    collective call. A rank that never comes is therefore named in a sentence and is no deadlock. The scores travel in a
    gloo group of their own, apart from the gradients.
    """

    _count = 0

    def __init__(self, data: GroupedData, patience: float | None = None) -> None:
        if not started():
            raise RuntimeError(
                "`sharded=True` is for held-out data in parts on several processes. Found no process group: call "
                "torch.distributed.init_process_group first, or give the whole held-out data and leave `sharded` out."
            )
        self._patience = timedelta(seconds=PATIENCE if patience is None else patience)
        self._rank, self._size = distributed.get_rank(), distributed.get_world_size()
        Shards._count += 1
        self._store = distributed.distributed_c10d._get_default_store()
        self._name = f"tiltmeter/shards/{Shards._count}"
        self._meetings = 0
        told = self._meet("did not make a Probe with sharded=True", _description(data))
        self._group: Any = distributed.new_group(backend="gloo", timeout=self._patience)
        self._lengths = [part["points"] for part in told]
        self.whole = self._together(data, told)

    def agree(self, step: int, last: int | None) -> bool:
        """Whether to look at this step, as rank 0 decides: not if its run has the step already."""
        told = self._meet(f"did not look at step {step}", {"step": step, "last": last})
        for other, words in enumerate(told):
            if words["step"] != told[0]["step"]:
                raise RuntimeError(
                    f"All ranks should look at the same step. Found step {told[0]['step']} on rank 0 and step "
                    f"{words['step']} on rank {other}."
                )
        known = told[0]["last"]
        return known is None or step > known

    def share_buffers(self, model: nn.Module) -> None:
        """Give every rank the buffers of rank 0: running statistics differ between ranks, and one model is looked at.

        To be called inside `untouched`, which puts them back.
        """
        for buffer in model.buffers():
            sent = _bytes(buffer)
            distributed.broadcast(sent, 0, group=self._group)
            buffer.copy_(_values(sent, buffer.dtype, buffer.shape))

    def gathered(self, own: Tensor) -> Tensor:
        """The rows of all ranks, those of rank 0 first."""
        longest = max(self._lengths)
        padded = torch.zeros(longest, *own.shape[1:], dtype=own.dtype)
        padded[: len(own)] = own.cpu()
        sent = _bytes(padded)
        parts = [torch.empty_like(sent) for _ in range(self._size)]
        distributed.all_gather(parts, sent, group=self._group)
        every = [_values(part, own.dtype, padded.shape) for part in parts]
        return torch.cat([rows[:length] for rows, length in zip(every, self._lengths, strict=True)])

    def _meet(self, missing: str, words: dict[str, Any]) -> list[Any]:
        """What every rank says here; all wait for one another, but not for ever."""
        number = self._meetings
        self._meetings += 1
        self._store.set(f"{self._name}/{number}/{self._rank}", json.dumps(words))
        keys = [f"{self._name}/{number}/{other}" for other in range(self._size)]
        for other, key in enumerate(keys):
            try:
                self._store.wait([key], self._patience)
            except RuntimeError:
                raise RuntimeError(
                    f"Rank {other} {missing} within {self._patience.total_seconds():g} s, which rank {self._rank} "
                    "waited for. With sharded=True every rank makes the probe and calls it equally often; to look on "
                    "rank 0 alone, give it the whole held-out data and leave `sharded` out."
                ) from None
        said = [json.loads(self._store.get(key)) for key in keys]
        if number:  # whoever came here has read what was said at the meeting before
            self._store.delete_key(f"{self._name}/{number - 1}/{self._rank}")
        return said

    def _together(self, data: GroupedData, told: Sequence[dict[str, Any]]) -> GroupedData:
        """All points without their features: labels, groups and weights."""
        for name, what in (("weighted", "weights"), ("shape", "points of one shape")):
            if any(part[name] != told[0][name] for part in told):
                raise ValueError(f"`held_out` should have {what} on all ranks or on none. Found both.")
        groups = _union([tuple(map(label_from_json, part["groups"])) for part in told])
        place = np.asarray([groups.index(group) for group in data.groups], dtype=np.int64)
        kind = torch.float64 if any(part["real"] for part in told) else torch.int64
        y = self.gathered(torch.as_tensor(data.y).to(kind)).cpu().numpy()
        codes = self.gathered(torch.as_tensor(place[data.codes])).cpu().numpy()
        weights = None if data.weights is None else self.gathered(torch.as_tensor(data.weights)).cpu().numpy()
        absent = _Absent((len(y), *told[0]["shape"]))
        whole = object.__new__(GroupedData)
        whole._set(absent, y, codes, groups, weights, data.reading)
        return whole


class _Absent:
    """Stands for features that lie on other ranks: it has a shape and nothing else."""

    def __init__(self, shape: tuple[Any, ...]) -> None:
        self.shape = shape


def _description(data: GroupedData) -> dict[str, Any]:
    return {
        "points": len(data),
        "shape": data.to_json()["shape"],
        "groups": [label_to_json(group) for group in data.groups],
        "real": data.y.dtype.kind == "f",
        "weighted": data.weights is not None,
    }


def _union(parts: Sequence[tuple[Hashable, ...]]) -> tuple[Hashable, ...]:
    """The groups of all ranks: in the common order if there is one, else sorted where they can be."""
    if all(part == parts[0] for part in parts):
        return parts[0]
    found: list[Any] = list(dict.fromkeys(group for part in parts for group in part))
    try:
        return tuple(sorted(found))
    except TypeError:
        return tuple(found)


def _bytes(tensor: Tensor) -> Tensor:
    return tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).clone()


def _values(sent: Tensor, dtype: torch.dtype, shape: Sequence[int]) -> Tensor:
    return sent.view(dtype).reshape(tuple(shape))
