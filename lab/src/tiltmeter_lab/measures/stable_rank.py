"""StableRank: how close weight matrices are to rank 1, and whether neighbouring layers align (Le and Jegelka, 2022)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from tiltmeter.measures.snapshot import Snapshot
from tiltmeter_lab.measures.shared.weight_matrices import adjacent, weight_matrices

#: Largest side for which the null value is drawn, and number of draws: its standard error is then below 1 %.
DRAWN, DRAWS = 32, 256
#: Mean of the Tracy-Widom distribution of real matrices: the scaled distance of the largest eigenvalue from the edge.
TRACY_WIDOM = -1.2065


@dataclass(frozen=True)
class StableRank:
    """`stable_rank` and `weight_excess` of every `layer`, and `alignment` of consecutive Linear layers.

    >>> import tiltmeter as tm, torch
    >>> import tiltmeter_lab as lab
    >>> model = torch.nn.Linear(4, 4)
    >>> data = tm.GroupedData(torch.eye(4).repeat(15, 1), [0, 1, 2, 3] * 15, ["all"] * 60)
    >>> for weight in (torch.eye(4), torch.ones(4, 4)):
    ...     model.weight.data = weight
    ...     print(lab.measure(StableRank(), model, data)["stable_rank"].values.round(6))
    [4.]
    [1.]

    Stable rank is the squared Frobenius norm divided by the squared spectral norm, from 1 to the rank. The excess is
    their difference. It stays bounded while the last linear layers of a network grow on separable data, so that their
    stable rank goes to 1. Alignment is the absolute overlap of the top left singular vector of a layer with the top
    right one of the next. Convolution kernels are taken as matrices of outputs by everything else. The null values are
    those of Gaussian matrices of the same shape, and of two random directions.

    What it does not mean: a stable rank near 1 does *not* mean that the model depends on one input direction, and a
    larger one does not mean the opposite: a network that uses one direction can have a first layer of stable rank 3.
    Only adjacent *linear* layers are known to align. The limit is approached only as fast as the logarithm of the loss,
    so ordinary training rarely shows it.
    """

    title: ClassVar[str] = "stable rank of every weight matrix and alignment of neighbouring layers"
    takes: ClassVar[str] = "any model with weight matrices; alignment only in chains of Linear layers (nn.Sequential)"
    exact: ClassVar[str] = "always: it uses only the weights, no data"
    absent: ClassVar[str] = "large initialisation, early layers, weight decay or many classes (limit: classes - 1)"

    def __call__(self, snapshot: Snapshot) -> dict[str, xr.DataArray]:
        matrices = weight_matrices(snapshot.model.module)
        tops = {name: float(torch.linalg.matrix_norm(w, 2)) ** 2 for name, w in matrices.items()}
        squares = {name: float((w * w).sum()) for name, w in matrices.items()}
        layers = {"layer": np.array(list(matrices))}
        found = {
            "stable_rank": snapshot.reading(
                "stable_rank",
                np.array([max(1.0, squares[name] / tops[name]) if tops[name] > 0 else 0.0 for name in matrices]),
                layers,
                long_name="squared Frobenius over squared spectral norm",
                better="neither",
            ),
            "stable_rank_null": snapshot.reading(
                "stable_rank_null",
                np.array([gaussian_stable_rank(*w.shape) for w in matrices.values()]),
                layers,
                long_name="mean stable rank of Gaussian matrices of this shape",
                better="neither",
            ),
            "weight_excess": snapshot.reading(
                "weight_excess",
                np.array([max(0.0, squares[name] - tops[name]) for name in matrices]),
                layers,
                long_name="squared Frobenius minus squared spectral norm",
                better="neither",
                null="value at initialisation",
            ),
        }
        pairs = adjacent(snapshot.model.module)
        if pairs:
            coords = {"layers": np.array([two.name for two in pairs])}
            values = np.array([overlap(two.before.weight, two.after.weight) for two in pairs])
            chance = np.array([random_overlap(two.before.out_features) for two in pairs])
            for name, numbers, meaning in (
                ("alignment", values, "overlap of top singular vectors of neighbouring layers"),
                ("alignment_null", chance, "overlap of two random directions"),
            ):
                found[name] = snapshot.reading(name, numbers, coords, long_name=meaning, better="neither")
        return found


def overlap(before: Tensor, after: Tensor) -> float:
    """Absolute overlap of the top left singular vector of one matrix with the top right one of the next; 0 for zeros.

    >>> first = torch.outer(torch.tensor([1.0, 0.0]), torch.ones(3))
    >>> overlap(first, torch.tensor([[0.6, 0.8]]))
    0.6...
    """
    if not before.any() or not after.any():
        return 0.0
    left = torch.linalg.svd(before.detach().double().cpu(), full_matrices=False).U[:, 0]
    right = torch.linalg.svd(after.detach().double().cpu(), full_matrices=False).Vh[0]
    return min(1.0, abs(float(left @ right)))


@lru_cache(maxsize=256)
def gaussian_stable_rank(rows: int, columns: int) -> float:
    """The mean stable rank of matrices of independent Gaussian numbers.

    >>> gaussian_stable_rank(1, 50), round(gaussian_stable_rank(100, 100), 1)
    (1.0, 26.0)

    If one side is at most `DRAWN` long, it is a mean of `DRAWS` draws with a fixed seed. For larger matrices it is m n
    divided by the mean of the largest eigenvalue of such a matrix times its transpose (Johnstone, 2001), about m n /
    (sqrt m + sqrt n)^2.
    """
    short, long = sorted((rows, columns))
    if short <= DRAWN:
        return _drawn_stable_rank(short, long)
    sides = math.sqrt(long - 1) + math.sqrt(short)
    spread = sides * (1 / math.sqrt(long - 1) + 1 / math.sqrt(short)) ** (1 / 3)
    return float(rows * columns / (sides**2 + TRACY_WIDOM * spread))


def _drawn_stable_rank(short: int, long: int) -> float:
    """Drawn as triangular matrices that have the same singular values in distribution (Bartlett), so `long` costs
    nothing.
    """
    rng = np.random.default_rng(0)
    triangles = np.tril(rng.normal(size=(DRAWS, short, short)), -1)
    triangles[:, range(short), range(short)] = np.sqrt(rng.chisquare(long - np.arange(short), size=(DRAWS, short)))
    squares = np.linalg.svd(triangles, compute_uv=False) ** 2
    return float((squares.sum(1) / squares[:, 0]).mean())


def random_overlap(d: int) -> float:
    """Expected absolute overlap of two random directions in d dimensions.

    >>> round(random_overlap(2), 4)
    0.6366
    """
    return math.exp(math.lgamma(d / 2) - math.lgamma((d + 1) / 2)) / math.sqrt(math.pi)
