// The theory page: sliders on one side; losses, phases, drivers, order parameters, rates and the map on the other.
import { writeAddress } from "./address.js";
import { asPython, asShell } from "./copy_text.js";
import { glossary, legend, make, readable, term } from "./elements.js";
import { LineChart } from "./line_chart.js";
import { MapView } from "./map_view.js";
import { fromPreset, fromQuery, toQuery } from "./parameters.js";
import { plainWords } from "./plain_words.js";
import { ask, wasReplaced } from "./server_calls.js";
import { stoppingTable } from "./tables.js";
import { answerShown, driversShown, lossChart, lossShown, NOTHING, ORDER, orderShown, ratesChart, SPLIT } from "./theory_charts.js";
import { theoryControls } from "./theory_controls.js";
import { phases, sentence, shortNumber } from "./theory/phases.js";
import { isClosed, refusal } from "./theory/problem.js";

const PAUSE = 150;
const CURVES = { error: "error", positive_rate: "positive rate", tpr: "true positive rate", fpr: "false positive rate" };

export function theoryPage(main, query, start) {
  let problem = fromQuery(query);
  let waiting = 0;
  let shownSentence = null;
  let answer = null;
  const why = make("p", { class: "why", id: "why" });
  const plainly = make("p", { class: "plainly", id: "plainly" });
  const said = make("p", { class: "unseen", role: "status", "aria-live": "polite", id: "said" });
  const places = Object.fromEntries(["loss", "order", "drivers", "rates"].map((name) => [name, make("div", { class: `chart${name === "loss" ? " tall" : ""}`, id: `chart-${name}` })]));
  const list = make("ol", { class: "phases", "aria-label": "Phases" });
  const rate = make("select", { id: "rate", onchange: () => drawRates() }, ...Object.entries(CURVES).map(([value, text]) => make("option", { value }, text)));
  const stopping = make("div", { id: "stopping" }, make("p", { class: "small" }, "Computing …"));
  const only = make("p", { class: "small only-closed hidden" }, "Drivers, order parameters and the map are those of two groups and fresh examples.");
  const map = new MapView((moved) => change(moved));
  const controls = theoryControls(start, () => problem, (moved) => change(moved));
  const charts = {
    loss: lossChart(places.loss), rates: ratesChart(places.rates),
    order: new LineChart(places.order, { names: ORDER, title: "order parameters" }), drivers: new LineChart(places.drivers, { names: SPLIT, title: "part of the loss gap", height: 320 }),
  };
  const inView = new Set();
  const watcher = new IntersectionObserver((seen) => {
    for (const one of seen) {
      if (one.isIntersecting) inView.add(one.target.id);
      else inView.delete(one.target.id);
    }
  }, { rootMargin: "100px" });

  function change(moved) {
    problem = moved;
    drawFirst();
    clearTimeout(waiting);
    waiting = setTimeout(rest, PAUSE);
  }

  // In the frame of the slider: sliders, losses, the sentence, and whatever else is in view.
  function drawFirst() {
    controls.show(problem);
    const refused = isClosed(problem) ? refusal(problem) : null;
    why.classList.toggle("refused", refused !== null);
    only.classList.toggle("hidden", isClosed(problem));
    if (isClosed(problem)) {
      const found = refused === null ? phases(problem) : [];
      tell(refused ?? sentence(found), found, refused !== null);
      charts.loss.show(refused === null ? lossShown(problem, found) : NOTHING);
    }
    drawBelow();
  }

  // What is out of view waits until the slider rests.
  function drawBelow({ whole = false } = {}) {
    const known = isClosed(problem) && refusal(problem) === null;
    if (whole || inView.has("chart-order")) charts.order.show(known ? orderShown(problem) : NOTHING);
    if (whole || inView.has("chart-drivers")) charts.drivers.show(known ? driversShown(problem) : NOTHING);
    if (whole || inView.has("map")) map.show(problem, { whole });
  }

  function tell(text, found, refusing = false) {
    if (text === shownSentence) return;
    shownSentence = text;
    why.textContent = readable(text);
    plainly.textContent = refusing ? "" : plainWords(found);
    list.replaceChildren(...found.map((phase) => make("li", { "data-leader": phase.leader }, `${shortNumber(phase.start, 3)} to ${shortNumber(phase.stop, 3)}: ${readable(`${phase.leader} leads`)}${phase.reason ? `, ${phase.reason}` : ""}`)));
  }

  function drawRates() {
    charts.rates.show(answer === null ? NOTHING : answerShown(answer, rate.value));
  }

  // A moment after the last movement: what is read out, the address, the copied text, and what only Python knows.
  async function rest() {
    const state = toQuery(problem);
    writeAddress("theory", state);
    markPreset();
    copy.textContent = (kind.value === "shell" ? asShell : asPython)(problem);
    if (save) save.href = `/lesson.html?${state}`;
    drawBelow({ whole: true });
    said.textContent = why.textContent;
    if (isClosed(problem) && refusal(problem) !== null) return;
    answer = start.answers?.[state.toString()] ?? null;
    if (answer === null && start.alone) {
      drawRates();
      stopping.replaceChildren(make("p", { class: "small" }, "Rates and stopping rules need the program: tiltmeter explore."));
      return;
    }
    try {
      answer ??= await ask("/api/theory", Object.fromEntries(state));
    } catch (error) {
      if (wasReplaced(error)) return;
      stopping.replaceChildren(make("p", { class: "refused" }, error.message));
      why.classList.add("refused");
      if (!isClosed(problem)) tell(error.message, [], true);
      if (!isClosed(problem)) charts.loss.show(NOTHING);
      return;
    }
    if (!isClosed(problem)) {
      tell(answer.sentence, answer.phases);
      said.textContent = why.textContent;
      charts.loss.show(answerShown(answer, "loss"));
    }
    drawRates();
    stopping.replaceChildren(stoppingTable(answer, "at t", "mean loss"));
  }

  const buttons = start.presets.map((one) => make("button", { type: "button", "aria-description": one.about, onclick: () => { change(fromPreset(one.state)); markPreset(); } }, one.name));
  const presets = make("div", { class: "row", role: "group", "aria-label": "Presets" }, make("span", { class: "small", "aria-hidden": "true" }, "Presets:"), ...buttons);
  const about = make("p", { class: "small about", id: "preset-about" });

  // The preset on which the sliders stand, if any.
  function markPreset() {
    const now = toQuery(problem).toString();
    const place = start.presets.findIndex((one) => toQuery(fromPreset(one.state)).toString() === now);
    buttons.forEach((button, i) => button.setAttribute("aria-pressed", String(i === place)));
    about.textContent = place >= 0 ? start.presets[place].about.replaceAll('"-"', "−").replaceAll('"+"', "+") : "A problem of your own. A preset is a problem with a name: each shows one way in which the lead can pass between the groups.";
  }

  const copy = make("pre", { id: "copied", tabindex: "0" });
  const kind = make("select", { id: "copy-kind", onchange: () => rest() }, make("option", { value: "python" }, "Python"), make("option", { value: "shell" }, "shell"));
  const copied = make("span", { role: "status", class: "small" });
  const copyButton = make("button", { type: "button", onclick: async () => {
    try {
      await navigator.clipboard.writeText(copy.textContent);
      copied.textContent = "copied";
    } catch {
      getSelection().selectAllChildren(copy); // a page that is not served from this machine may not write there itself
      copied.textContent = "selected: copy it with Ctrl-C";
    }
  } }, "Copy");
  const save = start.alone ? null : make("a", { class: "button", download: "lesson.html", href: "/lesson.html" }, "Save as lesson");

  map.element.id = "map";
  const shown = make("div", { class: "shown" }, presets, about, make("div", { class: "told" }, why, plainly), said,
    make("div", { class: "panel" }, make("h2", {}, "The ", term("loss"), " of each ", term("group")), places.loss, make("p", { class: "small" }, "Lower is better: the group with the lower curve ", term("leader", "leads"), ". Shaded: who leads. Solid line: a ", term("crossing"), ". Dotted: ", term("time scale", "time scales"), " τ. ", term("time", "Time"), " is counted in steps per dimension."), list));
  const more = make("div", { class: "more" }, only,
    make("div", { class: "charts" },
      map.element,
      make("div", { class: "panel" }, make("h2", {}, "What makes the gap: the ", term("driver", "drivers")), legend(SPLIT), places.drivers, make("p", { class: "small" }, "The gap is the loss of + minus the loss of −, and the other lines add up to it. Above 0 favours −, below 0 favours +.")),
      make("div", { class: "panel" }, make("h2", {}, "Where the student stands: ", term("order parameter", "order parameters")), legend(ORDER), places.order),
      make("div", { class: "panel" }, make("div", { class: "row" }, make("h2", {}, "Errors and rates"), make("label", { for: "rate" }, "curve"), rate), places.rates),
      make("div", { class: "panel" }, make("h2", {}, "When to stop, and what it costs"), stopping),
      make("div", { class: "panel" }, make("h2", {}, "Take it with you"), make("div", { class: "row" }, make("label", { for: "copy-kind" }, "as"), kind, copyButton, save, copied), copy)),
    glossary());
  main.replaceChildren(
    make("h1", {}, "Theory: two groups, one student"),
    make("p", { class: "lead" }, "A simple model learns from two groups of data, + and −. The curves are exact. Move a slider and see which group is better off, when that changes, and why.", ...(start.pages && !start.pages.includes("lessons") ? [] : [" New here? Begin with ", make("a", { href: "#lessons?lesson=one-crossing" }, "the first lesson"), "."])),
    make("div", { class: "columns" }, controls.element, shown, more));
  for (const seen of [places.order, places.drivers, map.element]) watcher.observe(seen);
  drawFirst();
  rest();
  return { leave: () => { watcher.disconnect(); clearTimeout(waiting); } };
}
