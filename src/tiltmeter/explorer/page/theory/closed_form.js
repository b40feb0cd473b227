// The exact dynamics of the two-group model (d -> infinity, t = steps/d), in the published form of Sarao Mannelli (2025)
// and Jain et al. (NeurIPS 2024), with loss weights. `tm.predict` is the same by another route; a test holds them equal.
import { erf } from "./erf.js";
import { shiftOverlap } from "./problem.js";

export function constants(problem) {
  const p = [problem.rho, 1 - problem.rho];
  const D = problem.variance;
  const v = problem.shift;
  const eta = problem.lr;
  const A = shiftOverlap(problem);
  const T = [[1, problem.overlap], [problem.overlap, 1]];
  const sign = [1, -1];
  const m = [0, 0];
  const reach = [0, 0];
  const P = [0, 0];
  const noise = [0, 0];
  const c9 = [0, 0];
  let c1 = 0, c6 = 0, c7 = 0, total = 0, pull = 0, Dbar = 0, noisy = 0;
  for (let g = 0; g < 2; g += 1) {
    const a = (sign[g] * A[g] + problem.label_bias[g]) / Math.sqrt(D[g]);
    m[g] = erf(a / Math.SQRT2);
    reach[g] = Math.sqrt(D[g]) * Math.sqrt(2 / Math.PI) * Math.exp((-a * a) / 2);
    P[g] = p[g] * problem.weights[g];
    noise[g] = eta * eta * P[g] * problem.weights[g] * D[g];
    c1 += eta * P[g] * (sign[g] * v * m[g] + A[g] * reach[g]);
    c6 += noise[g];
    c7 += 2 * (eta * P[g] - noise[g]) * sign[g] * m[g];
    c9[g] = 2 * (eta * P[g] - noise[g]) * reach[g];
    total += P[g];
    pull += P[g] * sign[g] * m[g];
    Dbar += P[g] * D[g];
    noisy += noise[g] * D[g];
  }
  const c8 = c6 - 2 * eta * total;
  const gamma = eta * Dbar;
  const kappa = eta * (Dbar + v * total);
  const q = 2 * gamma - noisy;
  const Minf = c1 / kappa;
  const Rinf = [0, 0];
  const k1 = [0, 0];
  let straight = 0, bent = 0, settled = 0;
  for (let k = 0; k < 2; k += 1) {
    const c3 = eta * (A[k] * pull + P[0] * reach[0] * T[0][k] + P[1] * reach[1] * T[1][k]);
    Rinf[k] = (c3 - eta * A[k] * total * Minf) / gamma;
    k1[k] = v > 0 ? (A[k] * Minf) / v : 0;
    straight += c9[k] * (k1[k] - Rinf[k]);
    bent += c9[k] * k1[k];
    settled += c9[k] * Rinf[k];
  }
  return {
    m, reach, D, kappa, gamma, q, Minf, Rinf, k1,
    Qinf: (c6 + c7 * Minf + c8 * Minf * Minf + settled) / q,
    F2: straight,
    F3: -(c7 + 2 * c8 * Minf) * Minf - bent,
    F4: c8 * Minf * Minf,
  };
}

// (e^{-qt} - e^{-rate t}) / (rate - q) without cancellation; t e^{-qt} where the two rates meet.
function between(q, rate, t) {
  const x = (q - rate) * t;
  if (Math.abs(x) < 1) return Math.exp(-q * t) * t * (x === 0 ? 1 : Math.expm1(x) / x);
  return (Math.exp(-q * t) - Math.exp(-rate * t)) / (rate - q);
}

export function overlaps(k, t) {
  const M = -k.Minf * Math.expm1(-k.kappa * t);
  const slow = -Math.expm1(-k.gamma * t);
  const parting = -Math.exp(-k.gamma * t) * Math.expm1((k.gamma - k.kappa) * t);
  const R = [k.Rinf[0] * slow + k.k1[0] * parting, k.Rinf[1] * slow + k.k1[1] * parting];
  const Q = -k.Qinf * Math.expm1(-k.q * t) + k.F2 * between(k.q, k.gamma, t) + k.F3 * between(k.q, k.kappa, t)
    + k.F4 * between(k.q, 2 * k.kappa, t);
  return { M, R, Q };
}

export function losses(k, t) {
  const { M, R, Q } = overlaps(k, t);
  return [
    0.5 * (1 + M * M + k.D[0] * Q - 2 * (M * k.m[0] + k.reach[0] * R[0])),
    0.5 * (1 + M * M + k.D[1] * Q - 2 * (-M * k.m[1] + k.reach[1] * R[1])),
  ];
}

// How long the student takes to learn along the shift (M), across it (R), and to settle its length (Q).
export function timescales(problem) {
  const k = constants(problem);
  return { M: 1 / k.kappa, R: 1 / k.gamma, Q: 1 / k.q };
}

export function geomspace(low, high, count) {
  const step = Math.log(high / low) / (count - 1);
  const times = Array.from({ length: count }, (_, i) => low * Math.exp(i * step));
  times[count - 1] = high;
  return times;
}
