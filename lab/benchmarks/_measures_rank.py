"""Effective rank by the smaller side against the eigenvalues of the whole Gram matrix, which grow with the points."""

from __future__ import annotations

import math

import torch
from _measure import best

from tiltmeter_lab.measures.effective_rank import prepared, singular_values, spectral_entropy

POINTS, FEATURES, BAR = 2000, 64, 10.0


def dense(rows: torch.Tensor) -> float:
    """What anyone would write: the Gram matrix of all points, its eigenvalues, their entropy."""
    unit = rows / rows.norm(dim=1, keepdim=True)
    values = torch.linalg.eigvalsh(unit @ unit.T).clamp_min(0.0)
    shares = values / values.sum()
    return math.exp(-float(torch.special.xlogy(shares, shares).sum()))


def by_smaller_side(rows: torch.Tensor) -> float:
    """What the measure does."""
    return math.exp(spectral_entropy(singular_values(prepared(rows, centred=False, cosine=True)) ** 2))


def compare() -> dict[str, dict[str, float]]:
    """One row: times of both ways on the same features, which must agree."""
    rows = torch.relu(torch.randn(POINTS, FEATURES, generator=torch.Generator().manual_seed(0), dtype=torch.float64))
    assert abs(dense(rows) - by_smaller_side(rows)) < 1e-6
    slow, fast = [], []
    for _ in range(3):  # in turns, so that a busy moment of the machine hits both
        slow.append(best(lambda: dense(rows), 1))
        fast.append(best(lambda: by_smaller_side(rows), 5))
    ratio = min(slow) / min(fast)
    label = f"effective rank of a {POINTS} x {FEATURES} Gram matrix against all of it"
    return {label: {"ratio": ratio, "seconds": min(fast), "dense_seconds": min(slow), "bar": BAR, "met": ratio >= BAR}}
