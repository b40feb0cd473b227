"""The resolvent functions at the nodes of a contour, compiled.

    1/q = decay - z + alpha sum_g p_g tau_g / (1 + tau_g q),  u_g = 1/(1 + tau_g q),  c_g = alpha p_g s_g u_g
    M_g = q [ sum_h K_gh c_h (m_h - e_h) + sum_h C_gh c_h reach_h ],   -z b = sum_h c_h (m_h - e_h),   e_h = M_h + b
    R_g = q [ sum_h C_hg c_h (m_h - e_h) + sum_h T_hg c_h reach_h ]
    S   = h'(H - z)^-1 h = alpha sum_g p_g s_g [ 1 - u_g (1 - m_g e_g - reach_g R_g) ]

and the same for (H - z)^-1 w0: Mx, Rx, bx, S0h = w0'(H - z)^-1 h, S00 = w0'(H - z)^-1 w0. Derivatives in z follow from
the same linear system. `decay` = alpha weight_decay belongs to H, but not for the bias b.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(nogil=True, cache=True, error_model="numpy")
def trace(z, guess, decay, weight, tau):  # type: ignore[no-untyped-def]
    """q at one z with Im z > 0: the only root with Im q > 0, by Newton from the guess, else by iteration first."""
    for attempt in range(2):
        q = guess
        if attempt == 1:
            # The map q -> 1/(...) contracts the upper half-plane, slowly near the real axis.
            q = -1.0 / z
            for _ in range(4000):
                total = decay - z
                for g in range(tau.shape[0]):
                    total += weight[g] * tau[g] / (1.0 + tau[g] * q)
                new = 0.5 * (q + 1.0 / total)
                if abs(new - q) < 1e-9 * abs(q):
                    q = new
                    break
                q = new
        for _ in range(40):
            value, slope = decay - z - 1.0 / q, 1.0 / (q * q)
            for g in range(tau.shape[0]):
                u = 1.0 / (1.0 + tau[g] * q)
                value += weight[g] * tau[g] * u
                slope -= weight[g] * tau[g] * tau[g] * u * u
            step = value / slope
            q -= step
            if abs(step) < 1e-15 * abs(q):
                break
        if q.imag > 0.0 and abs(step) < 1e-9 * abs(q):
            return q
    return complex(np.nan, np.nan)


@njit(nogil=True, cache=True, error_model="numpy")
def _solve(A, x):  # type: ignore[no-untyped-def]
    """Solve A y = x in place for every column of x, by elimination with row exchanges; A is used up."""
    n, columns = x.shape
    for i in range(n):
        best = i
        for j in range(i + 1, n):
            if abs(A[j, i]) > abs(A[best, i]):
                best = j
        if best != i:
            for k in range(n):
                A[i, k], A[best, k] = A[best, k], A[i, k]
            for k in range(columns):
                x[i, k], x[best, k] = x[best, k], x[i, k]
        for j in range(i + 1, n):
            factor = A[j, i] / A[i, i]
            for k in range(i + 1, n):
                A[j, k] -= factor * A[i, k]
            for k in range(columns):
                x[j, k] -= factor * x[i, k]
    for i in range(n - 1, -1, -1):
        for k in range(columns):
            total = x[i, k]
            for j in range(i + 1, n):
                total -= A[i, j] * x[j, k]
            x[i, k] = total / A[i, i]


@njit(nogil=True, cache=True, error_model="numpy")
def _matrix(q, z, c, K, bias, A):  # type: ignore[no-untyped-def]
    number = c.shape[0]
    for g in range(number):
        total = 0.0j
        for h in range(number):
            A[g, h] = q * K[g, h] * c[h]
            total += A[g, h]
        A[g, g] += 1.0
        if bias:
            A[g, number] = total
    if bias:
        total = 0.0j
        for h in range(number):
            A[number, h] = c[h]
            total += c[h]
        A[number, number] = total - z


@njit(nogil=True, cache=True, error_model="numpy")
def nodes_of(centre, radius, beta, count):  # type: ignore[no-untyped-def]
    """The nodes on the upper half of the ellipse, and their weights."""
    z, weight = np.empty(count, np.complex128), np.empty(count, np.complex128)
    for j in range(count):
        turn = beta + 1j * (j + 0.5) * np.pi / count
        z[j] = centre + radius * np.cosh(turn)
        weight[j] = -radius * np.sinh(turn) / count
    return z, weight


@njit(nogil=True, cache=True, error_model="numpy")
def traces(z, decay, weight, tau):  # type: ignore[no-untyped-def]
    """q at all nodes, walking from the middle of the contour, where Im z is largest, to both ends."""
    count = z.shape[0]
    q = np.empty(count, np.complex128)
    middle = count // 2
    q[middle] = trace(z[middle], -1.0 / z[middle], decay, weight, tau)
    for j in range(middle + 1, count):
        q[j] = trace(z[j], q[j - 1], decay, weight, tau)
    for j in range(middle - 1, -1, -1):
        q[j] = trace(z[j], q[j + 1], decay, weight, tau)
    return q


@njit(nogil=True, cache=True, error_model="numpy")
def resolvents(z, q, alpha, p, s, tau, K, C, T, m, reach, M0, R0, Q0, b0, bias, slopes):  # type: ignore[no-untyped-def]
    """Per node: u (G), M, R (G), b, Mx, Rx (G), bx; then S, S0h, S00 and, with `slopes`, their derivatives (J, 6)."""
    count, number = z.shape[0], p.shape[0]
    size = number + 1 if bias else number
    u = np.empty((count, number), np.complex128)
    M, R, Mx, Rx = np.empty_like(u), np.empty_like(u), np.empty_like(u), np.empty_like(u)
    b, bx = np.zeros(count, np.complex128), np.zeros(count, np.complex128)
    S = np.zeros((count, 6), np.complex128)
    A, x = np.empty((size, size), np.complex128), np.empty((size, 2), np.complex128)
    c, dc = np.empty(number, np.complex128), np.empty(number, np.complex128)
    e, ex, de, dex = np.empty_like(c), np.empty_like(c), np.empty_like(c), np.empty_like(c)
    for j in range(count):
        at, here = q[j], z[j]
        curve = 1.0 / (at * at)
        for g in range(number):
            u[j, g] = 1.0 / (1.0 + tau[g] * at)
            c[g] = alpha * p[g] * s[g] * u[j, g]
            curve -= alpha * p[g] * (tau[g] * u[j, g]) ** 2
        _matrix(at, here, c, K, bias, A)
        for g in range(number):
            x[g, 0], x[g, 1] = 0.0, at * M0[g]
            for h in range(number):
                x[g, 0] += at * c[h] * (K[g, h] * m[h] + C[g, h] * reach[h])
        if bias:
            x[number, 0], x[number, 1] = 0.0, b0
            for h in range(number):
                x[number, 0] += c[h] * m[h]
        _solve(A, x)
        if bias:
            b[j], bx[j] = x[number, 0], x[number, 1]
        one, cross, start = 0.0j, 0.0j, 0.0j
        for g in range(number):
            M[j, g], Mx[j, g] = x[g, 0], x[g, 1]
            e[g], ex[g] = M[j, g] + b[j], Mx[j, g] + bx[j]
        for g in range(number):
            total, rest = 0.0j, R0[g] + 0.0j
            for h in range(number):
                total += c[h] * (C[h, g] * (m[h] - e[h]) + T[h, g] * reach[h])
                rest -= C[h, g] * c[h] * ex[h]
            R[j, g], Rx[j, g] = at * total, at * rest
            one += alpha * p[g] * s[g] * (1.0 - u[j, g] * (1.0 - m[g] * e[g] - reach[g] * R[j, g]))
            cross += c[g] * ((m[g] - e[g]) * M0[g] + reach[g] * R0[g])
            start += c[g] * M0[g] * ex[g]
        S[j, 0] = one
        S[j, 1] = at * cross + b0 * b[j]
        S[j, 2] = at * (Q0 - start) + b0 * bx[j]
        if not slopes:
            continue
        dq = 1.0 / curve
        for g in range(number):
            dc[g] = -c[g] * tau[g] * u[j, g] * dq
        _matrix(at, here, c, K, bias, A)
        for g in range(number):
            x[g, 0], x[g, 1] = dq / at * M[j, g], dq / at * Mx[j, g]
            for h in range(number):
                x[g, 0] += at * dc[h] * (K[g, h] * (m[h] - e[h]) + C[g, h] * reach[h])
                x[g, 1] -= at * K[g, h] * dc[h] * ex[h]
        if bias:
            x[number, 0], x[number, 1] = b[j], bx[j]
            for h in range(number):
                x[number, 0] += dc[h] * (m[h] - e[h])
                x[number, 1] -= dc[h] * ex[h]
        _solve(A, x)
        db, dbx = (x[number, 0], x[number, 1]) if bias else (0.0j, 0.0j)
        one, cross, start = 0.0j, 0.0j, 0.0j
        for g in range(number):
            de[g], dex[g] = x[g, 0] + db, x[g, 1] + dbx
        for g in range(number):
            total = 0.0j
            for h in range(number):
                total += C[h, g] * (dc[h] * (m[h] - e[h]) - c[h] * de[h]) + T[h, g] * dc[h] * reach[h]
            dR = dq / at * R[j, g] + at * total
            gap = 1.0 - m[g] * e[g] - reach[g] * R[j, g]
            one -= dc[g] * gap - c[g] * (m[g] * de[g] + reach[g] * dR)
            cross += (dc[g] * (m[g] - e[g]) - c[g] * de[g]) * M0[g] + dc[g] * reach[g] * R0[g]
            start += M0[g] * (dc[g] * ex[g] + c[g] * dex[g])
        S[j, 3] = one
        S[j, 4] = dq / at * (S[j, 1] - b0 * b[j]) + at * cross + b0 * db
        S[j, 5] = dq / at * (S[j, 2] - b0 * bx[j]) - at * start + b0 * dbx
    return u, M, R, b, Mx, Rx, bx, S
