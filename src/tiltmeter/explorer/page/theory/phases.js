// The stretches between crossings: who leads, and which asymmetry of the data makes the gap there.
import { geomspace } from "./closed_form.js";
import { crossings, FIRST } from "./crossings.js";
import { DRIVERS, drivers } from "./drivers.js";
import { GROUPS } from "./problem.js";

const PHASE_LOOKS = 64;

export function phases(problem) {
  const { found, first } = crossings(problem);
  if (first === null) return [];
  const edges = [FIRST, ...found.map((one) => one.time), problem.until];
  const leaders = [first, ...found.map((one) => one.after)];
  const split = drivers(problem);
  return leaders.map((who, i) => {
    const phase = { start: edges[i], stop: edges[i + 1], leader: who, driver: null, reason: null, size: null };
    if (split === null || !(phase.stop > phase.start)) return phase;
    const parts = geomspace(phase.start, phase.stop, PHASE_LOOKS).map(split);
    const gap = meanOverLooks(parts.map((one) => one.loss_gap));
    let best = -Infinity;
    for (const name of [...DRIVERS, "rest"]) {
      const mean = Math.sign(gap) * meanOverLooks(parts.map((one) => one[name]));
      if (mean > best) {
        best = mean;
        phase.driver = name;
      }
    }
    phase.size = meanOverLooks(parts.map((one) => Math.abs(one.loss_gap)));
    phase.reason = reason(phase.driver, problem, who);
    return phase;
  });
}

// The evaluations are even in log time, so this is the trapezoid rule over log time.
function meanOverLooks(values) {
  const inner = values.slice(1, -1).reduce((sum, value) => sum + value, 0);
  return (inner + 0.5 * (values[0] + values[values.length - 1])) / (values.length - 1);
}

function reason(driver, problem, who) {
  if (driver === "shift") return "shift and label imbalance";
  if (driver === "rest") return "teachers, start or loss weights";
  const place = GROUPS.indexOf(who);
  if (driver === "variance") {
    return problem.variance[place] > problem.variance[1 - place] ? "larger variance" : "smaller variance";
  }
  const share = [problem.rho, 1 - problem.rho];
  return share[place] > share[1 - place] ? "more data" : "less data";
}

// The same words as print(tm.leaders(theory)).
export function sentence(found) {
  if (found.length === 0) return "No group leads: the loss of all groups is the same up to rounding.";
  const because = (phase) => (phase.reason === null ? "" : ` (${phase.reason})`);
  const first = `Group ${found[0].leader} has the lower loss`;
  if (found.length === 1) return `${first} throughout${because(found[0])}.`;
  const last = found[found.length - 1];
  const parts = [`${first} until t = ${shortNumber(found[0].stop)}${because(found[0])}`];
  for (const phase of found.slice(1, -1)) {
    parts.push(`then group ${phase.leader} until t = ${shortNumber(phase.stop)}${because(phase)}`);
  }
  return `${parts.join(", ")}, then group ${last.leader}${because(last)}.`;
}

// Four significant digits without trailing zeros, as Python's %.4g.
export function shortNumber(value, digits = 4) {
  if (value === 0) return "0";
  const exponent = Math.floor(Math.log10(Math.abs(Number(value.toPrecision(digits)))));
  if (exponent < -4 || exponent >= digits) {
    const [mantissa, power] = value.toExponential(digits - 1).split("e");
    const sign = power[0] === "-" ? "-" : "+";
    return `${String(Number(mantissa))}e${sign}${power.replace(/^[+-]/, "").padStart(2, "0")}`;
  }
  return String(Number(value.toPrecision(digits)));
}
