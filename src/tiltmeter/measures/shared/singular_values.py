"""Singular values of tall and wide matrices, at the cost of the smaller side, and their entropy."""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

#: Above this ratio of sides, using the product with the transpose is cheaper than using the matrix itself.
TALL = 2.0


def singular_values(matrix: Tensor) -> Tensor:
    """Singular values in double precision, in descending order; values at rounding level are set to 0.

    >>> singular_values(torch.outer(torch.arange(5.0), torch.ones(2))).round(decimals=6).tolist()
    [7.745967, 0.0]

    For a matrix that is much taller than wide (or wider than tall), they are computed from the eigenvalues of its
    smaller product with its transpose. This keeps values down to 1e-8 of the largest, which is sufficient for
    entropies.
    """
    exact = matrix.detach().double()
    if not torch.isfinite(exact).all():
        raise ValueError("A spectrum needs finite numbers. Found others.")
    rows, columns = exact.shape
    if max(rows, columns) < TALL * min(rows, columns):
        found = torch.linalg.svdvals(exact)
        return torch.where(found > found[0] * max(rows, columns) * torch.finfo(found.dtype).eps, found, 0.0)
    small = exact.T @ exact if rows > columns else exact @ exact.T
    squares = torch.linalg.eigvalsh(small).flip(0)
    level = squares[0] * max(rows, columns) * torch.finfo(squares.dtype).eps
    return torch.where(squares > level, squares, 0.0).sqrt()


def spectral_entropy(values: Tensor) -> float:
    """-sum p ln p of the values divided by their sum (Roy and Vetterli, 2007); 0 if all are 0.

    >>> from math import exp
    >>> round(exp(spectral_entropy(torch.ones(10))), 6)
    10.0

    Its exponential is the effective rank, from 1 to the number of values.
    """
    total = float(values.double().sum())
    if not total > 0:
        return 0.0
    shares = values.double() / total
    # + 0.0 turns the -0.0 of a single value into 0.0
    return float(-torch.special.xlogy(shares, shares).sum()) + 0.0


def prepared(rows: Tensor, centred: bool, cosine: bool) -> Tensor:
    """Rows minus their mean if `centred`, then normalised to length 1 if `cosine` (a row of zeros stays zero)."""
    found = rows.double()
    if centred:
        found = found - found.mean(0)
    if cosine:
        lengths = found.norm(dim=1, keepdim=True)
        found = torch.where(lengths > 0, found / lengths.clamp_min(torch.finfo(found.dtype).tiny), 0.0)
    return found


@lru_cache(maxsize=64)
def gaussian_entropy(
    rows: int, columns: int, centred: bool = False, cosine: bool = False, squared: bool = False
) -> float:
    """The spectral entropy of independent Gaussian numbers with the same treatment: one draw, with a fixed seed."""
    drawn = torch.randn(rows, columns, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    values = singular_values(prepared(drawn, centred, cosine))
    return spectral_entropy(values**2 if squared else values)
