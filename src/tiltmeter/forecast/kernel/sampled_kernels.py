"""Sampled kernels: tangent kernels from a sample of the weights, for networks whose gradients are too large."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from tiltmeter.forecast.coordinates.columns import columns
from tiltmeter.forecast.coordinates.strata import Stratum, strata
from tiltmeter.forecast.warn_caller import warn_caller
from tiltmeter.memory import check_fits
from tiltmeter.passes.forward import Read
from tiltmeter.tangent.memory import chunk_bytes

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
    model: nn.Module, x: Tensor, others: Sequence[Tensor], chosen: Sequence[Stratum], outputs: str, read: Read | None
) -> list[np.ndarray]:
    """K(x, x) and K(other, x) for each of the others, each weight of the sample counting for those it stands for.

    >>> line = nn.Linear(2, 1, bias=False)
    >>> x = torch.tensor([[1.0, 2.0]])
    >>> sampled_kernels(line, x, (), [Stratum("weight", np.array([0, 1]), 1.0)], "full", None)
    [array([[5.]])]

    With m weights the kernel is right to about one part in the root of m. `outputs` is "full" or "trace", as in
    `tangent_kernel`.
    """
    counts = torch.cat([torch.full((len(one.places),), one.stands_for) for one in chosen])
    points = len(x) + sum(len(other) for other in others)
    trial = columns(model, chosen, x[:1], read)
    check_fits("weights", len(counts), points * trial.shape[1] * trial.element_size(), f"weights at {points:,} points")
    mine = columns(model, chosen, x, read) * counts.sqrt().to(trial)
    found = [_products(mine, mine, outputs)]
    for other in others:
        found.append(_products(columns(model, chosen, other, read) * counts.sqrt().to(trial), mine, outputs))
    return found


def _products(rows: Tensor, columns_: Tensor, outputs: str) -> np.ndarray:
    if outputs == "full":
        found = rows.flatten(0, 1) @ columns_.flatten(0, 1).T
    else:
        found = rows.flatten(1) @ columns_.flatten(1).T / rows.shape[1]
    return np.asarray(found.double().cpu().numpy())
