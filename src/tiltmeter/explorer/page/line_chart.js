// Curves over log time, drawn in the frame of the slider: the elements are made once, and only what moved is written.
import { svg } from "./elements.js";
import { colourOf, DASH_PATTERNS } from "./line_styles.js";
import { linearTicks, logTicks } from "./ticks.js";
import { shortNumber } from "./theory/phases.js";

const LEFT = 46;
const RIGHT = 10;
const BOTTOM = 40;
// Room for a letter of a phase's name: what does not fit is left to the list below the chart.
const LETTER = 6.8;

export class LineChart {
  // `names` are those of the curves; `room` is free space at the top, for the names of phases.
  constructor(place, { names, title, height = 200, room = 8, xTitle = "time t = steps/d" }) {
    Object.assign(this, { place, names, title, height, room });
    this.width = 0;
    this.parts = Object.fromEntries(["shades", "grid", "rules", "x", "y", "lines", "labels", "ends"].map((name) => [name, svg("g", { class: `part-${name}` })]));
    this.parts.lines.setAttribute("class", "part-lines mark-line");
    this.paths = names.map((_, i) => svg("path", { fill: "none", "stroke-width": "2.5", "stroke-dasharray": DASH_PATTERNS[i % DASH_PATTERNS.length], style: `stroke:${colourOf(i, names.length)}` }));
    this.parts.lines.append(...this.paths);
    this.xName = svg("text", { class: "axis-title", "text-anchor": "middle" }, xTitle);
    this.yName = svg("text", { class: "axis-title", "text-anchor": "middle", transform: `translate(11 ${(height - BOTTOM) / 2}) rotate(-90)` }, title);
    this.element = svg("svg", { class: "line-chart", height: String(height), role: "img" }, ...Object.values(this.parts), this.xName, this.yName);
    place.append(this.element);
    new ResizeObserver(([seen]) => this.resize(Math.floor(seen.contentRect.width))).observe(place);
  }

  resize(width) {
    if (width < 60 || width === this.width) return;
    this.width = width;
    this.element.setAttribute("viewBox", `0 0 ${width} ${this.height}`);
    this.element.setAttribute("width", String(width));
    this.xName.setAttribute("transform", `translate(${(LEFT + width - RIGHT) / 2} ${this.height - 6})`);
    this.ended = null;
    if (this.shown) this.draw();
  }

  // times: numbers above 0; curves: {name: values}; phases, crossings, scales: as theory_charts makes them.
  show(shown) {
    this.shown = shown;
    if (this.width === 0) this.resize(Math.floor(this.place.clientWidth));
    if (this.width > 0) this.draw();
  }

  draw() {
    const { times, curves, phases = [], crossings = [], scales = [], ends = [], label = "" } = this.shown;
    const empty = times.length === 0;
    const [low, high] = this.range(curves);
    const floor = this.height - BOTTOM;
    const first = empty ? 0.01 : times[0];
    const last = empty ? 200 : times[times.length - 1];
    const across = (this.width - LEFT - RIGHT) / Math.log(last / first);
    const up = (floor - this.room) / (high - low);
    const x = (time) => LEFT + Math.log(time / first) * across;
    const y = (value) => floor - (value - low) * up;
    const places = times.map((time) => x(time).toFixed(1));
    this.names.forEach((name, i) => this.paths[i].setAttribute("d", empty || !curves[name] ? "" : pathOf(places, curves[name], y)));
    this.axes(first, last, low, high, x, y, floor);
    fill(this.parts.shades, "rect", phases, (rect, phase) => {
      set(rect, { x: x(phase.start).toFixed(1), y: "0", width: Math.max(0, x(phase.stop) - x(phase.start)).toFixed(1), height: String(floor), class: `shade ${phase.leader === "+" ? "plus" : phase.leader === "-" ? "minus" : "third"}` });
    });
    const rules = [...crossings.map((one) => ({ ...one, kind: "crossing" })), ...scales.map((one) => ({ ...one, kind: "scale" }))];
    fill(this.parts.rules, "line", rules, (line, rule) => set(line, { x1: x(rule.time).toFixed(1), x2: x(rule.time).toFixed(1), y1: rule.kind === "scale" ? String(this.room - 4) : "0", y2: String(floor), class: `rule ${rule.kind}` }));
    const labels = [...phases.flatMap((phase) => phase.label.split("\n").filter((text) => LETTER * text.length <= x(phase.stop) - x(phase.start)).map((text, row) => ({ x: x(phase.middle), y: 15 + 16 * row, text, class: "phase" }))),
      ...scales.map((one) => ({ x: x(one.time) + 3, y: floor - 4, text: one.label, class: "scale" }))];
    fill(this.parts.labels, "text", labels, write);
    // Labels of curves that end in one place stand side by side.
    const beside = (end) => ends.slice(0, ends.indexOf(end)).filter((other) => Math.abs(y(other.value) - y(end.value)) < 14).length;
    fill(this.parts.ends, "text", ends, (text, end) => write(text, { x: this.width - RIGHT - 6 - 18 * beside(end), y: y(end.value) - 8, text: end.label, class: "end", colour: colourOf(end.place, this.names.length) }));
    if (label !== this.label) this.element.setAttribute("aria-label", label || this.title);
    this.label = label;
  }

  range(curves) {
    let low = Infinity;
    let high = -Infinity;
    for (const values of Object.values(curves)) {
      for (const value of values) {
        if (!Number.isFinite(value)) continue;
        if (value < low) low = value;
        if (value > high) high = value;
      }
    }
    if (low > high) return [0, 1];
    const air = Math.max(0.04 * (high - low), 1e-9 * Math.max(1, Math.abs(high)));
    return [low - air, high + air];
  }

  axes(first, last, low, high, x, y, floor) {
    const ended = `${first} ${last}`;
    if (ended !== this.ended) {
      this.ended = ended;
      const marks = logTicks(first, last, Math.max(2, Math.floor(this.width / 90)));
      fill(this.parts.x, "text", marks, (text, mark) => write(text, { x: x(mark), y: floor + 16, text: shortNumber(mark), class: "tick middle" }));
    }
    const marks = linearTicks(low, high, this.height > 250 ? 6 : 4);
    fill(this.parts.grid, "line", marks, (line, mark) => set(line, { x1: String(LEFT), x2: String(this.width - RIGHT), y1: y(mark).toFixed(1), y2: y(mark).toFixed(1) }));
    fill(this.parts.y, "text", marks, (text, mark) => write(text, { x: LEFT - 5, y: y(mark) + 4, text: shortNumber(mark), class: "tick end-at" }));
  }
}

function pathOf(places, values, y) {
  let path = "";
  let pen = "M";
  for (let i = 0; i < places.length; i += 1) {
    if (!Number.isFinite(values[i])) {
      pen = "M";
      continue;
    }
    path += `${pen}${places[i]},${y(values[i]).toFixed(1)}`;
    pen = "L";
  }
  return path;
}

// As many children as there are values, each written with its value.
function fill(part, tag, values, put) {
  while (part.childElementCount > values.length) part.lastElementChild.remove();
  while (part.childElementCount < values.length) part.append(svg(tag));
  values.forEach((value, i) => put(part.children[i], value));
}

function set(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}

function write(element, { x, y, text, class: name, colour = null }) {
  set(element, { x: x.toFixed(1), y: y.toFixed(1), class: name });
  if (colour && element.style.fill !== colour) element.style.fill = colour;
  if (element.textContent !== text) element.textContent = text;
}
