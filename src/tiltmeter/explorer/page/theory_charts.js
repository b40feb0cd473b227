// The charts of the theory page.
import { Chart, groupColours, seriesEncoding, timeAxis } from "./charts.js";
import { constants, geomspace, losses, overlaps, timescales } from "./theory/closed_form.js";
import { FIRST } from "./theory/crossings.js";
import { DRIVERS, drivers } from "./theory/drivers.js";
import { GROUPS } from "./theory/problem.js";

const LOOKS = 160;

export function lossChart(place) {
  return new Chart(place, () => {
    const colours = groupColours(GROUPS);
    const x = timeAxis("time t = steps/d");
    const shade = { field: "leader", type: "nominal", scale: { domain: GROUPS, range: colours }, legend: null };
    return {
      height: 300,
      layer: [
        { data: { name: "phases" }, mark: { type: "rect", opacity: 0.13 }, encoding: { x: { ...x, field: "start" }, x2: { field: "stop" }, fill: shade } },
        { data: { name: "phases" }, mark: { type: "text", baseline: "top", dy: 4, fontSize: 13, lineBreak: "\n" }, encoding: { x: { ...x, field: "middle" }, y: { value: 0 }, text: { field: "label" } } },
        { data: { name: "crossings" }, mark: { type: "rule", strokeWidth: 1.5 }, encoding: { x: { ...x, field: "time" } } },
        { data: { name: "scales" }, mark: { type: "rule", strokeDash: [2, 4], opacity: 0.6 }, encoding: { x: { ...x, field: "time" } } },
        { data: { name: "scales" }, mark: { type: "text", baseline: "bottom", dy: -3, dx: 3, align: "left", fontSize: 11 }, encoding: { x: { ...x, field: "time" }, y: { value: 300 }, text: { field: "label" } } },
        { data: { name: "curves" }, mark: { type: "line", strokeWidth: 2.5 }, encoding: { x, y: { field: "value", type: "quantitative", title: "loss", scale: { zero: false, padding: 36, nice: false } }, ...seriesEncoding(GROUPS, colours, "series", null) } },
        { data: { name: "ends" }, mark: { type: "text", align: "right", dx: -6, fontSize: 18, fontWeight: "bold" }, encoding: { x: { ...x, field: "time" }, y: { field: "value", type: "quantitative" }, yOffset: { value: -12 }, text: { field: "label" }, color: { field: "series", type: "nominal", scale: { domain: GROUPS, range: colours }, legend: null } } },
      ],
    };
  });
}

export function curvesChart(place, title, names, { height = 200, zero = false } = {}) {
  return new Chart(place, () => ({
    height, data: { name: "curves" }, mark: { type: "line", strokeWidth: 2.2 },
    encoding: { x: timeAxis("time t = steps/d"), y: { field: "value", type: "quantitative", title, scale: { zero } }, ...seriesEncoding(names, groupColours(names)) },
  }));
}

function rowsOf(times, columns) {
  return Object.entries(columns).flatMap(([series, values]) => times.map((time, i) => ({ time, series, value: values[i] })));
}

export function lossRows(problem, found) {
  const k = constants(problem);
  const times = geomspace(FIRST, problem.until, LOOKS);
  const values = times.map((t) => losses(k, t));
  const ends = values[LOOKS - 1];
  const rates = timescales(problem);
  const scales = [["τQ", rates.Q], ...(problem.shift > 0 ? [["τM", rates.M], ["τR", rates.R]] : [["τR", rates.R]])];
  return {
    curves: rowsOf(times, { "+": values.map((one) => one[0]), "-": values.map((one) => one[1]) }),
    ends: endRows(problem.until, ends),
    ...phaseRows(found, problem.until),
    scales: scales.filter(([, time]) => time > FIRST && time < problem.until).map(([label, time]) => ({ time, label })),
  };
}

// The names of the groups, at the ends of their curves.
export function endRows(time, values) {
  return values.map((value, i) => ({ time, value, series: GROUPS[i], label: i ? "−" : "+" }));
}

export function phaseRows(found, until) {
  const width = Math.log(until / FIRST);
  return {
    phases: found.map((phase) => {
      const room = Math.log(phase.stop / phase.start) / width;
      const label = `${phase.leader === "-" ? "−" : phase.leader} leads${room > 0.28 && phase.reason ? `\n${phase.reason}` : ""}`;
      return { start: phase.start, stop: phase.stop, middle: Math.sqrt(phase.start * phase.stop), leader: phase.leader, label: room > 0.1 ? label : "" };
    }),
    crossings: found.slice(1).map((phase) => ({ time: phase.start })),
  };
}

export const ORDER = ["M", "R of +", "R of −", "Q"];

export function orderRows(problem) {
  const k = constants(problem);
  const times = geomspace(FIRST, problem.until, LOOKS);
  const values = times.map((t) => overlaps(k, t));
  return { curves: rowsOf(times, { M: values.map((one) => one.M), "R of +": values.map((one) => one.R[0]), "R of −": values.map((one) => one.R[1]), Q: values.map((one) => one.Q) }) };
}

export const SPLIT = [...DRIVERS, "rest", "loss gap"];

export function driverRows(problem) {
  const split = drivers(problem);
  if (split === null) return { curves: [] };
  const times = geomspace(FIRST, problem.until, LOOKS);
  const values = times.map(split);
  return { curves: rowsOf(times, Object.fromEntries(SPLIT.map((name) => [name, values.map((one) => one[name.replace(" ", "_")])]))) };
}

export function answerRows(answer, curve) {
  const values = answer.curves[curve];
  return rowsOf(answer.times, { "+": values.map((one) => one[0]), "-": values.map((one) => one[1]) });
}
