"""The filters phi and psi of w = phi(H) h + psi(H) w0, as functions of time and eigenvalue, compiled."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(nogil=True, cache=True, error_model="numpy")
def flow_filters(z, rate, times):  # type: ignore[no-untyped-def]
    """phi = (1 - e^{-rate t z}) / z and psi = e^{-rate t z}, of shape (T, J)."""
    phi = np.empty((times.shape[0], z.shape[0]), np.complex128)
    psi = np.empty_like(phi)
    for i in range(times.shape[0]):
        for j in range(z.shape[0]):
            left = np.exp(-rate * times[i] * z[j])
            psi[i, j] = left
            phi[i, j] = (1.0 - left) / z[j] if z[j] != 0.0 else rate * times[i] + 0.0j
    return phi, psi


@njit(nogil=True, cache=True, error_model="numpy")
def descent_filters(z, rate, momentum, steps):  # type: ignore[no-untyped-def]
    """The polynomials of heavy-ball descent after each of the `steps`, of shape (T, J).

    phi' = phi - rate (z phi - 1) + momentum (phi - phi before), from 0; psi the same without the 1, from 1.
    """
    phi = np.empty((steps.shape[0], z.shape[0]), np.complex128)
    psi = np.empty_like(phi)
    for j in range(z.shape[0]):
        now, before, own, own_before = 0.0j, 0.0j, 1.0 + 0.0j, 1.0 + 0.0j
        done = 0
        for i in range(steps.shape[0]):
            while done < steps[i]:
                new = now - rate * (z[j] * now - 1.0) + momentum * (now - before)
                before, now = now, new
                new = own - rate * z[j] * own + momentum * (own - own_before)
                own_before, own = own, new
                done += 1
            phi[i, j], psi[i, j] = now, own
    return phi, psi


@njit(nogil=True, cache=True, error_model="numpy")
def real_sum(filters, values, out):  # type: ignore[no-untyped-def]
    """Add Re(filters @ values) to out (T, F)."""
    for i in range(filters.shape[0]):
        for j in range(filters.shape[1]):
            a, b = filters[i, j].real, filters[i, j].imag
            for k in range(values.shape[1]):
                out[i, k] += a * values[j, k].real - b * values[j, k].imag
