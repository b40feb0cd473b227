// The theory page: sliders on one side; losses, phases, drivers, order parameters, rates and the map on the other.
import { writeAddress } from "./address.js";
import { asPython, asShell } from "./copy_text.js";
import { glossary, make, term } from "./elements.js";
import { MapView } from "./map_view.js";
import { fromQuery, PARAMETERS, toQuery } from "./parameters.js";
import { ask, wasReplaced } from "./server_calls.js";
import { answerRows, curvesChart, driverRows, endRows, lossChart, lossRows, ORDER, orderRows, phaseRows, SPLIT } from "./theory_charts.js";
import { phases, sentence, shortNumber } from "./theory/phases.js";
import { GROUPS, refusal, stabilityLimit } from "./theory/problem.js";

const PAUSE = 150;

export function theoryPage(main, query, start, { compact = false } = {}) {
  let problem = fromQuery(query);
  let waiting = 0;
  let shownSentence = "";
  const sliders = new Map();
  const why = make("p", { class: "why", role: "status", "aria-live": "polite", id: "why" });
  const places = Object.fromEntries(["loss", "order", "drivers", "rates"].map((name) => [name, make("div", { class: `chart${name === "loss" ? " tall" : ""}`, id: `chart-${name}` })]));
  const list = make("ol", { class: "phases", "aria-label": "Phases" });
  const rate = make("select", { id: "rate", onchange: () => tier() }, ...["error", "positive_rate", "tpr", "fpr"].map((name) => make("option", { value: name }, name.replace("_", " "))));
  const stopping = make("div", { id: "stopping" });
  const map = new MapView((moved) => change(moved));
  const charts = { loss: lossChart(places.loss), order: curvesChart(places.order, "order parameters", ORDER), drivers: curvesChart(places.drivers, "part of the loss gap", SPLIT), rates: curvesChart(places.rates, "", GROUPS) };
  const visible = new Set(["loss"]);
  const watcher = new IntersectionObserver((seen) => {
    for (const one of seen) {
      const name = one.target.id.replace("chart-", "");
      if (one.isIntersecting) visible.add(name);
      else visible.delete(name);
    }
    second();
  });

  function slider(parameter) {
    const id = `slider-${parameter.id}`;
    const shown = make("output", { for: id });
    const input = make("input", { type: "range", id, min: "0", max: "1", step: "any" });
    const label = make("label", { for: id }, parameter.label);
    input.addEventListener("input", () => change(parameter.with(problem, tidy(parameter, Number(input.value)))));
    input.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 10, PageDown: -10 }[event.key];
      if (!step) return;
      event.preventDefault();
      const unit = Math.min(1, Math.max(0, parameter.toUnit(parameter.value(problem)) + step / 100));
      change(parameter.with(problem, tidy(parameter, unit)));
    });
    const box = make("div", { class: "control" }, label, shown, input);
    const limit = parameter.id === "lr" ? make("div", { class: "limit", id: "limit" }) : null;
    if (limit) box.append(limit);
    sliders.set(parameter.id, { parameter, input, shown, limit });
    return box;
  }

  function tidy(parameter, unit) {
    return Number(parameter.fromUnit(unit).toPrecision(3));
  }

  function setSliders() {
    for (const { parameter, input, shown, limit } of sliders.values()) {
      const value = parameter.value(problem);
      input.value = String(parameter.toUnit(value));
      input.setAttribute("aria-valuetext", shortNumber(value));
      shown.textContent = shortNumber(value);
      if (limit) {
        const most = stabilityLimit(problem);
        const unit = Math.min(1, parameter.toUnit(most));
        limit.replaceChildren(make("span", { class: unit > 0.6 ? "flip" : "", style: `left:${100 * unit}%` }, `stability limit ${shortNumber(most, 3)}`));
      }
    }
  }

  function change(moved) {
    problem = moved;
    first();
    clearTimeout(waiting);
    requestAnimationFrame(second);
    waiting = setTimeout(tier, PAUSE);
  }

  // The same frame: sliders, losses, the sentence.
  function first() {
    setSliders();
    const refused = refusal(problem);
    why.classList.toggle("refused", refused !== null);
    if (problem.samples) return;
    const found = refused === null ? phases(problem) : [];
    tell(refused ?? sentence(found), found);
    charts.loss.show(refused === null ? lossRows(problem, found) : { curves: [], ends: [], phases: [], crossings: [], scales: [] });
  }

  function tell(text, found) {
    if (text === shownSentence) return;
    shownSentence = text;
    why.textContent = text.replaceAll("- leads", "− leads").replaceAll("then -", "then −").replaceAll("nor - is", "nor − is");
    list.replaceChildren(...found.map((phase) => make("li", { "data-leader": phase.leader }, `${shortNumber(phase.start, 3)} to ${shortNumber(phase.stop, 3)}: ${phase.leader === "-" ? "−" : phase.leader} leads${phase.reason ? `, ${phase.reason}` : ""}`)));
  }

  // The next frame: whatever else is in view.
  function second() {
    if (refusal(problem) !== null) {
      map.show(problem);
      return;
    }
    if (visible.has("order")) charts.order.show(problem.samples ? { curves: [] } : orderRows(problem));
    if (visible.has("drivers")) charts.drivers.show(problem.samples ? { curves: [] } : driverRows(problem));
    map.show(problem);
  }

  // A moment after the last movement: the address, the copied text, and what only Python knows.
  async function tier() {
    if (!compact) writeAddress("theory", toQuery(problem));
    copy.textContent = (kind.value === "shell" ? asShell : asPython)(problem);
    if (save) save.href = `/lesson.html?${toQuery(problem)}`;
    if (refusal(problem) !== null && !problem.samples) return;
    const asked = toQuery(problem).toString();
    let answer = start.answers?.[asked];
    if (!answer && start.alone) {
      stopping.replaceChildren(make("p", { class: "small" }, "Rates and stopping rules need the program: tiltmeter explore."));
      return;
    }
    try {
      answer ??= await ask("/api/theory", Object.fromEntries(toQuery(problem)));
    } catch (error) {
      if (!wasReplaced(error)) stopping.replaceChildren(make("p", { class: "refused" }, error.message));
      if (!wasReplaced(error) && problem.samples) tell(error.message, []);
      return;
    }
    if (problem.samples) {
      tell(answer.sentence, answer.phases);
      charts.loss.show({ curves: answerRows(answer, "loss"), ends: endRows(problem.until, answer.curves.loss.at(-1)), ...phaseRows(answer.phases, problem.until), scales: [] });
    }
    charts.rates.show({ curves: answerRows(answer, rate.value) });
    const rows = answer.stopping.map((rule) => make("tr", {}, make("td", {}, rule.rule), ...["time", "gap", "mean", "worst"].map((name) => make("td", { class: "number" }, shortNumber(rule[name])))));
    stopping.replaceChildren(answer.stopping.length
      ? make("table", {}, make("thead", {}, make("tr", {}, ...["stop for the", "at t", "gap", "mean loss", "worst group"].map((name, i) => make("th", { scope: "col", class: i ? "number" : null }, name)))), make("tbody", {}, ...rows))
      : make("p", { class: "small" }, answer.stopping_refused ?? ""));
  }

  const presets = make("div", { class: "row", role: "group", "aria-label": "Presets" }, ...start.presets.map((one) => make("button", { type: "button", title: one.about, onclick: () => change({ ...one.state, samples: null, flips: [0, 0] }) }, one.name)));
  const copy = make("pre", { id: "copied", tabindex: "0" });
  const kind = make("select", { id: "copy-kind", onchange: () => tier() }, make("option", { value: "python" }, "Python"), make("option", { value: "shell" }, "shell"));
  const copied = make("span", { role: "status", class: "small" });
  const copyButton = make("button", { type: "button", onclick: async () => {
    await navigator.clipboard.writeText(copy.textContent);
    copied.textContent = "copied";
  } }, "Copy");
  const save = start.alone ? null : make("a", { class: "button", download: "lesson.html", href: "/lesson.html" }, "Save as lesson");

  const parts = new Map();
  for (const parameter of PARAMETERS) {
    if (!parts.has(parameter.part)) parts.set(parameter.part, make("fieldset", {}, make("legend", {}, parameter.part)));
    parts.get(parameter.part).append(slider(parameter));
  }
  if (!start.alone) parts.get("Training").append(fixedSet(() => problem, change));
  const controls = make("form", { class: "panel", "aria-label": "Parameters", onsubmit: (event) => event.preventDefault() }, ...parts.values());
  const shown = make("div", { class: "shown" }, presets, why,
    make("div", { class: "panel" }, make("h2", {}, "The ", term("loss"), " of each ", term("group")), places.loss, list));
  const more = make("div", { class: "more" },
    make("div", { class: "charts" },
      map.element,
      make("div", { class: "panel" }, make("h2", {}, "What makes the gap: the ", term("driver", "drivers")), places.drivers),
      make("div", { class: "panel" }, make("h2", {}, "Where the student stands: ", term("order parameter", "order parameters")), places.order),
      make("div", { class: "panel" }, make("div", { class: "row" }, make("h2", {}, "Errors and rates"), make("label", { for: "rate" }, "curve"), rate), places.rates),
      make("div", { class: "panel" }, make("h2", {}, "When to stop, and what it costs"), stopping),
      make("div", { class: "panel" }, make("h2", {}, "Take it with you"), make("div", { class: "row" }, make("label", { for: "copy-kind" }, "as"), kind, copyButton, save, copied), copy)),
    glossary());
  main.replaceChildren(
    make("h1", {}, "Theory: two groups, one student"),
    make("p", { class: "lead" }, "A simple model learns from two groups of data, + and −. The curves are exact. Move a slider and see which group is better off, when that changes, and why. Start with a preset."),
    make("div", { class: "columns" }, controls, shown, more));
  for (const place of Object.values(places)) watcher.observe(place);
  setSliders();
  first();
  tier();
  requestAnimationFrame(second);
  return { leave: () => watcher.disconnect(), problem: () => problem };
}

// A stream of fresh examples, or a set that is drawn once and used again and again.
function fixedSet(read, change) {
  const amount = make("select", { id: "samples" }, ...["", 0.5, 1, 2, 4, 8].map((value) => make("option", { value: String(value) }, value === "" ? "fresh examples, never again" : `a fixed set, ${value} per dimension`)));
  const flips = make("select", { id: "flips" }, ...["0,0", "0.1,0.1", "0,0.2", "0.2,0"].map((value) => make("option", { value }, value === "0,0" ? "no wrong labels" : `wrong labels: + ${100 * Number(value.split(",")[0])} %, − ${100 * Number(value.split(",")[1])} %`)));
  const apply = () => change({ ...read(), samples: amount.value === "" ? null : Number(amount.value), flips: flips.value.split(",").map(Number) });
  amount.addEventListener("change", apply);
  flips.addEventListener("change", apply);
  amount.value = String(read().samples ?? "");
  flips.value = String(read().flips);
  return make("div", {}, make("label", { for: "samples", class: "small" }, "Examples "), amount, make("label", { for: "flips", class: "small" }, " Labels "), flips);
}
