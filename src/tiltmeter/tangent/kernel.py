"""Tangent kernel (stand-in, slow)."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, jacrev, vmap

from tiltmeter.passes.forward import Read, flat_scores, scores
from tiltmeter.passes.untouched import untouched


def _jacobian(model: nn.Module, x: Tensor, read: Read | None) -> Tensor:
    like = next(model.parameters())
    x = x.to(like.dtype) if x.is_floating_point() else x
    fixed = {k: v.detach() for k, v in model.named_parameters()}

    def one(p: dict[str, Tensor], point: Tensor) -> Tensor:
        return flat_scores(functional_call(model, p, (point[None],)), 1, read).reshape(-1)

    parts = []
    for start in range(0, len(x), 64):
        found = vmap(jacrev(one), in_dims=(None, 0))(fixed, x[start : start + 64])
        parts.append(torch.cat([g.flatten(2) for g in found.values()], 2))
    return torch.cat(parts).double()


def tangent_kernel(
    model: nn.Module,
    x: Any,
    other: Any = None,
    *,
    outputs: str = "full",
    read: Read | None = None,
    chunk: int = 256,
    dtype: Any = np.float64,
) -> np.ndarray:
    """The kernel."""
    with untouched(model):
        a = _jacobian(model, torch.as_tensor(x), read)
        b = a if other is None else _jacobian(model, torch.as_tensor(other), read)
    if outputs == "trace":
        return np.asarray(torch.einsum("ncp,mcp->nm", a, b) / a.shape[1], dtype=dtype)
    return np.asarray(a.flatten(0, 1) @ b.flatten(0, 1).T, dtype=dtype)


def initial_scores(model: nn.Module, x: Any, *, read: Read | None = None, chunk: int = 256) -> np.ndarray:
    """Scores."""
    with untouched(model):
        found = torch.cat([s for _, s in scores(model, torch.as_tensor(x), read, chunk)])
    return np.asarray(found.double().reshape(len(found), -1))
