// The charts of the theory page and of the lessons.
import { LineChart } from "./line_chart.js";
import { constants, geomspace, losses, overlaps, timescales } from "./theory/closed_form.js";
import { FIRST } from "./theory/crossings.js";
import { DRIVERS, drivers } from "./theory/drivers.js";
import { shortNumber } from "./theory/phases.js";
import { GROUPS, spoken, THIRD } from "./theory/problem.js";

const EVALUATIONS = 160;
const ALL_GROUPS = [...GROUPS, THIRD];

export function lossChart(place) {
  return new LineChart(place, { names: ALL_GROUPS, title: "loss", height: 320, room: 44 });
}

export function ratesChart(place) {
  return new LineChart(place, { names: ALL_GROUPS, title: "" });
}

export const ORDER = ["M", "R of +", "R of −", "Q"];
export const SPLIT = [...DRIVERS, "rest", "loss gap"];
export const NOTHING = { times: [], curves: {} };

function columns(names, rows) {
  return Object.fromEntries(names.map((name, i) => [name, rows.map((row) => row[i])]));
}

export function lossShown(problem, found) {
  const k = constants(problem);
  const times = geomspace(FIRST, problem.until, EVALUATIONS);
  const values = times.map((t) => losses(k, t));
  const rates = timescales(problem);
  const scales = [["τQ", rates.Q], ...(problem.shift > 0 ? [["τM", rates.M], ["τR", rates.R]] : [["τR", rates.R]])];
  return {
    times, curves: columns(GROUPS, values), ends: endsOf(values[EVALUATIONS - 1]), ...phaseMarks(found), label: labelOf("Loss", values),
    scales: scales.filter(([, time]) => time > FIRST && time < problem.until).map(([label, time]) => ({ time, label })),
  };
}

// What a screen reader hears of a picture: where its curves begin and end.
function labelOf(title, values) {
  const parts = values[0].map((value, i) => `${spoken(ALL_GROUPS[i])} from ${shortNumber(value, 2)} to ${shortNumber(values.at(-1)[i], 2)}`);
  return `${title} over time: ${parts.join(", ")}.`;
}

// The names of the groups, at the ends of their curves.
function endsOf(values) {
  return values.map((value, place) => ({ value, place, label: place < 2 ? ["+", "−"][place] : THIRD }));
}

function phaseMarks(found) {
  return {
    phases: found.map((phase) => {
      const label = `${phase.leader === "-" ? "−" : phase.leader} leads${phase.reason ? `\n${phase.reason}` : ""}`;
      return { start: phase.start, stop: phase.stop, middle: Math.sqrt(phase.start * phase.stop), leader: phase.leader, label };
    }),
    crossings: found.slice(1).map((phase) => ({ time: phase.start })),
  };
}

export function orderShown(problem) {
  const k = constants(problem);
  const times = geomspace(FIRST, problem.until, EVALUATIONS);
  return { times, curves: columns(ORDER, times.map((t) => overlaps(k, t)).map((one) => [one.M, one.R[0], one.R[1], one.Q])) };
}

export function driversShown(problem) {
  const split = drivers(problem);
  if (split === null) return NOTHING;
  const times = geomspace(FIRST, problem.until, EVALUATIONS);
  const values = times.map(split);
  return { times, curves: columns(SPLIT, values.map((one) => SPLIT.map((name) => one[name.replace(" ", "_")]))) };
}

// A curve that Python computed, with its phases where it is the loss.
export function answerShown(answer, curve) {
  const values = answer.curves[curve];
  const marks = curve === "loss" ? phaseMarks(answer.phases) : {};
  return { times: answer.times, curves: columns(ALL_GROUPS.slice(0, values[0].length), values), ends: endsOf(values.at(-1)), ...marks, label: labelOf(curve.replace("_", " "), values) };
}
