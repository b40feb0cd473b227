"""Sums over all processes of a distributed training."""

from __future__ import annotations

from torch import Tensor, distributed


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
