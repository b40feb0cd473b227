"""Sampled kernels: kernels of a large network from a part of its weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
import torch
from torch import Tensor, nn

from tiltmeter.modules.forward import Read
from tiltmeter.modules.tangent.kernel import by_plan
from tiltmeter.modules.tangent.kernel_blocks import block_size
from tiltmeter.modules.tangent.memory import chunk_bytes
from tiltmeter.modules.tangent.plan import Plan
from tiltmeter.shown_text import warn_caller
from tiltmeter.threads import check_fits

#: Tensors with no more numbers are taken whole: biases and read-outs count for more than their number.
WHOLE = 300


@dataclass(frozen=True, eq=False)
class Stratum:
    """Some numbers of one parameter: their places in it, and how many numbers each stands for."""

    name: str
    places: np.ndarray
    stands_for: float


def strata(model: nn.Module, count: int, seed: int) -> list[Stratum]:
    """About `count` trained weights: small tensors whole, the others in proportion to their size.

    >>> found = strata(nn.Sequential(nn.Linear(50, 40), nn.ReLU(), nn.Linear(40, 1)), 500, seed=0)
    >>> [(one.name, len(one.places), round(one.stands_for, 2)) for one in found]
    [('0.weight', 419, 4.77), ('0.bias', 40, 1.0), ('2.weight', 40, 1.0), ('2.bias', 1, 1.0)]
    """
    sizes = {name: p.numel() for name, p in model.named_parameters() if p.requires_grad}
    small = {name for name, size in sizes.items() if size <= WHOLE}
    left = max(0, count - sum(sizes[name] for name in small))
    others = sum(size for name, size in sizes.items() if name not in small)
    rng = np.random.default_rng((seed, 7))
    found = []
    for name, size in sizes.items():
        wanted = size if name in small or left >= others else min(size, max(1, round(left * size / others)))
        places = np.arange(size) if wanted == size else np.sort(rng.choice(size, wanted, replace=False))
        found.append(Stratum(name, places, size / wanted))
    return found


def columns(plan: Plan, chosen: Sequence[Stratum], x: Tensor) -> Tensor:
    """The Jacobian (points, outputs, weights) of these weights."""
    sizes = [plan.model.get_parameter(name).numel() for name in plan.rest]
    before = dict(zip(plan.rest, accumulate(sizes, initial=0), strict=False))
    numbers = {layer: number for number, layer in enumerate(plan.layers)}
    wanted = [
        (-1, one.places + before[one.name])
        if one.name in before
        else (numbers[plan.model.get_submodule(one.name.rpartition(".")[0])], _in_layer(plan.model, one))
        for one in chosen
    ]
    parts = []
    for first in range(0, len(x), size := block_size(plan)):
        factors = plan.factors(x[first : first + size], first)
        rows = [(factors[number], torch.as_tensor(places)) for number, places in wanted]
        count = min(size, len(x) - first)
        parts.append(
            torch.cat(
                [
                    torch.zeros(count, plan.outputs, len(places)) if factor is None else factor.at(places)
                    for factor, places in rows  # points that do not reach a layer have no factor there
                ],
                2,
            )
        )
    return torch.cat(parts)


def _in_layer(model: nn.Module, one: Stratum) -> np.ndarray:
    """Where these numbers stand in the gradient of their layer.

    A bias is one more input of Linear layers and of convolutions; in the others, biases come after the weights.
    """
    owner, _, name = one.name.rpartition(".")
    layer = model.get_submodule(owner)
    weight, bias = (layer._parameters.get(part) for part in ("weight", "bias"))
    trained = weight is not None and weight.requires_grad
    if isinstance(layer, (nn.Linear, nn.Conv1d, nn.Conv2d)) and getattr(layer, "groups", 1) == 1:
        inputs = layer.weight[0].numel() if trained else 0
        width = inputs + (bias is not None and bias.requires_grad)
        return one.places * width + inputs if name == "bias" else one.places // inputs * width + one.places % inputs
    return one.places + (weight.numel() if name == "bias" and trained and weight is not None else 0)


#: Weights of the sample, and how often gradients may be computed again before they are sampled.
WEIGHTS, OFTEN = 20_000, 4


def weight_sample(model: nn.Module, points: int, outputs: int, seed: int) -> tuple[Stratum, ...] | None:
    """The weights from which kernels are estimated; None if exact kernels are affordable.

    >>> weight_sample(nn.Conv2d(3, 8, 3), 500, 10, 0) is None
    True

    An exact kernel needs the gradients of convolutions for every output of every point. Where only a small part of them
    fits in memory, they would be computed again and again.
    """
    layers = [layer for layer in model.modules() if isinstance(layer, nn.modules.conv._ConvNd)]
    numbers = sum(p.numel() for layer in layers for p in layer.parameters() if p.requires_grad)
    if 4.0 * points * outputs * numbers <= OFTEN * chunk_bytes():
        return None
    return tuple(strata(model, WEIGHTS, seed))


def say_sampled(chosen: Sequence[Stratum] | None) -> None:
    """Warn that kernels are estimates."""
    if chosen is not None:
        count = sum(len(one.places) for one in chosen)
        warn_caller(
            f"The gradients of `model` are too large for exact kernels: these are estimated from {count:,} of its "
            "weights, which is right to about one part in a hundred."
        )


def sampled_kernels(
    model: nn.Module, x: Tensor, other: Tensor, chosen: Sequence[Stratum], outputs: str, read: Read | None
) -> tuple[np.ndarray, np.ndarray]:
    """K(x, x) and K(other, x), each weight of the sample counting for those it stands for.

    >>> line = nn.Linear(2, 1, bias=False)
    >>> x = torch.tensor([[1.0, 2.0], [0.0, 1.0]])
    >>> sampled_kernels(line, x, x[:1], [Stratum("weight", np.array([0, 1]), 1.0)], "full", None)
    (array([[5., 2.],
           [2., 1.]]), array([[5., 2.]]))

    With m weights the kernel is right to about one part in the root of m. `outputs` is "full" or "trace", as in
    `tangent_kernel`.
    """
    counts = torch.cat([torch.full((len(one.places),), one.stands_for) for one in chosen])

    def both(plan: Plan) -> list[Tensor]:
        points = len(x) + len(other)
        check_fits("weights", len(counts), 4 * points * plan.outputs, f"weights at {points:,} points")
        return [part * counts.sqrt().to(part) for part in (columns(plan, chosen, given) for given in (x, other))]

    mine, theirs = by_plan(model, x, read, False, both)
    return _products(mine, mine, outputs), _products(theirs, mine, outputs)


def _products(rows: Tensor, columns_: Tensor, outputs: str) -> np.ndarray:
    if outputs == "full":
        found = rows.flatten(0, 1) @ columns_.flatten(0, 1).T
    else:
        found = rows.flatten(1) @ columns_.flatten(1).T / rows.shape[1]
    return np.asarray(found.double().cpu().numpy())
