// When the lead passes from one group to the other: the sign of the loss gap on a grid, then bisection to the last digit.
import { constants, geomspace, losses } from "./closed_form.js";
import { GROUPS } from "./problem.js";

const ROUNDING = 1e-12;
export const FIRST = 0.01;

export function crossings(problem, from = FIRST, until = problem.until, evaluations = 512) {
  const k = constants(problem);
  const gap = (t) => {
    const [a, b] = losses(k, t);
    return a - b;
  };
  const found = [];
  let first = null;
  let before = null;
  for (const time of geomspace(from, until, evaluations)) {
    const value = gap(time);
    if (Math.abs(value) > ROUNDING) {
      const sign = Math.sign(value);
      if (before !== null && before.sign !== sign) {
        found.push({ time: root(gap, before.time, time, before.sign), before: leader(before.sign), after: leader(sign) });
      }
      if (first === null) first = leader(sign);
      before = { time, sign };
    }
  }
  return { found, first, last: before === null ? null : leader(before.sign) };
}

function leader(sign) {
  return sign > 0 ? GROUPS[1] : GROUPS[0];
}

function root(gap, low, high, sign) {
  for (let i = 0; i < 200; i += 1) {
    const middle = 0.5 * (low + high);
    if (middle <= low || middle >= high) break;
    if (Math.sign(gap(middle)) === sign) low = middle;
    else high = middle;
  }
  return 0.5 * (low + high);
}
