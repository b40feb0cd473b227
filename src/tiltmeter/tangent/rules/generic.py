"""generic: explicit gradients of any parameters, point by point. Slow, and correct for every model."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.func import functional_call, jacrev, vmap
from torch.nn.attention import SDPBackend, sdpa_kernel

from tiltmeter.passes.forward import Read, flat_scores, scores
from tiltmeter.tangent.factors.rows import Rows

#: (model, names of parameters, points, read) -> rows of gradients
Written = Callable[[nn.Module, Sequence[str], Tensor, "Read | None"], Rows]


def mapped(model: nn.Module, names: Sequence[str], x: Tensor, read: Read | None) -> Rows:
    """All points at once by vectorisation; some operations do not allow it."""
    values = {name: model.get_parameter(name).detach() for name in names}

    def outputs(values: dict[str, Tensor], point: Tensor) -> Tensor:
        return flat_scores(functional_call(model, values, (point[None],)), 1, read).reshape(-1)

    # Fused attention cannot be vectorised; torch's warnings about other operations concern speed.
    with sdpa_kernel(SDPBackend.MATH), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="There is a performance drop")
        found = vmap(jacrev(outputs), (None, 0))(values, x)
    return Rows(torch.cat([found[name].flatten(2).detach() for name in names], 2))


def one_by_one(model: nn.Module, names: Sequence[str], x: Tensor, read: Read | None) -> Rows:
    """One backward pass per point and output."""
    parameters = [model.get_parameter(name) for name in names]
    rows = []
    for point in x[:, None]:
        with torch.enable_grad():
            _, found = next(scores(model, point, read, 1))
            outputs = found.reshape(-1).unbind()
        for output in outputs:
            gradients = (
                torch.autograd.grad(output, parameters, retain_graph=True, allow_unused=True)
                if found.requires_grad
                else [None] * len(parameters)
            )
            rows.append(torch.cat([_dense(g, p).flatten() for g, p in zip(gradients, parameters, strict=True)]))
    return Rows(torch.stack(rows).view(len(x), -1, len(rows[0])))


def _dense(gradient: Tensor | None, parameter: Tensor) -> Tensor:
    if gradient is None:
        return torch.zeros_like(parameter)
    return gradient.to_dense() if gradient.is_sparse else gradient
