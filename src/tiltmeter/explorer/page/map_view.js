// The phase map: a canvas with letters in its regions, a cross where the sliders stand, set by click or arrow keys.
import { labelled, make } from "./elements.js";
import { PARAMETERS, parameterNamed } from "./parameters.js";
import { KINDS, phaseMap } from "./theory/phase_map.js";
import { shortNumber } from "./theory/phases.js";

// Cells along a side: at rest, and while another slider moves.
const CELLS = 41;
const FEWER = 21;
const SIZE = 410;
const FILLS = ["#d9d9d9", "#0072B2", "#E69F00", "#8cc4e8", "#fbe3b0", "#7a3f8f", "#ffffff"];
const LETTERS = ["0", "+", "−", "−+", "+−", "≥2", "×"];

export class MapView {
  constructor(onmove) {
    this.onmove = onmove;
    this.key = "";
    this.across = this.choice("across", "rho");
    this.up = this.choice("up", "variance-minus");
    this.canvas = make("canvas", { width: SIZE, height: SIZE, tabindex: "0", role: "img" });
    this.painted = make("canvas", { width: SIZE, height: SIZE });
    this.legend = make("p", { class: "maplegend" });
    this.same = make("p", { class: "small refused hidden" }, "Choose two different parameters.");
    this.upName = make("span", { class: "up small" });
    this.acrossName = make("span", { class: "small" });
    this.element = make("div", { class: "panel" },
      make("h2", {}, "Map: who leads, in what order"),
      make("div", { class: "row" }, labelled("across", this.across), labelled("up", this.up)), this.same,
      make("div", { class: "map" }, this.upName, this.canvas, make("span"), this.acrossName),
      this.legend,
      make("p", { class: "small" }, "Every cell is a problem of its own. The ring is where the sliders stand. Click, or focus the map and use the arrow keys."));
    this.canvas.addEventListener("pointerdown", (event) => this.point(event));
    this.canvas.addEventListener("pointermove", (event) => event.buttons && this.point(event));
    this.canvas.addEventListener("keydown", (event) => this.press(event));
  }

  choice(name, chosen) {
    const options = PARAMETERS.map((one) => make("option", { value: one.id, selected: one.id === chosen }, one.label));
    return make("select", { id: `map-${name}`, onchange: () => this.show(this.problem, { whole: true }) }, ...options);
  }

  axes() {
    return [parameterNamed(this.across.value), parameterNamed(this.up.value)];
  }

  move(across, up) {
    const [x, y] = this.axes();
    const inside = (value) => Math.min(1, Math.max(0, value));
    const nice = (one, unit) => Number(one.fromUnit(inside(unit)).toPrecision(3));
    this.onmove(y.with(x.with(this.problem, nice(x, across)), nice(y, up)));
  }

  point(event) {
    const box = this.canvas.getBoundingClientRect();
    this.move((event.clientX - box.left) / box.width, 1 - (event.clientY - box.top) / box.height);
  }

  press(event) {
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
    if (!step) return;
    event.preventDefault();
    const [x, y] = this.axes();
    const by = (event.shiftKey ? 5 : 1) / (CELLS - 1);
    this.move(x.toUnit(x.value(this.problem)) + step[0] * by, y.toUnit(y.value(this.problem)) + step[1] * by);
  }

  // While something moves the map is coarse; `whole` says that it rests.
  show(problem, { whole = false } = {}) {
    this.problem = problem;
    const [x, y] = this.axes();
    this.same.classList.toggle("hidden", x !== y);
    if (x === y) return;
    // The map does not depend on the two parameters that it spans.
    const key = JSON.stringify([x.id, y.id, y.with(x.with({ ...problem, samples: null, flips: null, third: null }, 0), 0)]);
    if (key !== this.key || (whole && this.cells < CELLS)) {
      this.key = key;
      this.cells = whole ? CELLS : FEWER;
      this.kinds = phaseMap(problem, x, y, this.cells, whole ? 48 : 24);
      this.paint();
      this.nameAxes(x, y);
    }
    this.draw(x, y);
  }

  nameAxes(x, y) {
    this.upName.textContent = `${y.label}: ${shortNumber(y.low)} to ${shortNumber(y.high)}`;
    this.acrossName.textContent = `${x.label}: ${shortNumber(x.low)} to ${shortNumber(x.high)}`;
    const present = [...new Set(this.kinds)].sort();
    this.legend.replaceChildren(...present.map((kind) => make("span", {}, make("i", { style: `background:${FILLS[kind]};color:${kind === 5 || kind === 1 ? "#fff" : "#111"}` }, LETTERS[kind]), KINDS[kind].replaceAll("-", "−"))));
  }

  // The cells and their letters, kept until another parameter moves.
  paint() {
    const context = this.painted.getContext("2d");
    const { cells } = this;
    const cell = SIZE / cells;
    const middles = new Map();
    for (let row = 0; row < cells; row += 1) {
      for (let column = 0; column < cells; column += 1) {
        const kind = this.kinds[row * cells + column];
        context.fillStyle = FILLS[kind];
        context.fillRect(column * cell, SIZE - (row + 1) * cell, cell + 0.5, cell + 0.5);
        const sum = middles.get(kind) ?? [0, 0, 0];
        middles.set(kind, [sum[0] + column, sum[1] + row, sum[2] + 1]);
      }
    }
    context.font = "bold 18px system-ui, sans-serif";
    context.textAlign = "center";
    context.textBaseline = "middle";
    for (const [kind, [columns, rows, count]] of middles) {
      if (count < 0.015 * cells * cells) continue;
      const place = this.nearest(kind, columns / count, rows / count);
      context.fillStyle = kind === 5 || kind === 1 ? "#fff" : "#111";
      context.fillText(LETTERS[kind], (place[0] + 0.5) * cell, SIZE - (place[1] + 0.5) * cell);
    }
  }

  draw(x, y) {
    const context = this.canvas.getContext("2d");
    context.drawImage(this.painted, 0, 0);
    const at = [x, y].map((one) => Math.min(1, Math.max(0, one.toUnit(one.value(this.problem)))));
    for (const [width, style] of [[6, "#ffffff"], [2.5, "#000000"]]) {
      context.strokeStyle = style;
      context.lineWidth = width;
      context.beginPath();
      context.arc(at[0] * SIZE, SIZE - at[1] * SIZE, 9, 0, 2 * Math.PI);
      context.stroke();
    }
    const kind = this.kinds[Math.round(at[1] * (this.cells - 1)) * this.cells + Math.round(at[0] * (this.cells - 1))];
    this.canvas.setAttribute("aria-label", `Map. ${x.label} ${shortNumber(x.value(this.problem))}, ${y.label} ${shortNumber(y.value(this.problem))}: ${KINDS[kind].replaceAll("+", "plus").replaceAll("-", "minus")}. Arrow keys move.`);
  }

  // A letter stands on a cell of its own region, the one nearest to its middle.
  nearest(kind, column, row) {
    let best = null;
    for (let i = 0; i < this.kinds.length; i += 1) {
      if (this.kinds[i] !== kind) continue;
      const at = [i % this.cells, Math.floor(i / this.cells)];
      const far = (at[0] - column) ** 2 + (at[1] - row) ** 2;
      if (best === null || far < best[0]) best = [far, at];
    }
    return best[1];
  }
}
