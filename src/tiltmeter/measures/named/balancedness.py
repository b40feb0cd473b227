"""Balancedness: what gradient flow conserves between linear layers that follow one another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
import xarray as xr
from torch import Tensor, nn

from tiltmeter.measures.shared.weight_matrices import adjacent, check_finite
from tiltmeter.measures.snapshot import Snapshot


@dataclass(frozen=True)
class Balancedness:
    """`imbalance`, the size of D = W2' W2 - W1 W1' - b1 b1' for Linear layers that follow one another (`layers`).

    D is constant along gradient flow where nothing nonlinear lies between the layers; where a ReLU or dropout does, its
    diagonal is, and the size is that of the diagonal. Layers with anything else between them, as tanh or normalisation,
    conserve neither and are left out. `imbalance` is the Frobenius norm, `imbalance_nuclear` the sum of
    absolute eigenvalues, which bounds the `weight_excess` of the layers. For the drift of D itself, which gradient
    descent makes in proportion to the learning rate, compare `imbalances(model)` at two moments: D can move while its
    size stays.

    A small imbalance does *not* mean that training has converged or that it is good: small initial weights are
    balanced. Momentum, weight decay, Adam and noise break the conservation.
    """

    title: ClassVar[str] = "conserved difference of adjacent layers' weights"
    takes: ClassVar[str] = "chains of Linear layers (nn.Sequential), ReLU or nothing between"
    exact: ClassVar[str] = "gradient flow: constant; gradient descent: drifts in proportion to the learning rate"
    absent: ClassVar[str] = "other activations between the layers, momentum, weight decay, Adam"

    def __call__(self, snapshot: Snapshot) -> dict[str, xr.DataArray]:
        found = imbalances(snapshot.model.module)
        coords = {"layers": np.array(list(found))}
        sizes = np.array([float(torch.linalg.matrix_norm(matrix)) for matrix in found.values()])
        nuclear = np.array([float(torch.linalg.eigvalsh(matrix).abs().sum()) for matrix in found.values()])
        words = {"better": "neither", "null": "value at initialisation"}
        return {
            "imbalance": snapshot.reading(
                "imbalance", sizes, coords, long_name="Frobenius norm of what gradient flow conserves", **words
            ),
            "imbalance_nuclear": snapshot.reading(
                "imbalance_nuclear", nuclear, coords, long_name="nuclear norm of what gradient flow conserves", **words
            ),
        }

    def passes(self, snapshot: Snapshot) -> float:  # noqa: ARG002
        """No pass: weights only."""
        return 0.0


def imbalances(module: nn.Module) -> dict[str, Tensor]:
    """D of every two Linear layers that follow one another, by name; its diagonal if a ReLU or dropout lies between.

    >>> first, second = nn.Linear(2, 3, bias=False), nn.Linear(3, 2, bias=False)
    >>> _ = second.weight.data.copy_(first.weight.data.T)
    >>> {name: float(d.abs().max()) for name, d in imbalances(nn.Sequential(first, second)).items()}
    {'0 > 1': 0.0}
    """
    found = {}
    for two in filter(lambda pair: pair.gated, adjacent(module)):
        check_finite(two.name, two.before.weight)
        check_finite(two.name, two.after.weight)
        first, second = (layer.weight.detach().double().cpu() for layer in (two.before, two.after))
        matrix = second.T @ second - first @ first.T
        bias = two.before._parameters["bias"]
        if bias is not None:
            offset = bias.detach().double().cpu()
            matrix = matrix - torch.outer(offset, offset)
        found[two.name] = matrix if two.linear else torch.diag(torch.diag(matrix))
    if not found:
        raise ValueError(
            "Balancedness needs Linear layers that follow one another in nn.Sequential with nothing or a ReLU between. "
            f"Found none in {type(module).__name__}."
        )
    return found
