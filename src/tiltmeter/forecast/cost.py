"""Cost: about how long a training and a forecast of it take on one core, counted before either begins."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from tiltmeter.forecast.route import Coordinates, Kernel, Twin
from tiltmeter.forecast.twin.unfused import unfused
from tiltmeter.forecast.twin.untrained import ASKED, MANY
from tiltmeter.passes.untouched import untouched

#: Multiplications a second in a forward or backward pass, and in products that wait for memory.
SPEED, MEMORY_SPEED = 3e10, 2e9
#: Seconds that an optimiser takes for one weight, and that one operation takes in a step of training whatever its size:
#: forward, back, and its part of the update. On 36 development tasks this tells the time of a training within 35 %.
WEIGHT, OPERATION = 4e-9, 1.8e-4
#: The same of twins, which take their steps by formulas: an operation of one that trains alone, and a step of a stack.
TWIN_OPERATION, TWIN_STEP = 1e-4, 2.2e-4
#: Seconds of a step on sampled weights whatever their number, and of everything that a forecast does only once.
SMALL_STEP, ONCE = 4e-4, 0.08
#: About so many looks are taken where nothing else is asked for.
LOOKS = 30


class Work(NamedTuple):
    """Of one network: multiplications forward for one point, weights, layers with weights, operations forward."""

    multiplications: float
    weights: int
    layers: int
    operations: int

    def training(self, steps: int, batch: int, look: int) -> float:
        """Seconds of so many updates, with looks at so many points: a pass back costs two forward."""
        step = 3 * batch * self.multiplications / SPEED + OPERATION * self.operations
        return steps * step + LOOKS * self.looks(look)

    def looks(self, points: int) -> float:
        """Seconds of a pass forward."""
        return points * self.multiplications / SPEED


def work_of(model: nn.Module, x: Tensor) -> Work:
    """What one network has to do for these few points.

    >>> import torch
    >>> work_of(nn.Linear(100, 10), torch.zeros(2, 100))
    Work(multiplications=1000.0, weights=1010, layers=1, operations=2)
    """
    with untouched(model), unfused(model), _Counter() as counter:
        model(x)
    layers = sum(1 for module in model.modules() if any(True for _ in module.parameters(recurse=False)))
    weights = sum(p.numel() for p in model.parameters() if p.requires_grad)
    return Work(max(counter.total / 2 / len(x), 1.0), weights, layers, max(1, counter.operations))


class _Counter(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Adds up the work of products and convolutions, whose cost torch knows, and counts all operations."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.total, self.operations = 0, 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        known = flop_registry.get(func._overloadpacket)
        if known is not None:
            self.total += known(*args, **(kwargs or {}), out_val=found)
        self.operations += 1
        return found


def kernel_cost(route: Kernel, whole: Work, points: int, look: int, outputs: int) -> float:
    """Seconds of a forecast from the kernel: gradients of the sample, products of all pairs, their dynamics."""
    sample = min(route.sample, points)
    pairs = sample * (sample + look) * outputs**2
    wide = 2.0 * math.sqrt(max(1.0, whole.multiplications / max(1, whole.layers))) * whole.layers
    dynamics = 30.0 * sample**2 * outputs / MEMORY_SPEED
    return ONCE + 3 * outputs * whole.looks(sample + look) + pairs * wide / SPEED + dynamics


def coordinates_cost(
    route: Coordinates, whole: Work, steps: int, batch: int, points: int, look: int, outputs: int
) -> float:
    """Seconds of a forecast by coordinates."""
    shown = min(points, steps * batch) + look
    count = min(route.count, whole.weights)
    step = SMALL_STEP + 3 * batch * outputs * count / MEMORY_SPEED + WEIGHT * count
    each = steps * step + shown * outputs * count / MEMORY_SPEED
    return ONCE + route.replicas * each + 3 * outputs * whole.looks(shown)


def twin_cost(
    route: Twin, whole: Work, twin: Work, steps: int, batch: int, points: int, look: int, stacked: bool
) -> float:
    """Seconds of a forecast by twins, which train `stacked` in one pass or one by one."""
    products = 3 * batch * twin.multiplications / SPEED + WEIGHT * twin.weights
    calls = TWIN_STEP if stacked else route.count * TWIN_OPERATION * twin.operations
    each = route.count * (steps * products + LOOKS * twin.looks(look))
    shown = min(points, steps * batch)
    return ONCE + each + steps * calls + whole.looks((shown if shown <= MANY else ASKED) + look)
