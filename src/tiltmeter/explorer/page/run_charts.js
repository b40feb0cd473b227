// The charts of the runs page: curves of groups and runs on one chart, and the gap with its band.
import { Chart, DASHES, groupColours, timeAxis } from "./charts.js";
import { make } from "./elements.js";
import { curveWords } from "./plain_words.js";

// Below so many pixels the names of runs stand below one another.
const NARROW = 620;

export function runChart(place, read) {
  return new Chart(place, () => {
    const { groups, runs, clock, log, curve } = read();
    const x = timeAxis(clock, log);
    const colours = groupColours(groups);
    const ofGroup = { color: { field: "group", type: "nominal", scale: { domain: groups, range: colours }, title: null }, detail: { field: "line" } };
    const byGroup = { field: "group", type: "nominal", scale: { domain: groups, range: groups.map((_, i) => DASHES[i % DASHES.length]) }, title: null };
    const byRun = { field: "run", type: "nominal", scale: { domain: runs, range: runs.map((_, i) => DASHES[i % DASHES.length]) }, title: null, legend: { orient: "bottom", columns: place.clientWidth < NARROW ? 1 : 2, labelLimit: 300 } };
    const dash = runs.length > 1 ? byRun : byGroup;
    return {
      height: 320,
      layer: [
        { data: { name: "seeds" }, mark: { type: "line", opacity: 0.3, strokeWidth: 1 }, encoding: { x, y: { field: "value", type: "quantitative", title: curveWords(curve), scale: { zero: false } }, ...ofGroup } },
        { data: { name: "curves" }, mark: { type: "line", strokeWidth: 2.2, point: false }, encoding: { x, y: { field: "value", type: "quantitative", title: curveWords(curve), scale: { zero: false } }, ...ofGroup, strokeDash: dash } },
        { data: { name: "aheadBands" }, mark: { type: "area", opacity: 0.2 }, encoding: { x, y: { field: "lower", type: "quantitative", title: curveWords(curve) }, y2: { field: "upper" }, ...ofGroup } },
        { data: { name: "ahead" }, mark: { type: "line", strokeWidth: 1.8, strokeDash: [3, 4] }, encoding: { x, y: { field: "value", type: "quantitative", title: curveWords(curve) }, ...ofGroup } },
        { data: { name: "points" }, mark: { type: "point", filled: true, size: 26 }, encoding: { x, y: { field: "value", type: "quantitative", title: curveWords(curve) }, ...ofGroup } },
        { data: { name: "marks" }, mark: { type: "rule", strokeDash: [4, 3] }, encoding: { x: { ...x, field: "time" } } },
        { data: { name: "marks" }, mark: { type: "text", angle: 270, align: "left", dy: -8, fontSize: 11 }, encoding: { x: { ...x, field: "time" }, y: { value: 310 }, text: { field: "label" } } },
        { data: { name: "crossings" }, mark: { type: "rect", opacity: 0.18, strokeWidth: 1, strokeDash: [2, 2], strokeOpacity: 1, minBandSize: 2 }, encoding: { x: { ...x, field: "low" }, x2: { field: "high" } } },
        { data: { name: "crossings" }, mark: { type: "text", align: "left", baseline: "top", dx: 4, fontSize: 12 }, encoding: { x: { ...x, field: "high" }, y: { value: 2 }, text: { field: "label" } } },
        { data: { name: "stop" }, mark: { type: "rule", strokeWidth: 2.5 }, encoding: { x: { ...x, field: "time" } } },
      ],
    };
  });
}

// One small panel for each pair of groups.
export class GapCharts {
  constructor(place, read) {
    this.place = place;
    this.read = read;
    this.charts = [];
  }

  show(bands) {
    if (bands.length !== this.charts.length) {
      const places = bands.map(() => make("div", { class: "chart" }));
      this.charts = places.map((place, i) => new Chart(place, () => this.describe(i)));
      this.place.replaceChildren(...places);
    }
    this.bands = bands;
    this.charts.forEach((chart, i) => chart.show({ bands: bands[i].rows, zero: [{ gap: 0 }] }));
  }

  describe(i) {
    const { clock, log, curve } = this.read();
    const x = timeAxis(clock, log);
    const y = { field: "gap", type: "quantitative", title: `difference in ${curveWords(curve)}`, scale: { zero: true } };
    return {
      title: { text: this.bands[i].pair, anchor: "start" },
      height: 160,
      layer: [
        { data: { name: "bands" }, mark: { type: "area", opacity: 0.25 }, encoding: { x, y: { ...y, field: "lower" }, y2: { field: "upper" } } },
        { data: { name: "bands" }, mark: { type: "line", strokeWidth: 1.8 }, encoding: { x, y } },
        { data: { name: "zero" }, mark: { type: "rule" }, encoding: { y: { field: "gap", type: "quantitative" } } },
      ],
    };
  }
}

// The rest of a run as it was forecast: lines from the step on where it stood, and their band.
export function aheadOf(name, told, log) {
  const bands = told.band === null ? [] : told.times.flatMap((time, i) => told.groups.map((group, g) => ({ time, group, line: `${name} ahead ${group}`, lower: told.band.lower[i][g], upper: told.band.upper[i][g] })));
  return { lines: linesOf(`${name} ahead`, told, log), bands: bands.filter((row) => (!log || row.time > 0) && row.lower !== null && row.upper !== null) };
}

// Rows of one run: a line for every group.
export function linesOf(name, told, log) {
  const rows = [];
  told.times.forEach((time, i) => {
    if (log && !(time > 0)) return;
    told.groups.forEach((group, g) => {
      if (told.values[i][g] !== null) rows.push({ time, value: told.values[i][g], group, run: name, line: `${name} ${group}` });
    });
  });
  return rows;
}

// The mean over runs that were looked at at the same times; null where they were not.
export function meanOf(several) {
  const [first] = several;
  const count = Math.min(...several.map((one) => one.times.length));
  if (count === 0 || several.some((one) => one.times[count - 1] !== first.times[count - 1] || one.groups.join() !== first.groups.join())) return null;
  const values = first.values.slice(0, count).map((row, i) => row.map((_, g) => {
    const numbers = several.map((one) => one.values[i][g]);
    return numbers.includes(null) ? null : numbers.reduce((sum, value) => sum + value, 0) / numbers.length;
  }));
  return { times: first.times.slice(0, count), groups: first.groups, values };
}
