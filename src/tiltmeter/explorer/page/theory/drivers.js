// What makes the gap: Shapley values of three asymmetries of the data, from the eight problems with each on or off.
import { constants, losses } from "./closed_form.js";
import { stabilityLimit } from "./problem.js";

export const DRIVERS = ["shift", "variance", "representation"];
const SHARE = [1 / 3, 1 / 6, 1 / 3];

function switched(problem, on) {
  const [shift, variance, representation] = on;
  const mean = 0.5 * (problem.variance[0] + problem.variance[1]);
  return {
    ...problem,
    alignment: shift ? problem.alignment : [0, 0],
    label_bias: shift ? problem.label_bias : [0, 0],
    variance: variance ? problem.variance : [mean, mean],
    rho: representation ? problem.rho : 0.5,
  };
}

// Functions of time; null where one of the eight problems has no value, because its training diverges.
export function drivers(problem) {
  const subsets = [];
  for (let code = 0; code < 8; code += 1) {
    const on = [(code & 4) > 0, (code & 2) > 0, (code & 1) > 0];
    const variant = switched(problem, on);
    if (variant.lr >= stabilityLimit(variant)) return null;
    subsets.push({ on, k: constants(variant) });
  }
  return (t) => {
    const gaps = subsets.map(({ k }) => {
      const [a, b] = losses(k, t);
      return a - b;
    });
    const parts = { loss_gap: gaps[7], rest: gaps[0] };
    DRIVERS.forEach((name, i) => {
      const bit = 4 >> i;
      let sum = 0;
      for (let code = 0; code < 8; code += 1) {
        if (!(code & bit)) {
          const others = subsets[code].on.filter(Boolean).length;
          sum += SHARE[others] * (gaps[code | bit] - gaps[code]);
        }
      }
      parts[name] = sum;
    });
    return parts;
  };
}
