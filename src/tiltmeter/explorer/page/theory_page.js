// The theory page: sliders on one side; losses, phases, drivers, order parameters, rates and the map on the other.
import { writeAddress } from "./address.js";
import { asPython, asShell } from "./copy_text.js";
import { glossary, legend, make, readable, term } from "./elements.js";
import { LineChart } from "./line_chart.js";
import { MapView } from "./map_view.js";
import { fromPreset, fromQuery, toQuery } from "./parameters.js";
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
      tell(refused ?? sentence(found), found);
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

  function tell(text, found) {
    if (text === shownSentence) return;
    shownSentence = text;
    why.textContent = readable(text);
    list.replaceChildren(...found.map((phase) => make("li", { "data-leader": phase.leader }, `${shortNumber(phase.start, 3)} to ${shortNumber(phase.stop, 3)}: ${readable(`${phase.leader} leads`)}${phase.reason ? `, ${phase.reason}` : ""}`)));
  }

  function drawRates() {
    charts.rates.show(answer === null ? NOTHING : answerShown(answer, rate.value, problem.until));
  }

  // A moment after the last movement: what is read out, the address, the copied text, and what only Python knows.
  async function rest() {
    const state = toQuery(problem);
    writeAddress("theory", state);
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
      if (!isClosed(problem)) tell(error.message, []);
      if (!isClosed(problem)) charts.loss.show(NOTHING);
      return;
    }
    if (!isClosed(problem)) {
      tell(answer.sentence, answer.phases);
      said.textContent = why.textContent;
      charts.loss.show(answerShown(answer, "loss", problem.until));
    }
    drawRates();
    stopping.replaceChildren(stoppingTable(answer, "at t", "mean loss"));
  }

  const presets = make("div", { class: "row", role: "group", "aria-label": "Presets" }, ...start.presets.map((one) => make("button", { type: "button", "aria-description": one.about, onclick: () => choosePreset(one) }, one.name)));
  const about = make("p", { class: "small about", id: "preset-about" }, "A preset is a problem with a name. Each shows one way in which the lead can pass between the groups.");

  function choosePreset(one) {
    about.textContent = one.about;
    change(fromPreset(one.state));
  }

  const copy = make("pre", { id: "copied", tabindex: "0" });
  const kind = make("select", { id: "copy-kind", onchange: () => rest() }, make("option", { value: "python" }, "Python"), make("option", { value: "shell" }, "shell"));
  const copied = make("span", { role: "status", class: "small" });
  const copyButton = make("button", { type: "button", onclick: async () => {
    await navigator.clipboard.writeText(copy.textContent);
    copied.textContent = "copied";
  } }, "Copy");
  const save = start.alone ? null : make("a", { class: "button", download: "lesson.html", href: "/lesson.html" }, "Save as lesson");

  map.element.id = "map";
  const shown = make("div", { class: "shown" }, presets, about, why, said,
    make("div", { class: "panel" }, make("h2", {}, "The ", term("loss"), " of each ", term("group")), places.loss, make("p", { class: "small" }, "Shaded: who leads. Solid line: a ", term("crossing"), ". Dotted: ", term("time scale", "time scales"), " τ. ", term("time", "Time"), " is counted in steps per dimension."), list));
  const more = make("div", { class: "more" }, only,
    make("div", { class: "charts" },
      map.element,
      make("div", { class: "panel" }, make("h2", {}, "What makes the gap: the ", term("driver", "drivers")), legend(SPLIT), places.drivers),
      make("div", { class: "panel" }, make("h2", {}, "Where the student stands: ", term("order parameter", "order parameters")), legend(ORDER), places.order),
      make("div", { class: "panel" }, make("div", { class: "row" }, make("h2", {}, "Errors and rates"), make("label", { for: "rate" }, "curve"), rate), places.rates),
      make("div", { class: "panel" }, make("h2", {}, "When to stop, and what it costs"), stopping),
      make("div", { class: "panel" }, make("h2", {}, "Take it with you"), make("div", { class: "row" }, make("label", { for: "copy-kind" }, "as"), kind, copyButton, save, copied), copy)),
    glossary());
  main.replaceChildren(
    make("h1", {}, "Theory: two groups, one student"),
    make("p", { class: "lead" }, "A simple model learns from two groups of data, + and −. The curves are exact. Move a slider and see which group is better off, when that changes, and why. Start with a preset."),
    make("div", { class: "columns" }, controls.element, shown, more));
  for (const seen of [places.order, places.drivers, map.element]) watcher.observe(seen);
  drawFirst();
  rest();
  return { leave: () => { watcher.disconnect(); clearTimeout(waiting); } };
}
