// The table of runs: filter, several at once, newest first or by name; what is chosen stays chosen when a run appears.
import { breakable, hint, make, term } from "./elements.js";
import { shortNumber } from "./theory/phases.js";

const SHOWN = 100;

export function ageOf(seconds) {
  if (seconds < 60) return `${Math.max(0, Math.round(seconds))} s`;
  if (seconds < 3600) return `${Math.round(seconds / 60)} min`;
  return seconds < 172800 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86400)} days`;
}

// Whether a click adds to what is chosen instead of replacing it.
const add = (event) => event.ctrlKey || event.metaKey || event.shiftKey;

export class RunTable {
  constructor({ chosen, onchoice, onshown }) {
    this.chosen = chosen;
    this.onchoice = onchoice;
    this.onshown = onshown;
    this.rows = [];
    this.now = 0;
    this.most = SHOWN;
    this.summaries = new Map();
    this.filter = make("input", { type: "search", id: "run-filter", placeholder: "part of a name", oninput: () => this.draw() });
    this.order = make("select", { id: "run-order", onchange: () => this.draw() }, make("option", { value: "newest" }, "newest first"), make("option", { value: "name" }, "by name"));
    this.cells = make("input", { type: "checkbox", id: "run-cells", onchange: () => this.draw() });
    this.cellsLine = make("span", { class: "hidden" }, this.cells, make("label", { for: "run-cells" }, " runs of studies"));
    this.body = make("tbody");
    this.count = make("p", { class: "small", role: "status" });
    this.more = make("button", { type: "button", class: "hidden", onclick: () => { this.most *= 4; this.draw(); } }, "Show more");
    this.tools = make("div", { class: "row" }, make("label", { for: "run-filter" }, "filter"), this.filter, make("label", { for: "run-order" }, "order"), this.order, this.cellsLine);
    const head = ["", "run", "state", term("leader", "leads now"), term("crossing", "lead change"), "age"].map((name) => make("th", { scope: "col" }, name));
    this.element = make("div", { class: "panel" }, make("h2", {}, "In this folder"),
      this.tools,
      make("div", { class: "scroll" }, make("table", { id: "run-table" }, make("thead", {}, make("tr", {}, ...head)), this.body)), this.count, this.more);
  }

  update(rows, now) {
    this.rows = rows;
    this.now = now;
    this.cellsLine.classList.toggle("hidden", !rows.some((row) => row.cell));
    this.draw();
  }

  visible() {
    const part = this.filter.value.toLowerCase();
    const found = this.rows.filter((row) => row.name.toLowerCase().includes(part) && (this.cells.checked || !row.cell || this.chosen.has(row.run)));
    if (this.order.value === "name") found.sort((a, b) => (a.name < b.name ? -1 : 1));
    return found;
  }

  draw() {
    const found = this.visible();
    const shown = found.slice(0, this.most);
    const held = document.activeElement?.id;
    this.body.replaceChildren(...shown.map((row, i) => this.line(row, i)));
    if (/^(choose|open)-/.test(held ?? "")) document.getElementById(held)?.focus();
    const studied = this.cells.checked ? 0 : this.rows.filter((row) => row.cell && !this.chosen.has(row.run)).length;
    this.count.textContent = `${shown.length} of ${this.rows.length - studied} runs shown.${studied > 0 ? ` ${studied} more ${studied === 1 ? "was" : "were"} made by studies and left out: tick “runs of studies” to list them, or see the page Studies.` : ""}`;
    this.more.classList.toggle("hidden", shown.length === found.length);
    this.onshown(shown);
  }

  line(row) {
    const told = this.summaries.get(row.run);
    const id = `choose-${row.run}`;
    const box = make("input", { type: "checkbox", id, onchange: () => this.onchoice(row.run, box.checked, true) });
    box.checked = this.chosen.has(row.run);
    const choose = (event) => {
      if (event.target.closest("input, label")) return;
      event.preventDefault();
      this.onchoice(row.run, !(add(event) && box.checked), add(event));
    };
    const name = make("a", { href: "#", id: `open-${row.run}` }, ...breakable(row.name));
    return make("tr", { onclick: choose, "aria-selected": String(this.chosen.has(row.run)), "data-run": row.run },
      make("td", {}, box, make("label", { for: id, class: "unseen" }, `show ${row.name}`)),
      make("td", {}, name), make("td", { class: `state state-${row.state}` }, row.state),
      make("td", {}, told?.why ? hint(told.leader, told.why) : told?.leader ?? "…"), make("td", {}, told?.crossing ? [...new Set(told.crossing.map((time) => shortNumber(time)))].join(" to ") : ""),
      make("td", { class: "nowrap" }, ageOf(this.now - row.changed)));
  }
}
