"""Balancedness: what gradient flow conserves between consecutive linear layers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
import xarray as xr
from torch import Tensor, nn

from tiltmeter.measures.snapshot import Snapshot
from tiltmeter_lab.measures.shared.weight_matrices import adjacent, check_finite


@dataclass(frozen=True)
class Balancedness:
    """`imbalance`: the size of D = W2' W2 - W1 W1' - b1 b1' for consecutive Linear layers (`layers`).

    >>> import tiltmeter as tm, torch
    >>> import tiltmeter_lab as lab
    >>> model = torch.nn.Sequential(torch.nn.Linear(2, 3, bias=False), torch.nn.Linear(3, 2, bias=False))
    >>> model[1].weight.data = model[0].weight.data.T  # W2' W2 = W1 W1'
    >>> data = tm.GroupedData(torch.eye(2).repeat(30, 1), [0, 1] * 30, ["all"] * 60)
    >>> lab.measure(Balancedness(), model, data)["imbalance"].values
    array([0.])

    If nothing nonlinear lies between the layers, D is constant along gradient flow. With a ReLU or dropout between them
    only its diagonal is, and the size is that of the diagonal. Layers with anything else between them, such as tanh or
    normalisation, conserve neither and are left out. `imbalance` is the Frobenius norm. `imbalance_nuclear` is the sum
    of absolute eigenvalues, which bounds the `weight_excess` of the layers.

    Gradient descent changes D in proportion to the learning rate. To see this drift, compare `imbalances(model)` at two
    moments: D can change while its size stays the same.

    What it does not mean: a small imbalance does *not* mean that training has converged or that the model is good.
    Small initial weights are balanced. Momentum, weight decay, Adam and noise break the conservation.
    """

    title: ClassVar[str] = "conserved difference of adjacent layers' weights"
    takes: ClassVar[str] = "chains of Linear layers (nn.Sequential) with a ReLU or nothing between them"
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


def imbalances(module: nn.Module) -> dict[str, Tensor]:
    """D of every two consecutive Linear layers, by name; only its diagonal if a ReLU or dropout lies between them.

    >>> first, second = nn.Linear(2, 3, bias=False), nn.Linear(3, 2, bias=False)
    >>> _ = second.weight.data.copy_(first.weight.data.T)
    >>> {name: float(d.abs().max()) for name, d in imbalances(nn.Sequential(first, second)).items()}
    {'0 > 1': 0.0}

    Args:
        module: Network to look at; it is not changed.
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
            "Balancedness needs consecutive Linear layers in nn.Sequential with nothing or a ReLU between them. "
            f"Found none in {type(module).__name__}."
        )
    return found
