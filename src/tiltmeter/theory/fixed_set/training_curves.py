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

from tiltmeter.population.bivariate_normal import bivariate_normal_cdf
from tiltmeter.problem.fixed import FixedParameters
from tiltmeter.theory.fixed_set.contour import Divided, Resolvents, resolvents_at
from tiltmeter.theory.fixed_set.overlaps import contour_of
from tiltmeter.threads import in_blocks

#: The most nodes, because all pairs of nodes are kept in memory.
MOST_NODES = 4000
#: Smaller variances of scores are rounding errors: all examples of a label have the same score.
ROUNDING = 1e-14


def training_curves(fixed: FixedParameters, times: np.ndarray, momentum: float | None) -> tuple[np.ndarray, np.ndarray]:
    """Loss and error of the training examples, each of shape (N, T, G)."""
    from tiltmeter.theory.fixed_set.compiled_curves import descent_filters, flow_filters

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
