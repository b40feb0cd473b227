"""Group curves of a student network: losses and rates from its overlaps, by closed forms or fixed nodes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
import xarray as xr

from tiltmeter.record.trajectory import LazyCurves
from tiltmeter.theory.population.labelled_curves import RATES, Values, label_arrays, losses, one_rate
from tiltmeter.theory.population.quadrature import Sobol
from tiltmeter.theory.population.rates import Rates, rates
from tiltmeter.theory.problem.sgd_arrays import Parameters
from tiltmeter.theory.problem.students import Activation, Erf, Identity
from tiltmeter.threads import in_blocks


@dataclass(frozen=True)
class NetworkOverlaps:
    """M, R of shape (N, T, G, K), Q (N, T, K, K), second layer (N, T, K), bias (N, T)."""

    M: np.ndarray
    R: np.ndarray
    Q: np.ndarray
    second: np.ndarray
    bias: np.ndarray


def label_network_curves(
    par: Parameters,
    overlaps: NetworkOverlaps,
    activation: Activation,
    times: np.ndarray,
    names: tuple[str, ...],
    quadrature: Sobol | None = None,
) -> LazyCurves:
    """The named curves of a student network, with dimensions `unit` and, for Q, `other`.

    Linear units have the exact curves of the equivalent linear student. Losses of erf units are exact, from bivariate
    normal probabilities; everything else is averaged over fixed nodes.
    """
    linear, erf = isinstance(activation, Identity), isinstance(activation, Erf) and quadrature is None

    @cache
    def observed() -> tuple[np.ndarray, Rates]:
        return _linear(par, overlaps) if linear else _by_nodes(par, overlaps, activation, quadrature or Sobol())

    @cache
    def loss() -> Values:
        return _closed(par, overlaps) if erf else observed()[0], ("group",)

    arrays: dict[str, Values | Callable[[], Values]] = {
        "M": (overlaps.M, ("group", "unit")),
        "R": (overlaps.R, ("group", "unit")),
        "Q": (overlaps.Q, ("unit", "other")),
        "second_layer": (overlaps.second, ("unit",)),
        "student_bias": (overlaps.bias, ()),
        "loss": loss,
        **{name: partial(one_rate, lambda: observed()[1], name) for name in RATES},
    }
    units = np.arange(overlaps.M.shape[-1])

    def with_units(_: str, curve: xr.DataArray) -> xr.DataArray:
        return curve.assign_coords({dim: units for dim in ("unit", "other") if dim in curve.dims})

    return label_arrays(par, arrays, times, names).changed(with_units)


def _closed(par: Parameters, overlaps: NetworkOverlaps) -> np.ndarray:
    """Losses of erf units."""
    from tiltmeter.theory.population.compiled_erf import fill_losses

    loss = np.empty(overlaps.M.shape[:3])

    def work(start: int, stop: int) -> None:
        fill_losses(start, stop, overlaps.M, overlaps.R, overlaps.Q, overlaps.second, overlaps.bias, par.D, par.a, loss)

    in_blocks(work, len(loss), least=8)
    return loss


def _linear(par: Parameters, overlaps: NetworkOverlaps) -> tuple[np.ndarray, Rates]:
    a = overlaps.second
    M, R = np.einsum("ntgk,ntk->ntg", overlaps.M, a), np.einsum("ntgk,ntk->ntg", overlaps.R, a)
    Q = np.einsum("ntkl,ntk,ntl->nt", overlaps.Q, a, a)
    return losses(par, M, R, Q, overlaps.bias), rates(M, R, Q, overlaps.bias, par.D, par.a)


def _by_nodes(
    par: Parameters, overlaps: NetworkOverlaps, activation: Activation, quadrature: Sobol
) -> tuple[np.ndarray, Rates]:
    """Averages over nodes of (label's field, rest of the units' fields); the labels are the same at every time."""
    points, evaluations, groups, units = overlaps.M.shape
    nodes = quadrature.nodes(units + 1)
    shape = (points, evaluations, groups)
    loss, found = np.empty(shape), Rates(*(np.empty(shape) for _ in range(5)))
    rest = overlaps.Q[:, :, None] - overlaps.R[..., :, None] * overlaps.R[..., None, :]
    roots = square_root(rest)

    def work(start: int, stop: int) -> None:
        for n in range(start, stop):
            for g in range(groups):
                positive = nodes[:, 0] + par.a[n, g] > 0.0
                share = positive.mean()
                for t in range(evaluations):
                    across = nodes[:, 1:] @ roots[n, t, g].T + nodes[:, :1] * overlaps.R[n, t, g]
                    fields = overlaps.M[n, t, g] + np.sqrt(par.D[n, g]) * across
                    score = activation(fields) @ overlaps.second[n, t] + overlaps.bias[n, t]
                    loss[n, t, g] = 0.5 * np.mean((score - np.where(positive, 1.0, -1.0)) ** 2)
                    decided = score > 0.0
                    rate, both = decided.mean(), (decided & positive).mean()
                    known = np.isfinite(loss[n, t, g])
                    found.error[n, t, g] = rate + share - 2.0 * both if known else np.nan
                    found.positive_rate[n, t, g] = rate if known else np.nan
                    found.tpr[n, t, g] = _ratio(both, share, known)
                    found.fpr[n, t, g] = _ratio(rate - both, 1.0 - share, known)
                    found.ppv[n, t, g] = _ratio(both, rate, known)

    in_blocks(work, points, least=1)
    return loss, found


def square_root(matrices: np.ndarray) -> np.ndarray:
    """A square root of each positive semi-definite matrix: the symmetric one, which is smooth and works at low rank."""
    missing = ~np.isfinite(matrices).all((-2, -1))
    values, vectors = np.linalg.eigh(np.where(missing[..., None, None], 0.0, matrices))
    scaled = vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :]
    root = np.asarray(scaled @ vectors.swapaxes(-1, -2))
    root[missing] = np.nan
    return root


def _ratio(part: float, whole: float, known: bool) -> float:
    return part / whole if known and whole > 0.0 else np.nan
