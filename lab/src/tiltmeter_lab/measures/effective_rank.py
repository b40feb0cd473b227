"""EffectiveRank: the number of directions over which features, a Gram matrix or a linear map spread (Huh et al.,
2023).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Protocol

import numpy as np
import torch
import xarray as xr
from torch import Tensor, nn

from tiltmeter.measures.seen_model import SeenModel
from tiltmeter.measures.snapshot import Snapshot
from tiltmeter.modules.networks import compact_weight
from tiltmeter_lab.measures.shared.layer_features import layer_features

#: Above this ratio of sides, using the product with the transpose is cheaper than using the matrix itself.
TALL = 2.0


class Embedding(Protocol):
    """A matrix of a model: the entropy of its spectrum, and that of Gaussian numbers of the same shape."""

    def entropies(self, seen: SeenModel) -> tuple[float, float]: ...

    def passes(self) -> float: ...


@dataclass(frozen=True)
class Features:
    """The outputs of the module called `layer` on the held-out points, one row per point (default: the input of the
    last Linear layer that is called).

    >>> import tiltmeter as tm
    >>> import tiltmeter_lab as lab
    >>> lab.measures.EffectiveRank(lab.measures.Features(centred=True))
    EffectiveRank(of=Features(layer=None, centred=True, cosine=False))

    Args:
        layer: Name of the module; None: the input of the last Linear layer.
        centred: Whether their mean is subtracted.
        cosine: Whether rows are scaled to length 1.
    """

    layer: str | None = None
    centred: bool = False
    cosine: bool = False

    def entropies(self, seen: SeenModel) -> tuple[float, float]:
        return _entropies(seen, self.layer, self.centred, self.cosine, squared=False)

    def passes(self) -> float:
        return 1.0


@dataclass(frozen=True)
class Gram:
    """The Gram matrix of such features; its spectrum is their squared singular values. `cosine` by default.

    >>> import tiltmeter as tm, torch
    >>> import tiltmeter_lab as lab
    >>> data = tm.GroupedData(torch.eye(3).repeat(20, 1), [0, 1, 2] * 20, ["all"] * 60)
    >>> result = lab.measure(EffectiveRank(Gram()), torch.nn.Linear(3, 3), data)  # the features are the inputs
    >>> round(float(result["effective_rank"]), 6)
    3.0

    Args:
        layer: Name of the layer whose input is used; None: the last Linear layer.
        centred: Whether the mean of the features is subtracted.
        cosine: Whether rows are scaled to length 1.
    """

    layer: str | None = None
    centred: bool = False
    cosine: bool = True

    def entropies(self, seen: SeenModel) -> tuple[float, float]:
        return _entropies(seen, self.layer, self.centred, self.cosine, squared=True)

    def passes(self) -> float:
        return 1.0


@dataclass(frozen=True)
class LinearMap:
    """The product of all matrices of a network of Linear layers without bias.

    >>> import tiltmeter as tm, torch
    >>> import tiltmeter_lab as lab
    >>> model = torch.nn.Linear(3, 3, bias=False)
    >>> model.weight.data = torch.diag(torch.tensor([2.0, 2.0, 0.0]))  # two directions are left
    >>> data = tm.GroupedData(torch.eye(3).repeat(20, 1), [0, 1, 2] * 20, ["all"] * 60)
    >>> round(float(lab.measure(EffectiveRank(LinearMap()), model, data)["effective_rank"]), 6)
    2.0
    """

    def entropies(self, seen: SeenModel) -> tuple[float, float]:
        matrix = compact_weight(seen.module).detach().cpu()
        return spectral_entropy(singular_values(matrix)), gaussian_entropy(*matrix.shape)

    def passes(self) -> float:
        return 0.0


@dataclass(frozen=True)
class EffectiveRank:
    """`effective_rank`, the exponential of the entropy of normalised singular values, and `spectral_entropy` itself.

    >>> import tiltmeter as tm, torch
    >>> import tiltmeter_lab as lab
    >>> model = torch.nn.Linear(3, 3, bias=False)
    >>> model.weight.data = 2 * torch.eye(3)
    >>> data = tm.GroupedData(torch.eye(3).repeat(20, 1), [0, 1, 2] * 20, ["all"] * 60)
    >>> round(float(lab.measure(EffectiveRank(LinearMap()), model, data)["effective_rank"]), 6)
    3.0

    Papers report one or the other, so each has its own name here: rank in directions, entropy in nats. `of` selects the
    matrix: `Features()`, `Gram()` (lower, because it squares the spectrum) or `LinearMap()`. The null values are those
    of independent Gaussian numbers of the same shape, with the same treatment.

    What it does not mean: both fall with depth already at initialisation, so compare with the value at step 0, not with
    the width. A low effective rank is *not* a low-rank matrix (no singular value need be zero). It cannot exceed the
    number of points, and uncentred ReLU features have a low value because of their positive mean alone.

    Args:
        of: Matrix whose spectrum is taken: `Features()`, `Gram()` or `LinearMap()`.
    """

    title: ClassVar[str] = "effective rank of features, their Gram matrix or a linear map"
    takes: ClassVar[str] = "any model with a Linear layer or a named one; LinearMap: Linear layers without bias only"
    exact: ClassVar[str] = "identity of size n: n; outer product: 1; product of orthogonal matrices: the width"
    absent: ClassVar[str] = "orthogonal initialisation, residual connections and normalisation: no fall with depth"

    of: Embedding = Features()

    def __call__(self, snapshot: Snapshot) -> dict[str, xr.DataArray]:
        own, null = self.of.entropies(snapshot.model)
        found = {
            "effective_rank": (math.exp(own), "exponential of the entropy of normalised singular values"),
            "effective_rank_null": (math.exp(null), "effective rank of Gaussian numbers of the same shape"),
            "spectral_entropy": (own, "entropy of normalised singular values"),
            "spectral_entropy_null": (null, "spectral entropy of Gaussian numbers of the same shape"),
        }
        return {
            name: snapshot.reading(name, np.asarray(value), {}, long_name=meaning, better="neither")
            for name, (value, meaning) in found.items()
        }

    def passes(self, snapshot: Snapshot) -> float:  # noqa: ARG002
        """One pass for features, none for a linear map."""
        return self.of.passes()


def features(seen: SeenModel, layer: str | None = None) -> Tensor:
    """The outputs of a module on the held-out points, or the input of the last Linear layer: one row per point."""
    if layer is None:
        return torch.as_tensor(layer_features(seen, seen.x))
    modules = dict(seen.module.named_modules())
    if layer not in modules:
        raise KeyError(f"No module {layer!r}. There are: {', '.join(name for name in modules if name)}.")
    parts: list[Tensor] = []

    def output(_: nn.Module, __: object, result: object) -> None:
        # Attention and recurrent modules return a tuple; the features are its first entry.
        rows = result[0] if isinstance(result, tuple) else result
        if not isinstance(rows, Tensor):
            raise TypeError(f"Features should be a tensor. Found that {layer!r} returns {type(rows).__name__}.")
        parts.append(rows.detach().flatten(1).double().cpu())

    hook = modules[layer].register_forward_hook(output)
    try:
        seen.scores(seen.x)
    finally:
        hook.remove()
    if sum(len(part) for part in parts) != len(seen.x):
        raise ValueError(
            f"Features should be one row per point. Found {sum(len(part) for part in parts)} of {layer!r} for "
            f"{len(seen.x)} points."
        )
    return torch.cat(parts)


def _entropies(seen: SeenModel, layer: str | None, centred: bool, cosine: bool, squared: bool) -> tuple[float, float]:
    rows = prepared(features(seen, layer), centred, cosine)
    values = singular_values(rows)
    null = gaussian_entropy(*rows.shape, centred, cosine, squared)
    return spectral_entropy(values**2 if squared else values), null


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
