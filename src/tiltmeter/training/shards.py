"""Shards: every rank looks at its own part of the points, and all ranks get the scores of all points."""

from __future__ import annotations

import json
from collections.abc import Hashable, Sequence
from datetime import timedelta
from typing import Any

import numpy as np
import torch
from torch import Tensor, distributed, nn

from tiltmeter.data.grouped import GroupedData
from tiltmeter.record.labelled import label_from_json, label_to_json
from tiltmeter.training.ranks import started

#: Seconds that ranks wait for one another before they say who is missing.
PATIENCE = 300.0


class Shards:
    """The parts of a look set on the ranks of a distributed training; `whole` has labels and groups of all points.

    Ranks meet at the store of the process group, where waiting ends after `patience` seconds, before they make any
    collective call. A rank that never comes is therefore named in a sentence and is no deadlock. The scores travel in a
    gloo group of their own, apart from the gradients.
    """

    _count = 0

    def __init__(self, data: GroupedData, patience: float | None = None) -> None:
        if not started():
            raise RuntimeError(
                "`sharded=True` is for a look set in parts on several processes. Found no process group: call "
                "torch.distributed.init_process_group first, or give the whole look set and leave `sharded` out."
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
                    "rank 0 alone, give it the whole look set and leave `sharded` out."
                ) from None
        said = [json.loads(self._store.get(key)) for key in keys]
        if number:  # whoever came here has read what was said at the meeting before
            self._store.delete_key(f"{self._name}/{number - 1}/{self._rank}")
        return said

    def _together(self, data: GroupedData, told: Sequence[dict[str, Any]]) -> GroupedData:
        """All points without their features: labels, groups and weights."""
        for name, what in (("weighted", "weights"), ("shape", "points of one shape")):
            if any(part[name] != told[0][name] for part in told):
                raise ValueError(f"`look` should have {what} on all ranks or on none. Found both.")
        groups = _union([tuple(map(label_from_json, part["groups"])) for part in told])
        place = np.asarray([groups.index(group) for group in data.groups], dtype=np.int64)
        kind = torch.float64 if any(part["real"] for part in told) else torch.int64
        y = self.gathered(torch.as_tensor(data.y).to(kind)).numpy()
        codes = self.gathered(torch.as_tensor(place[data.codes])).numpy()
        weights = None if data.weights is None else self.gathered(torch.as_tensor(data.weights)).numpy()
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
