"""Hessian: Hessian-vector products of a mean loss, its largest eigenvalues, and the dense matrix."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from tiltmeter.modules.tangent.gradient import Losses, differentiable, flat

#: A product costs a forward pass, a backward pass (two) and the derivative of both (four).
PASSES = 7


def hessian_times(
    losses: Losses, parameters: Sequence[nn.Parameter], places: Tensor, vector: Tensor, chunk: int = 256
) -> Tensor:
    """H v, where H is the Hessian of the mean loss of the points with these indices (Pearlmutter, 1994).

    >>> slope = nn.Parameter(torch.tensor([3.0, 1.0]))
    >>> x = torch.tensor([[1.0, 0.0], [2.0, 2.0]])
    >>> hessian_times(lambda places: 0.5 * (x[places] @ slope) ** 2, [slope], torch.arange(2), torch.tensor([1.0, 0.0]))
    tensor([2.5000, 2.0000])

    Args:
        losses: Function that gives the loss of each point with these indices.
        parameters: Parameters with respect to which derivatives are taken.
        places: Indices of the points whose mean loss is taken.
        vector: Vector v, as long as all parameters together.
        chunk: Points that pass through the model at once; fewer need less memory.
    """
    total = torch.zeros_like(vector)
    with differentiable():
        for part in torch.split(places, chunk):
            first = torch.autograd.grad(losses(part).sum(), parameters, create_graph=True, allow_unused=True)
            along = flat(first, parameters) @ vector
            if along.requires_grad:  # otherwise the loss is linear in every parameter
                total += flat(torch.autograd.grad(along, parameters, allow_unused=True), parameters)
    return total / len(places)


def top_eigenpairs(
    times: Callable[[Tensor], Tensor], start: Tensor, count: int, iterations: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Largest eigenvalues of a symmetric operator, their vectors (as columns) and residuals, by Lanczos.

    >>> values, _, residuals = top_eigenpairs(lambda v: torch.tensor([4.0, 1.0, -2.0]) * v, torch.ones(3), 2, 3)
    >>> values.round(decimals=4).tolist(), bool((residuals < 1e-5).all())
    ([4.0, 1.0], True)

    Every basis vector is orthogonalised against all previous ones, twice, so that no eigenvalue is found twice. A true
    eigenvalue lies within `residual` of each value. For an operator of lower rank the iteration ends early; the
    remaining values are 0.

    Args:
        times: Multiplies a vector by the operator.
        start: First vector of the iteration.
        count: Eigenvalues that are wanted.
        iterations: Most products with the operator.
    """
    steps = min(iterations, len(start))
    basis = torch.zeros(steps + 1, len(start), dtype=start.dtype, device=start.device)
    tri = torch.zeros(steps + 1, steps + 1, dtype=torch.float64)
    basis[0] = start / start.norm()
    done, tiny = steps, torch.finfo(start.dtype).eps
    for i in range(steps):
        new = times(basis[i])
        scale = float(new.norm())
        if not math.isfinite(scale):
            raise ValueError("The Hessian should be finite. Found NaN or inf: the training may have diverged.")
        tri[i, i] = float(new @ basis[i])
        for _ in range(2):
            new = new - basis[: i + 1].T @ (basis[: i + 1] @ new)
        beta = float(new.norm())
        if beta <= 10 * tiny * max(scale, float(tri.abs().max())) or beta == 0.0:
            done, beta = i + 1, 0.0
        tri[i, i + 1] = tri[i + 1, i] = beta
        if beta == 0.0:
            break
        basis[i + 1] = new / beta
    values, inner = torch.linalg.eigh(tri[:done, :done])
    kept = min(count, done)
    order = torch.arange(done - 1, done - 1 - kept, -1)
    vectors = basis[:done].T @ inner[:, order].to(start)
    last = float(tri[done - 1, done]) if done <= steps else 0.0
    residuals = last * inner[done - 1, order].abs()
    missing = count - kept
    return (
        torch.cat([values[order], torch.zeros(missing, dtype=torch.float64)]),
        torch.cat([vectors, torch.zeros(len(start), missing, dtype=start.dtype, device=start.device)], 1),
        torch.cat([residuals, torch.zeros(missing, dtype=torch.float64)]),
    )
