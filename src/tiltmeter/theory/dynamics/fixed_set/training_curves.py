"""Loss and error on the training set itself, per group, of full-batch training.

The score of a training example of group g with label y = eps sign(nu + a_g), nu standard normal and eps = -1 with the
share of wrong labels, is    cy y + mean + cnu nu + sqrt(var) xi    with xi an independent standard normal, and

    cy = <phi (1 - u)>,   mean = <phi u (M + b)> + <psi u (Mx + bx)>,   cnu = sqrt(D) (<phi u R> + <psi u Rx>)
    cnu^2 + var = D << u1 u2 (phi1 phi2 [S] + 2 phi1 psi2 [S0h] + psi1 psi2 [S00]) >>,   [F] = (F1 - F2) / (z1 - z2)

minus the contribution of the bias to S, because it has no variance. cy is the effect of the example on its own score:
memorisation.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tiltmeter.theory.dynamics.fixed_set.contour import Divided, Resolvents, resolvents_at
from tiltmeter.theory.dynamics.fixed_set.overlaps import contour_of
from tiltmeter.theory.problem.fixed import FixedParameters
from tiltmeter.threads import in_blocks

BUFFER = 1 << 14  # elements of a broadcast block
WORTH_A_THREAD = 1 << 14  # elements: 1 to 2 ms of work
NORMAL_ROUNDING = 1e-12  # how far beyond 1 a computed correlation may lie


def bivariate_normal_cdf(
    h: ArrayLike,
    k: ArrayLike,
    r: ArrayLike,
    out: NDArray[np.float64] | None = None,
    threads: int | None = None,
) -> NDArray[np.float64]:
    """Probability that X is at most `h` and Y at most `k`, for standard normal X and Y with correlation `r`.

    >>> bivariate_normal_cdf(0.0, [-np.inf, 0.0, np.inf], 0.5)
    array([0.        , 0.33333333, 0.5       ])
    >>> bivariate_normal_cdf([[-1.0], [1.0]], 1.0, [-1.0, 0.0, 1.0])
    array([[0.        , 0.13348376, 0.15865525],
           [0.68268949, 0.70786098, 0.84134475]])

        Phi2(h, k, r) = ∫_{-∞}^h ∫_{-∞}^k exp(-(x² - 2rxy + y²) / (2 (1 - r²))) / (2π √(1 - r²)) dy dx

    The three arguments are broadcast against each other in blocks, so the full broadcast arrays are never stored. The
    result is written to `out`, if given, and does not depend on `threads` (default: all cores).

    Infinite `h` and `k` and r = ±1 give the exact limits; NaN gives NaN; `r` beyond ±1 by at most 1e-12 is treated as
    rounding. Compared with 50 digits the error is below 5e-16, and also below 5e-16 (1 + x²) Phi(x) with x the lower of
    `h` and `k`: a conditional probability Phi2 / Phi is right to 13 decimals, however rare its condition is. Phi2
    itself has 11 correct digits, however small it is, except for r within 1e-6 of -1 and h + k near 0, where it is a
    difference of nearly equal numbers.

    It does not take means or variances (standardise first) or more than two variables, does not keep labels
    (coordinates of xarray are dropped), and is not differentiable.
    """
    h, k, r = (np.asarray(x, dtype=np.float64) for x in (h, k, r))
    for extreme in (np.fmin.reduce(r, axis=None, initial=0.0), np.fmax.reduce(r, axis=None, initial=0.0)):
        if abs(extreme) > 1 + NORMAL_ROUNDING:
            raise ValueError(f"`r` should lie between -1 and 1. Found r = {extreme}.")
    shape = np.broadcast_shapes(h.shape, k.shape, r.shape)
    if out is None:
        out = np.empty(shape)
    elif out.shape != shape or out.dtype != np.float64:
        raise ValueError(f"`out` should be float64 of shape {shape}. Found {out.dtype} of shape {out.shape}.")
    if any(np.may_share_memory(out, x) for x in (h, k, r)):
        out[...] = bivariate_normal_cdf(h, k, r, threads=threads)
        return out

    from tiltmeter.theory.population.compiled_normal import bivariate_into

    def work(start: int, stop: int) -> None:
        blocks = np.nditer(
            (h, k, r, out),
            flags=["external_loop", "buffered", "ranged", "zerosize_ok"],
            op_flags=[["readonly", "contig"]] * 3 + [["writeonly", "contig"]],  # type: ignore[arg-type]
            buffersize=BUFFER,
        )
        with blocks:
            blocks.iterrange = (start, stop)  # type: ignore[misc]
            for block in blocks:
                bivariate_into(*block)

    in_blocks(work, out.size, threads, least=WORTH_A_THREAD)
    return out


#: The most nodes, because all pairs of nodes are kept in memory.
MOST_NODES = 4000
#: Smaller variances of scores are rounding errors: all examples of a label have the same score.
ROUNDING = 1e-14


def training_curves(fixed: FixedParameters, times: np.ndarray, momentum: float | None) -> tuple[np.ndarray, np.ndarray]:
    """Loss and error of the training examples, each of shape (N, T, G)."""
    from tiltmeter.theory.dynamics.fixed_set.compiled_curves import descent_filters, flow_filters

    par = fixed.par
    chosen = contour_of(fixed, times, momentum)
    if chosen.nodes.max() > MOST_NODES:
        raise ValueError(
            f"Training curves up to {times[-1]:g} need {chosen.nodes.max()} nodes, more than {MOST_NODES}: relaxation "
            'is too slow here. Ask for an earlier time, or for other curves by curves=("loss", "error").'
        )
    shape = (fixed.size, len(times), len(par.groups))
    law = np.empty((4, *shape))

    def work(start: int, stop: int) -> None:
        for n in range(start, stop):
            at = resolvents_at(fixed, chosen, n)
            rate = par.lr[n] / fixed.alpha[n]
            if momentum is None:
                phi, psi = flow_filters(at.z, rate, times)
            else:
                phi, psi = descent_filters(at.z, rate, momentum, times.astype(np.int64))
            law[:, n] = _score_intervention(at, phi, psi, par.D[n], fixed.started)

    in_blocks(work, fixed.size, least=1)
    return _loss_and_error(fixed, *law)


def _score_intervention(at: Resolvents, phi: np.ndarray, psi: np.ndarray, D: np.ndarray, started: bool) -> np.ndarray:
    """cy, mean, cnu and total variance, of shape (4, T, G)."""
    phi, psi = phi * at.weight, psi * at.weight
    e, ex = at.M + at.b[:, None], at.Mx + at.bx[:, None]
    cy = (phi @ (1.0 - at.u)).real
    mean, cnu = (phi @ (at.u * e)).real, (phi @ (at.u * at.R)).real
    bias = np.zeros((len(phi), len(D)))
    one = Divided(at.z, at.S[:, 0], at.S[:, 3])
    if started:
        mean, cnu = mean + (psi @ (at.u * ex)).real, cnu + (psi @ (at.u * at.Rx)).real
        two, three = (Divided(at.z, at.S[:, k], at.S[:, k + 3]) for k in (1, 2))
        bias = (psi @ (at.u * at.bx[:, None])).real
    bias = bias + (phi @ (at.u * at.b[:, None])).real
    total = np.empty_like(cy)
    for g in range(len(D)):
        a, b = phi * at.u[:, g], psi * at.u[:, g]
        total[:, g] = one.form(a, a)
        if started:
            total[:, g] += 2.0 * two.form(a, b) + three.form(b, b)
    return np.stack([cy, mean, np.sqrt(D) * cnu, D * (total - bias**2)])


def _loss_and_error(
    fixed: FixedParameters, cy: np.ndarray, mean: np.ndarray, cnu: np.ndarray, variance: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    par = fixed.par
    m, g, a, f = (x[:, None, :] for x in (fixed.m, fixed.reach / np.sqrt(par.D), par.a, fixed.f))
    miss = 1.0 - cy
    loss = 0.5 * (miss**2 + mean**2 + variance - 2.0 * miss * (m * mean + g * cnu))
    error = np.zeros_like(loss)
    moved = variance > ROUNDING
    deviation = np.sqrt(np.where(moved, variance, 1.0))
    r = np.clip(cnu / deviation, -1.0, 1.0)
    for side in (1.0, -1.0):
        for eps, share in ((1.0, 1.0 - f), (-1.0, f)):
            y = side * eps
            margin = cy + y * mean
            # Without variance only the sign of the margin matters; a score of zero is a negative decision.
            fixed_side = np.where((margin < 0.0) | ((margin == 0.0) & (y > 0)), np.inf, -np.inf)
            threshold = np.where(moved, -margin / deviation, fixed_side)
            error += share * bivariate_normal_cdf(side * a, threshold, -side * y * r)
    return loss, np.clip(error, 0.0, 1.0)
