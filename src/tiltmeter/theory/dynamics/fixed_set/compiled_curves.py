"""Overlaps of many problems at all times, compiled: nodes, resolvents, filters and sums, problem by problem."""

from __future__ import annotations

import numpy as np

from tiltmeter.theory.compiled import compiled


@compiled
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


@compiled
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


@compiled
def real_sum(filters, values, out):  # type: ignore[no-untyped-def]
    """Add Re(filters @ values) to out (T, F)."""
    for i in range(filters.shape[0]):
        for j in range(filters.shape[1]):
            a, b = filters[i, j].real, filters[i, j].imag
            for k in range(values.shape[1]):
                out[i, k] += a * values[j, k].real - b * values[j, k].imag


@compiled
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


@compiled
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


@compiled
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


@compiled
def nodes_of(centre, radius, beta, count):  # type: ignore[no-untyped-def]
    """The nodes on the upper half of the ellipse, and their weights."""
    z, weight = np.empty(count, np.complex128), np.empty(count, np.complex128)
    for j in range(count):
        turn = beta + 1j * (j + 0.5) * np.pi / count
        z[j] = centre + radius * np.cosh(turn)
        weight[j] = -radius * np.sinh(turn) / count
    return z, weight


@compiled
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


@compiled
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


@compiled
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
