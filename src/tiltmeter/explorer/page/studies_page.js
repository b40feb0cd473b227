// Studies: how the cells of a grid stand, a number over two factors, and what explains it.
import { writeAddress } from "./address.js";
import { glossary, labelled, make, term } from "./elements.js";
import { ask, wasReplaced } from "./server_calls.js";
import { shortNumber } from "./theory/phases.js";

const CELL_STATES = { done: "●", running: "◐", failed: "×", left: "·" };
const POLL_STUDY = 2000;

export function studiesPage(main, query, start) {
  let open = true;
  let told = null;
  let sharesOf = "";
  const wanted = { study: query.get("study") ?? "", across: query.get("across") ?? "", up: query.get("up") ?? "", response: query.get("response") ?? "" };
  const list = make("div", { id: "studies" }, make("p", { class: "small" }, "Loading …"));
  const status = make("p", { class: "why short", role: "status", id: "why" });
  const reading = make("p", { class: "small", role: "status", id: "reading" });
  const choices = Object.fromEntries(["across", "up", "response"].map((name) => [name, make("select", { id: `study-${name}`, onchange: () => { wanted[name] = choices[name].value; load(); } })]));
  const grid = make("div", { id: "status-grid" });
  const heat = make("div", { id: "heat-map" });
  const parts = make("div", { id: "shares" });
  const failures = make("ul", { class: "small", id: "failures" });
  const shown = make("div", { class: "shown hidden" }, status, reading,
    make("div", { class: "panel" }, make("div", { class: "row" }, labelled("across", choices.across), labelled("down", choices.up)), make("h2", {}, "Which ", term("cell", "cells"), " are done"), grid),
    make("div", { class: "panel" }, make("h2", {}, "A number over two factors"), make("div", { class: "row" }, labelled("number", choices.response)), make("p", { class: "small" }, "The mean over seeds and over all other factors. A link opens the runs behind it."), heat),
    make("div", { class: "panel" }, make("h2", {}, "What explains it: ", term("share of variance", "shares of variance")), parts),
    make("div", { class: "panel hidden" }, make("h2", {}, "What failed"), failures));

  async function loadList() {
    try {
      const rows = await ask("/api/studies");
      if (!open) return;
      list.replaceChildren(rows.length === 0
        ? make("p", {}, `No study below the folder ${start.folder}. A study is a grid of runs: tiltmeter study mine.toml`)
        : make("ul", { class: "plain" }, ...rows.map((row) => make("li", {}, make("a", { href: "#", "aria-current": row.study === wanted.study ? "true" : null, onclick: (event) => { event.preventDefault(); choose(row.study); } }, row.name), make("p", { class: row.error ? "small refused" : "small" }, row.error ?? row.status)))));
      if (!wanted.study && rows.length > 0) choose((rows.find((row) => !row.error) ?? rows[0]).study, false);
    } catch (error) {
      if (!wasReplaced(error)) list.replaceChildren(make("p", { class: "refused" }, error.message));
    }
  }

  function choose(study, push = true) {
    Object.assign(wanted, { study, across: "", up: "", response: "" });
    told = null;
    load(push);
    loadList();
  }

  async function load(push = false) {
    if (!wanted.study) return;
    writeAddress("studies", new URLSearchParams(Object.entries(wanted).filter(([, value]) => value)), push);
    try {
      const answer = await ask("/api/study", wanted);
      if (!open) return;
      shown.classList.remove("hidden");
      if (answer.version !== told?.version) {
        told = answer;
        draw();
      }
      loadShares();
    } catch (error) {
      if (wasReplaced(error)) return;
      shown.classList.remove("hidden");
      status.textContent = error.message;
    }
  }

  function draw() {
    status.textContent = told.sentence;
    reading.textContent = told.reading ?? "";
    const names = told.factors.map((factor) => factor.name);
    options(choices.across, names, told.axes[0]);
    options(choices.up, names.filter((name) => name !== told.axes[0]), told.axes[1]);
    options(choices.response, told.responses, told.response);
    const at = new Map(told.squares.map((square) => [square.at.join(), square]));
    grid.replaceChildren(gridTable((square) => make("td", { class: "square" }, ...stateText(square.states)), at),
      make("p", { class: "small legend" }, ...Object.entries(CELL_STATES).map(([state, mark]) => make("span", {}, `${mark} ${state}`))));
    const values = told.squares.map((square) => square.value).filter((value) => value !== null && value !== undefined);
    heat.replaceChildren(values.length === 0 ? make("p", { class: "small" }, "No complete cell has this number yet.") : gridTable((square) => heatCell(square, Math.min(...values), Math.max(...values)), at));
    failures.replaceChildren(...told.failures.map((text) => make("li", {}, text)));
    failures.parentElement.classList.toggle("hidden", told.failures.length === 0);
  }

  function options(select, names, chosen) {
    if ([...select.options].map((one) => one.value).join() !== names.join()) select.replaceChildren(...names.map((name) => make("option", { value: name }, name)));
    if (chosen) select.value = chosen;
    select.disabled = names.length === 0;
  }

  function gridTable(cell, at) {
    const [across, down] = told.axes.map((name) => told.factors.find((factor) => factor.name === name));
    const rows = down ? down.levels : [""];
    const head = make("tr", {}, make("th", { scope: "col" }, `${down ? `${down.name} ↓  ` : ""}${across.name} →`), ...across.levels.map((level) => make("th", { scope: "col" }, level)));
    const body = rows.map((level, j) => make("tr", {}, make("th", { scope: "row" }, level), ...across.levels.map((_, i) => {
      const square = at.get(down ? `${i},${j}` : `${i}`);
      return square ? cell(square) : make("td", { class: "square" }, "");
    })));
    return make("div", { class: "scroll-across", tabindex: "0", role: "region", "aria-label": "Grid of the study" }, make("table", { class: "grid" }, make("thead", {}, head), make("tbody", {}, ...body)));
  }

  // One mark for every cell where there are few, else counts.
  function stateText(states) {
    const total = Object.values(states).reduce((sum, count) => sum + count, 0);
    return Object.keys(CELL_STATES).filter((state) => states[state]).map((state) => make("span", { class: `mark-${state}`, title: `${states[state]} ${state}` }, total <= 12 ? CELL_STATES[state].repeat(states[state]) : `${CELL_STATES[state]} ${states[state]} `));
  }

  function heatCell(square, low, high) {
    if (square.value === null || square.value === undefined) return make("td", { class: "square" }, "");
    const both = low < 0 && high > 0;
    const size = both ? Math.abs(square.value) / Math.max(-low, high) : high > low ? (square.value - low) / (high - low) : 0.5;
    const colour = both && square.value < 0 ? "--minus" : "--plus";
    const text = shortNumber(square.value, 3).replace("-", "−");
    const address = new URLSearchParams(square.runs.map((run) => ["run", run]));
    return make("td", { class: "square", style: `background:color-mix(in srgb, var(${colour}) ${Math.round(60 * size)}%, transparent)` }, square.runs.length > 0 ? make("a", { href: `#runs?${address}` }, text) : text);
  }

  async function loadShares() {
    const key = `${told.name} ${told.response} ${told.status.done}`;
    if (told.reading !== null || !told.response || key === sharesOf) return;
    sharesOf = key;
    parts.replaceChildren(make("p", { class: "small" }, "Computing …"));
    try {
      const found = await ask("/api/shares", { study: wanted.study, response: told.response });
      if (!open) return;
      parts.replaceChildren(...(found.error ? [make("p", { class: "small" }, found.error)] : [make("p", {}, found.sentence), sharesTable(found)]));
    } catch (error) {
      sharesOf = "";
      if (!wasReplaced(error)) parts.replaceChildren(make("p", { class: "refused" }, error.message));
    }
  }

  async function poll() {
    while (open) {
      await new Promise((done) => setTimeout(done, told?.reading ? 100 : POLL_STUDY));
      if (open && wanted.study && !document.hidden) await load();
    }
  }

  main.replaceChildren(make("h1", {}, "Studies"),
    make("p", { class: "lead" }, "A study runs the same training for every combination of settings. Here is how far it has come, what came out, and which setting explains most of it."),
    make("div", { class: "columns" }, make("div", { class: "panel" }, make("h2", {}, "Studies of the folder"), list), shown, make("div", { class: "more" }, glossary())));
  loadList();
  load();
  poll();
  return { leave: () => { open = false; } };
}

function sharesTable(found) {
  const percent = (value) => `${Math.round(100 * value)} %`;
  const rows = found.rows.filter((row) => row.share >= 0.005 || row.high >= 0.02).map((row) => make("tr", {}, make("th", { scope: "row" }, row.term === "seed" ? "chance (seed)" : row.term), make("td", { class: "bar" }, make("span", { style: `width:${100 * row.share}%` })), make("td", { class: "number" }, percent(row.share)), make("td", { class: "number" }, `${percent(row.low)} to ${percent(row.high)}`)));
  return make("table", { class: "bars" }, make("thead", {}, make("tr", {}, ...["part", "", "share", `${Math.round(100 * found.level)} % interval`].map((name, i) => make("th", { scope: "col", class: i > 1 ? "number" : null }, name)))), make("tbody", {}, ...rows));
}
