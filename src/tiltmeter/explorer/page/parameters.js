// The parameters of the theory page: their words, ranges, and how a slider between 0 and 1 sets them.
import { scaleOf } from "./slider.js";
import { DEFAULTS } from "./theory/problem.js";

const PLACES = { third: ["share", "variance", "overlap"] };

function parameter(name, place, label, low, high, { log = false, word = null, part } = {}) {
  return {
    id: place === null ? name : `${name}-${(PLACES[name] ?? ["plus", "minus"])[place]}`,
    name, place, label, word, part, ...scaleOf(low, high, log),
    value: (problem) => (place === null ? problem[name] : problem[name][place]),
    with(problem, value) {
      if (place === null) return { ...problem, [name]: value };
      const several = [...problem[name]];
      several[place] = value;
      return { ...problem, [name]: several };
    },
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
  parameter("label_bias", 0, "Label bias of +", -2, 2, { word: "label bias", part: "Labels" }),
  parameter("label_bias", 1, "Label bias of −", -2, 2, { word: "label bias", part: "Labels" }),
  parameter("lr", null, "Learning rate", 0.005, 5, { log: true, word: "stability limit", part: "Training" }),
  parameter("weights", 0, "Loss weight of +", 0.1, 10, { log: true, word: "loss weight", part: "Training" }),
  parameter("weights", 1, "Loss weight of −", 0.1, 10, { log: true, word: "loss weight", part: "Training" }),
  parameter("until", null, "Show until t", 10, 5000, { log: true, word: "time", part: "Training" }),
];

// Of a third group, where there is one; its mean lies at the origin.
export const OF_THIRD = [
  parameter("third", 0, "Share of the third group", 0.02, 0.9, { word: "representation" }),
  parameter("third", 1, "Variance of the third group", 0.05, 5, { log: true, word: "variance" }),
  parameter("third", 2, "Overlap of its teacher with the others", -1, 1, { word: "teacher" }),
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
  if (problem.third) query.set("third", String(problem.third));
  if (problem.samples) {
    query.set("samples", String(problem.samples));
    if (problem.flips.some((share) => share > 0)) query.set("flips", String(problem.flips));
  }
  return query;
}

const NO_MORE = { samples: null, flips: [0, 0], third: null };

export function fromQuery(query) {
  const problem = { ...DEFAULTS, ...NO_MORE };
  for (const name of [...Object.keys(DEFAULTS), ...Object.keys(NO_MORE)]) {
    if (!query.has(name)) continue;
    const numbers = query.get(name).split(",").map(Number);
    const count = name === "third" ? 3 : Array.isArray(problem[name]) ? 2 : 1;
    if (numbers.length !== count || !numbers.every(Number.isFinite)) continue;
    problem[name] = count > 1 ? numbers : numbers[0];
  }
  return isPossible(problem) ? problem : { ...DEFAULTS, ...NO_MORE };
}

function isPossible(problem) {
  const { third } = problem;
  return problem.rho > 0 && problem.rho < 1 && problem.shift >= 0 && Math.abs(problem.overlap) <= 1 && problem.lr > 0
    && problem.until > 0.01 && [...problem.variance, ...problem.weights].every((one) => one > 0)
    && problem.alignment.every((one) => Math.abs(one) <= 1) && (problem.samples === null || problem.samples > 0)
    && problem.flips.every((one) => one >= 0 && one <= 0.5)
    && (third === null || (third[0] > 0 && third[0] < 1 && third[1] > 0 && Math.abs(third[2]) <= 1));
}

// A preset is a whole problem of two groups and fresh examples.
export function fromPreset(state) {
  return { ...state, ...NO_MORE };
}
