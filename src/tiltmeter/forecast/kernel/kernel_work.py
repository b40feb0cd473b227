"""KernelWork: the kernels of a network on a sample and on the points looked at, by one of three ways."""

from __future__ import annotations

import os
from concurrent.futures import Executor
from typing import Any, Literal, NamedTuple

import torch
from torch import nn

from tiltmeter.forecast.kernel.sampled_kernels import sampled_kernels
from tiltmeter.modules.forward import Read
from tiltmeter.modules.tangent.kernel import planned_kernels
from tiltmeter.modules.tangent.plan import Plan
from tiltmeter.modules.tangent.stored_kernels import stored_kernels
from tiltmeter.progress import Progress


class KernelWork(NamedTuple):
    """What kernels are computed of. Each way returns that of the sample, that of sample and evaluation, and the
    plan."""

    model: nn.Module
    x: torch.Tensor
    seen: torch.Tensor
    outputs: Literal["full", "trace"]
    read: Read | None
    tell: Progress | None

    def sampled(self, chosen: Any) -> tuple[Any, Any, Plan | None]:
        """From some of the weights."""
        kernel, cross = sampled_kernels(self.model, self.x, (self.seen,), chosen, self.outputs, self.read)
        return kernel, cross, None

    def whole(self, to: str | os.PathLike[str] | None, executor: Executor | None) -> tuple[Any, Any, Plan | None]:
        """From all weights: in memory, or strip by strip through files in `to`."""
        how: Any = {"outputs": self.outputs, "read": self.read, "tell": self.tell}
        if to is None:
            (kernel, cross), plan = planned_kernels(self.model, self.x, (self.seen,), **how)
        else:
            (kernel, cross), plan = stored_kernels(self.model, self.x, self.seen, to=to, executor=executor, **how)
        return kernel, cross, plan
