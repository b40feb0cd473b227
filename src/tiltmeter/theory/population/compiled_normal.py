"""Compiled scalar functions of the normal distribution, in one and two dimensions.

Other compiled loops of the project import `phi`, `Phi` and `bivariate` from here. Importing this module
imports numba, so import it inside the function that needs it.

The bivariate probability Φ₂(h, k, r) = P(X ≤ h, Y ≤ k) rests on Plackett's identity (R. L. Plackett, A
reduction formula for normal multivariate integrals, Biometrika 1954): the derivative of Φ₂ in r is the
density at (h, k). With r = tanh v, P = (h - k)²/8 and Q = (h + k)²/8 it reads

    dΦ₂/dv = exp(-P (1 + e^{2v}) - Q (1 + e^{-2v})) / (2π cosh v),

and Φ₂ is known without an integral at r = 0, 1 and -1. Each (h, k, r) starts from the value that loses
the fewest digits:

* `_from_zero` starts at r = 0, with v = 2 artanh t, where the integrand is rational in t apart from one
  exponential: Gauss-Legendre in the spirit of Drezner and Wesolowsky (On the computation of the bivariate
  normal integral, J. Stat. Comput. Simul. 1990), with the number of nodes grown with |r|, |h| and |k|.
* `_from_one` starts at r = ±1, with w = e^{-|v|}: the factor exp(-Bw²)/(1+w²) is a power series in w² and
  exp(-A/w²) has closed moments, as in Genz (Numerical computation of rectangular bivariate and trivariate
  normal and t probabilities, Stat. Comput. 2004), here summed to the end instead of being corrected by
  quadrature.
* `_from_minus_one` starts at r = -1, where Φ₂ = 0 for h + k ≤ 0, and integrates a positive function over
  the stretch of v that matters: slower, but every digit is kept however small the probability.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.polynomial.legendre import leggauss

from tiltmeter.theory.compiled import compiled_fused, compiled_rule

SERIES_FROM = 0.85  # |r| above which the calculation starts from r = ±1
FAR = 9.0  # |h| or |k| above which the quadrature from r = 0 would need more nodes than it has
UNDERFLOW = 39.0  # Φ(-39) is zero in double precision
NEGLIGIBLE = 40.0  # exp(-40) < 5e-18
REACH = 38.0  # the range of v on which the exponent is within this of its smallest value

ROOT_HALF = math.sqrt(0.5)
ROOT_PI = math.sqrt(math.pi)
DENSITY_AT_ZERO = 1 / math.sqrt(2 * math.pi)
RECIPROCAL = 1 / np.arange(1.0, 41.0)
ODD_RECIPROCAL = 1 / (2 * np.arange(1.0, 41.0) + 1)

LOG2_E = 1 / math.log(2)
LN2_HIGH = float.fromhex("0x1.62e42fefa3800p-1")  # ln 2 to 42 bits, so that its product with n is exact
LN2_LOW = float.fromhex("0x1.ef35793c76730p-45")
ROUNDER = 1.5 * 2.0**52  # adding it rounds to an integer, kept in the lowest bits
EXPONENT_SHIFT = np.int64(52)
EXPONENT_ONE = np.int64(1023 << 52)  # the bits of 1.0
C2, C3, C4, C5, C6, C7, C8, C9, C10, C11, C12, C13 = (1 / math.factorial(n) for n in range(2, 14))


@compiled_fused
def phi(x: float) -> float:
    """Density of the standard normal distribution at `x`."""
    return DENSITY_AT_ZERO * math.exp(-0.5 * x * x)


@compiled_fused
def Phi(x: float) -> float:
    """Probability that a standard normal variable is at most `x`; relative error about (1 + x²) 1e-16."""
    return 0.5 * math.erfc(-x * ROOT_HALF)


@compiled_fused
def _exp(x: float) -> float:
    """e**x to 2e-16 for |x| < 700, without calls and branches, so that loops over nodes can be vectorised."""
    shifted = x * LOG2_E + ROUNDER
    n = shifted - ROUNDER
    f = (x - n * LN2_HIGH) - n * LN2_LOW
    g = f * f
    e = g * g
    low = (C2 + C3 * f) + (C4 + C5 * f) * g
    middle = (C6 + C7 * f) + (C8 + C9 * f) * g
    high = (C10 + C11 * f) + (C12 + C13 * f) * g
    bits = (np.float64(shifted).view(np.int64) << EXPONENT_SHIFT) + EXPONENT_ONE
    return (1 + (f + g * (low + e * (middle + e * high)))) * np.int64(bits).view(np.float64)


def _rule_from_zero(n: int) -> Callable[[float, float, float], float]:
    """Gauss-Legendre rule of n nodes for ∫₀¹ exp(-p (a/(1-t)² + b/(1+t)²)) / (π p) ds, t = ts, p = 1 + t²."""
    x, w = leggauss(n)
    node, weight = (1 + x) / 2, w / (2 * math.pi)

    @compiled_rule(f"rule_from_zero_{n}")
    def rule(end: float, a: float, b: float) -> float:
        total = 0.0
        for i in range(n):
            t = end * node[i]
            p = 1 + t * t
            plus = (1 + t) * (1 + t)
            minus = (1 - t) * (1 - t)
            q = 1 / (p * plus * minus)
            total += weight[i] * (q * plus * minus) * _exp(-p * p * q * (a * plus + b * minus))
        return total

    return rule


def _rule_from_minus_one(n: int) -> Callable[[float, float, float, float, float], float]:
    """Gauss-Legendre rule of n nodes for the mean of exp(-P (x - peak) - Q (1/x - 1/peak)) / (2π cosh v)."""
    x, w = leggauss(n)
    node, weight = x, w / (2 * math.pi)

    @compiled_rule(f"rule_from_minus_one_{n}")
    def rule(P: float, Q: float, peak: float, middle: float, half: float) -> float:
        total = 0.0
        at_peak = 1 / peak
        for i in range(n):
            y = _exp(middle + half * node[i])
            x = y * y
            q = 1 / (x * (1 + x))
            total += weight[i] * (q * x * y) * _exp(P * (peak - x) + Q * (at_peak - q * (1 + x)))
        return total

    return rule


_from_zero_8, _from_zero_12, _from_zero_20, _from_zero_32 = (_rule_from_zero(n) for n in (8, 12, 20, 32))
_from_minus_one_24, _from_minus_one_80 = (_rule_from_minus_one(n) for n in (24, 80))


@compiled_fused
def _from_zero(h: float, k: float, r: float) -> float:
    """Φ₂(h, k, r) - Φ(h) Φ(k), for |r| ≤ SERIES_FROM and |h|, |k| ≤ FAR."""
    sign = math.copysign(1.0, r)
    t = abs(r) / (1 + math.sqrt((1 - r) * (1 + r)))
    a = 0.25 * (h - sign * k) ** 2
    b = 0.25 * (h + sign * k) ** 2
    nodes = 3.6 + 16 * t + (0.6 + 2.4 * t) * max(abs(h), abs(k))  # fitted: error below 3e-16 of Φ(h) Φ(k)
    if nodes <= 8:
        value = _from_zero_8(t, a, b)
    elif nodes <= 12:
        value = _from_zero_12(t, a, b)
    elif nodes <= 20:
        value = _from_zero_20(t, a, b)
    else:
        value = _from_zero_32(t, a, b)
    return sign * t * value


@compiled_fused
def _from_one(A: float, B: float, w2: float) -> float:
    """(1/π) ∫₀ʷ exp(-A (1 + 1/w²) - B (1 + w²)) / (1 + w²) dw, for B w² ≤ 1 and w² ≤ 0.1."""
    a = A / w2
    b = -B * w2
    root = math.sqrt(a)
    moment = 1 - ROOT_PI * root * math.exp(a) * math.erfc(root)  # of exp(a - a/y²) on (0, 1), order 0
    power = 1.0  # (-B w²)^j / j!
    coefficient = 1.0  # of y^{2j} in exp(-B w² y²) / (1 + w² y²)
    total = moment
    for j in range(40):
        power *= b * RECIPROCAL[j]
        coefficient = power - w2 * coefficient
        moment = (1 - 2 * a * moment) * ODD_RECIPROCAL[j]
        total += coefficient * moment
        if abs(power) + abs(coefficient) < 1e-17:
            break
    return math.exp(-(A + B + a)) * math.sqrt(w2) * total / math.pi


@compiled_fused
def _from_minus_one(h: float, k: float, r: float, corner: bool) -> float:
    """Φ₂(h, k, r) for h + k < 0 to full relative accuracy; `corner`: the density at (h, k) dominates.

    If not `corner`, neither h nor k should be positive.
    """
    P = 0.125 * (h - k) ** 2
    Q = 0.125 * (h + k) ** 2
    end = (1 + r) / (1 - r)
    peak = end
    if P * end * end > Q:
        peak = math.sqrt(Q / P)
    least = P * peak + Q / peak
    if P + Q + least > 760:  # exp(-760) is zero
        return 0.0
    bound = least + REACH
    bound += math.sqrt(max(bound * bound - 4 * P * Q, 0.0))
    first = 0.5 * math.log(2 * Q / bound)
    last = min(0.5 * math.log(end), 0.5 * math.log(peak) + REACH)
    if P > 0:
        last = min(last, 0.5 * math.log(0.5 * bound / P))
    middle = 0.5 * (first + last)
    half = 0.5 * (last - first)
    rule = _from_minus_one_24(P, Q, peak, middle, half) if corner else _from_minus_one_80(P, Q, peak, middle, half)
    return 2 * half * rule * math.exp(-(P + Q + least))


@compiled_fused
def _in_corner(h: float, k: float, r: float) -> bool:
    """Whether r < 0 and Φ₂ is so far below Φ(h) Φ(k) that their difference would lose digits."""
    return r < 0 and h + k < 0 and (h - r * k) * (k - r * h) > 12 * (1 - r) * (1 + r)


@compiled_fused
def _far(low: float, high: float, r: float) -> float:
    """Φ₂ for low ≤ high and |r| < 1, with 80 nodes: for any h and k, if one of them is large."""
    marginal = Phi(low)
    if high <= 0:
        return min(_from_minus_one(low, high, r, False), marginal)
    if low <= 0:
        return max(marginal - _from_minus_one(low, -high, -r, False), 0.0)
    return min(marginal - Phi(-high) + _from_minus_one(-high, -low, r, False), marginal)


@compiled_fused
def _outside(h: float, k: float, r: float) -> float:
    """Φ₂ where |h| or |k| is large, r is ±1, or an argument is NaN."""
    if math.isnan(h) or math.isnan(k) or math.isnan(r):
        return math.nan
    low = min(h, k)
    high = max(h, k)
    if low < -UNDERFLOW or (r <= -1 and low + high <= 0):
        return 0.0
    if high > UNDERFLOW or r >= 1:
        return Phi(low)
    if r <= -1:
        return max(Phi(low) - Phi(-high), 0.0)
    if _in_corner(low, high, r):
        return _from_minus_one(low, high, r, True)
    return _far(low, high, r)


@compiled_fused
def bivariate(h: float, k: float, r: float) -> float:
    """Probability that X ≤ h and Y ≤ k, for standard normal X and Y with correlation `r`.

    `r` outside [-1, 1] is replaced by ±1. For the accuracy see
    `tiltmeter.theory.population.bivariate_normal.bivariate_normal_cdf`, which checks `r`.
    """
    if not (abs(h) <= FAR and abs(k) <= FAR and abs(r) < 1):
        return _outside(h, k, r)
    low = min(h, k)
    high = max(h, k)
    if _in_corner(low, high, r):
        return _from_minus_one(low, high, r, True)
    marginal = Phi(low)
    if abs(r) <= SERIES_FROM:
        value = marginal * Phi(high) + _from_zero(low, high, r)
        return min(max(value, 0.0), marginal)
    w2 = (1 - abs(r)) / (1 + abs(r))
    sign = math.copysign(1.0, r)
    A = 0.125 * (low - sign * high) ** 2
    B = 0.125 * (low + sign * high) ** 2
    exponent = A + B + A / w2 + B * w2  # of the density at (h, k)
    if low < 0:
        exponent -= 0.5 * low * low  # relative to that of the density at `low`
    if r > 0:
        if exponent > NEGLIGIBLE:
            return marginal
        if B * w2 > 1:
            return _far(low, high, r)
        return max(marginal - _from_one(A, B, w2), 0.0)
    start = 0.0
    if low + high > 0:
        start = marginal - Phi(-high)
        if exponent > NEGLIGIBLE:
            return start
    if B * w2 > 1:
        return _far(low, high, r)
    return min(start + _from_one(A, B, w2), marginal)


@compiled_fused
def bivariate_into(h: np.ndarray, k: np.ndarray, r: np.ndarray, out: np.ndarray) -> None:
    """Write `bivariate` of each element into `out`; all four are vectors of one length."""
    for i in range(out.size):
        out[i] = bivariate(h[i], k[i], r[i])
