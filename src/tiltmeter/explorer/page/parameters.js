// The parameters of the theory page: their words, ranges, and how a slider between 0 and 1 sets them.
import { DEFAULTS } from "./theory/problem.js";

function parameter(name, place, label, low, high, { log = false, word = null, about = "", part } = {}) {
  return {
    id: place === null ? name : `${name}-${place === 0 ? "plus" : "minus"}`,
    name, place, label, low, high, word, about, part,
    value: (problem) => (place === null ? problem[name] : problem[name][place]),
    with(problem, value) {
      if (place === null) return { ...problem, [name]: value };
      const pair = [...problem[name]];
      pair[place] = value;
      return { ...problem, [name]: pair };
    },
    toUnit: (value) => (log ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low)),
    fromUnit: (unit) => (log ? low * (high / low) ** unit : low + unit * (high - low)),
    set(problem, unit) { return this.with(problem, this.fromUnit(unit)); },
  };
}

export const PARAMETERS = [
  parameter("rho", null, "Share of +", 0.02, 0.98, { word: "representation", part: "Who is in the data" }),
  parameter("variance", 0, "Variance of +", 0.05, 5, { log: true, word: "variance", part: "Who is in the data" }),
  parameter("variance", 1, "Variance of −", 0.05, 5, { log: true, word: "variance", part: "Who is in the data" }),
  parameter("overlap", null, "Overlap of the teachers", -1, 1, { word: "teacher", part: "What they have in common" }),
  parameter("shift", null, "Shift between the groups", 0, 6, { word: "shift", part: "What they have in common" }),
  parameter("alignment", 0, "Alignment of the shift, +", -1, 1, { word: "alignment", part: "Labels" }),
  parameter("alignment", 1, "Alignment of the shift, −", -1, 1, { word: "alignment", part: "Labels" }),
  parameter("label_bias", 0, "Label bias of +", -2, 2, { part: "Labels" }),
  parameter("label_bias", 1, "Label bias of −", -2, 2, { part: "Labels" }),
  parameter("lr", null, "Learning rate", 0.005, 5, { log: true, word: "stability limit", part: "Training" }),
  parameter("weights", 0, "Loss weight of +", 0.1, 10, { log: true, part: "Training" }),
  parameter("weights", 1, "Loss weight of −", 0.1, 10, { log: true, part: "Training" }),
  parameter("until", null, "Show until t", 10, 5000, { log: true, part: "Training" }),
];

export function parameterNamed(id) {
  return PARAMETERS.find((one) => one.id === id);
}

// The state as it stands in the address: only what differs from the first preset.
export function toQuery(problem) {
  const query = new URLSearchParams();
  for (const [name, standard] of Object.entries(DEFAULTS)) {
    const text = String(problem[name]);
    if (text !== String(standard)) query.set(name, text);
  }
  if (problem.samples) {
    query.set("samples", String(problem.samples));
    if (problem.flips.some((share) => share > 0)) query.set("flips", String(problem.flips));
  }
  return query;
}

export function fromQuery(query) {
  const problem = { ...DEFAULTS, samples: null, flips: [0, 0] };
  for (const name of [...Object.keys(DEFAULTS), "samples", "flips"]) {
    if (!query.has(name)) continue;
    const numbers = query.get(name).split(",").map(Number);
    const pair = Array.isArray(problem[name]);
    if (numbers.length !== (pair ? 2 : 1) || !numbers.every(Number.isFinite)) continue;
    problem[name] = pair ? numbers : numbers[0];
  }
  const inside = problem.rho > 0 && problem.rho < 1 && problem.shift >= 0 && Math.abs(problem.overlap) <= 1 && problem.lr > 0
    && problem.until > 0.01 && [...problem.variance, ...problem.weights].every((one) => one > 0)
    && problem.alignment.every((one) => Math.abs(one) <= 1) && (problem.samples === null || problem.samples > 0)
    && problem.flips.every((one) => one >= 0 && one <= 0.5);
  return inside ? problem : { ...DEFAULTS, samples: null, flips: [0, 0] };
}
