// The chart of the forecast page: the forecast, the one before it was bent, and what really happened as marks.
import { Chart, groupColours, seriesEncoding, timeAxis } from "./charts.js";
import { linesOf } from "./run_charts.js";
import { curveWords } from "./plain_words.js";

export function forecastChart(place, read) {
  return new Chart(place, () => {
    const { groups, clock, curve, hasBand } = read();
    const colours = groupColours(groups);
    const x = timeAxis(clock);
    const y = { field: "value", type: "quantitative", title: curveWords(curve), scale: { zero: false } };
    const own = { color: { field: "group", type: "nominal", scale: { domain: groups, range: colours }, title: null, legend: null } };
    return {
      height: 320,
      layer: [
        { data: { name: "beyond" }, mark: { type: "rect", opacity: 0.15 }, encoding: { x: { ...x, field: "start" }, x2: { field: "stop" } } },
        ...(hasBand ? [{ data: { name: "bands" }, mark: { type: "area", opacity: 0.2 }, encoding: { x, y: { ...y, field: "lower" }, y2: { field: "upper" }, ...own } }] : []),
        { data: { name: "plain" }, mark: { type: "line", opacity: 0.35, strokeWidth: 1.5 }, encoding: { x, y, ...seriesEncoding(groups, colours, "group", null) } },
        { data: { name: "curves" }, mark: { type: "line", strokeWidth: 2.5 }, encoding: { x, y, ...seriesEncoding(groups, colours, "group", null) } },
        { data: { name: "trained" }, mark: { type: "point", filled: true, size: 40 }, encoding: { x, y, ...own, shape: { field: "line", type: "nominal", scale: { domain: groups.map((group) => `trained ${group}`), range: ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down"] }, legend: null } } },
      ],
    };
  });
}

export function forecastData(told, plain, trained) {
  const end = told.times.at(-1);
  return {
    curves: linesOf("forecast", told, true),
    plain: plain === null || plain === told ? [] : linesOf("before", plain, true),
    beyond: told.promised_since > told.times.find((time) => time > 0) ? [{ start: told.times.find((time) => time > 0), stop: Math.min(told.promised_since, end) }] : [],
    bands: bandRows(told),
    trained: trained?.times ? linesOf("trained", trained, true) : [],
  };
}

function bandRows(told) {
  if (!told.band) return [];
  return told.times.flatMap((time, i) => (time > 0 ? told.groups.map((group, g) => ({ time, group, lower: told.band.lower[i][g], upper: told.band.upper[i][g] })) : [])).filter((row) => row.lower !== null && row.upper !== null);
}
