"""Overlaps of many problems at all times, compiled: nodes, resolvents, filters and sums, problem by problem."""

from __future__ import annotations

import numpy as np
from numba import njit

from tiltmeter.theory.fixed_set.compiled_filters import descent_filters, flow_filters, real_sum
from tiltmeter.theory.fixed_set.compiled_resolvent import nodes_of, resolvents, traces


@njit(nogil=True, cache=True, error_model="numpy")
def fill_overlaps(  # type: ignore[no-untyped-def]
    start, stop, times, steps, momentum, centre, radius, beta, nodes, lr, alpha, decay, p, s, D, K, C, T, m, reach,
    M0, R0, Q0, b0, bias, started, M, R, Q, b,
):  # fmt: skip
    """M, R (N, T, G) and Q, b (N, T) of the items start..stop, by flow at `times`, or by descent after `steps`."""
    number = p.shape[1]
    for n in range(start, stop):
        z, weight = nodes_of(centre[n], radius[n], beta[n], nodes[n])
        tau = s[n] * D[n]
        q = traces(z, decay[n], alpha[n] * p[n], tau)
        _, Mz, Rz, bz, Mx, Rx, bx, S = resolvents(
            z, q, alpha[n], p[n], s[n], tau, K[n], C[n], T[n], m[n], reach[n], M0[n], R0[n], Q0[n], b0[n], bias, False
        )
        if steps.shape[0]:
            phi, psi = descent_filters(z, lr[n] / alpha[n], momentum, steps)
        else:
            phi, psi = flow_filters(z, lr[n] / alpha[n], times)
        values, own = np.empty((z.shape[0], 2 * number + 1), np.complex128), np.zeros((0, 0), np.complex128)
        for j in range(z.shape[0]):
            for g in range(number):
                values[j, g], values[j, number + g] = weight[j] * Mz[j, g], weight[j] * Rz[j, g]
            values[j, 2 * number] = weight[j] * bz[j]
        found = np.zeros((phi.shape[0], 2 * number + 1))
        whole, still = 0.0, np.zeros((phi.shape[0], 1), np.complex128)
        real_sum(phi, values, found)
        if started:
            own = np.empty_like(values)
            for j in range(z.shape[0]):
                for g in range(number):
                    own[j, g], own[j, number + g] = weight[j] * Mx[j, g], weight[j] * Rx[j, g]
                own[j, 2 * number] = weight[j] * bx[j]
            real_sum(psi, own, found)
            if not bias:
                # In directions without data only weight decay acts: this is the part of the start outside the contour.
                flat = np.array([decay[n] + 0.0j])
                if steps.shape[0]:
                    _, still = descent_filters(flat, lr[n] / alpha[n], momentum, steps)
                else:
                    still = np.exp(-lr[n] / alpha[n] * decay[n] * times).astype(np.complex128).reshape(-1, 1)
                whole = Q0[n]
                for j in range(z.shape[0]):
                    whole -= (weight[j] * S[j, 2]).real
                for g in range(number):
                    missing_M, missing_R = M0[n, g], R0[n, g]
                    for j in range(z.shape[0]):
                        missing_M -= own[j, g].real
                        missing_R -= own[j, number + g].real
                    for i in range(phi.shape[0]):
                        found[i, g] += still[i, 0].real * missing_M
                        found[i, number + g] += still[i, 0].real * missing_R
        for i in range(phi.shape[0]):
            for g in range(number):
                M[n, i, g], R[n, i, g] = found[i, g], found[i, number + g]
            b[n, i] = found[i, 2 * number]
            total = 0.0
            for j in range(z.shape[0]):
                f = phi[i, j]
                if started:
                    h = psi[i, j]
                    total += (weight[j] * (f * (f * S[j, 0] + 2.0 * h * S[j, 1]) + h * h * S[j, 2])).real
                else:
                    total += (weight[j] * f * f * S[j, 0]).real
            if started and not bias:
                total += still[i, 0].real ** 2 * whole
            # The contour gives the length of the student including its bias as a coordinate.
            Q[n, i] = total - b[n, i] ** 2
