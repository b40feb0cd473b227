// Forecast and what-if: a network on real images, forecast before it is trained and bent by sliders.
import { writeAddress } from "./address.js";
import { Chart, groupColours, seriesEncoding, timeAxis } from "./charts.js";
import { glossary, make, term } from "./elements.js";
import { linesOf } from "./run_charts.js";
import { ask, wasReplaced } from "./server_calls.js";
import { shortNumber } from "./theory/phases.js";

const DIALS = [
  { name: "lr", label: "Learning rate", low: 0.0005, high: 0.05, log: true, standard: 0.006 },
  { name: "steps", label: "Steps", low: 50, high: 5000, log: true, standard: 600, whole: true },
  { name: "weight", label: "Loss weight of the turned digits", low: 0.1, high: 20, log: true, standard: 1 },
  { name: "share", label: "Share of turned digits among the examples drawn", low: 0.02, high: 0.9, log: false, standard: 0.1 },
];

export function forecastPage(main, query, start) {
  const state = Object.fromEntries(DIALS.map((dial) => [dial.name, Number(query.get(dial.name)) || dial.standard]));
  let open = true;
  let told = null;
  let plain = null;
  let trained = null;
  let busy = false;
  let wanted = null;
  const dials = new Map();
  const why = make("p", { class: "why", role: "status", "aria-live": "polite", id: "why" }, "The first forecast takes some seconds …");
  const place = make("div", { class: "chart tall", id: "chart-forecast" });
  const trust = make("p", { class: "small", id: "horizon" });
  const job = make("p", { role: "status", "aria-live": "polite", id: "job" });
  const best = make("button", { type: "button", onclick: () => bestWeights() }, "Best weights");
  const train = make("button", { type: "button", disabled: !start.allow_runs, title: start.allow_runs ? "" : "Start the explorer with --allow-runs.", onclick: () => trainIt() }, "Train it");

  const chart = new Chart(place, () => {
    const groups = told?.groups ?? [];
    const colours = groupColours(groups);
    const x = timeAxis("step");
    const y = { field: "value", type: "quantitative", title: "loss", scale: { zero: false } };
    return {
      height: 320,
      layer: [
        { data: { name: "beyond" }, mark: { type: "rect", opacity: 0.15 }, encoding: { x: { ...x, field: "start" }, x2: { field: "stop" } } },
        { data: { name: "plain" }, mark: { type: "line", opacity: 0.35, strokeWidth: 1.5 }, encoding: { x, y, ...seriesEncoding(groups, colours, "group") } },
        { data: { name: "curves" }, mark: { type: "line", strokeWidth: 2.5 }, encoding: { x, y, ...seriesEncoding(groups, colours, "group") } },
        { data: { name: "trained" }, mark: { type: "point", filled: true, size: 40 }, encoding: { x, y, color: { field: "group", type: "nominal", scale: { domain: groups, range: colours }, title: null, legend: {} } } },
      ],
    };
  });

  function settings() {
    // The order of the groups is that of the data: turned, which is the smaller one, then upright.
    const shares = Math.abs(state.share - 0.1) < 1e-9 ? [0, 0] : [state.share, 1 - state.share];
    return { lr: state.lr, steps: state.steps, weights: [state.weight, 1], shares };
  }

  function dialOf(dial) {
    const id = `dial-${dial.name}`;
    const toUnit = (value) => (dial.log ? Math.log(value / dial.low) / Math.log(dial.high / dial.low) : (value - dial.low) / (dial.high - dial.low));
    const fromUnit = (unit) => Number((dial.log ? dial.low * (dial.high / dial.low) ** unit : dial.low + unit * (dial.high - dial.low)).toPrecision(3));
    const set = (unit, full) => {
      const value = fromUnit(Math.min(1, Math.max(0, unit)));
      state[dial.name] = dial.whole ? Math.round(value) : value;
      show();
      want(full);
    };
    const shown = make("output", { for: id });
    const input = make("input", { type: "range", id, min: "0", max: "1", step: "any", oninput: () => set(Number(input.value), false), onchange: () => want(true) });
    input.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 10, PageDown: -10 }[event.key];
      if (!step) return;
      event.preventDefault();
      set(toUnit(state[dial.name]) + step / 50, false);
    });
    input.addEventListener("keyup", () => want(true));
    dials.set(dial.name, () => {
      input.value = String(toUnit(state[dial.name]));
      shown.textContent = shortNumber(state[dial.name]);
      input.setAttribute("aria-valuetext", shown.textContent);
    });
    return make("div", { class: "control" }, make("label", { for: id }, dial.label), shown, input);
  }

  function show() {
    for (const set of dials.values()) set();
  }

  // One question at a time; of those that come meanwhile only the last is asked.
  async function want(full) {
    wanted = { full };
    if (busy) return;
    busy = true;
    while (wanted !== null && open) {
      const asked = wanted;
      wanted = null;
      try {
        const { lr, steps, weights, shares } = settings();
        told = await ask("/api/forecast", { lr, steps, weights, shares, full: asked.full ? "yes" : "no" });
        plain ??= told;
        why.textContent = told.sentence;
        why.classList.remove("refused");
        if (asked.full) trust.textContent = told.horizon_text ?? "";
        else trust.textContent = "How far to trust it is tested when the slider rests.";
        draw();
      } catch (error) {
        if (!wasReplaced(error)) {
          why.textContent = error.message;
          why.classList.add("refused");
        }
      }
    }
    busy = false;
    writeAddress("forecast", new URLSearchParams(DIALS.filter((dial) => state[dial.name] !== dial.standard).map((dial) => [dial.name, String(state[dial.name])])));
  }

  function draw() {
    if (told === null || !open) return;
    const end = told.times.at(-1);
    chart.show({
      curves: linesOf("forecast", told, true),
      plain: plain === told ? [] : linesOf("before", plain, true),
      beyond: told.horizon ? [{ start: told.horizon, stop: end }] : [],
      trained: trained ? linesOf("trained", trained, true) : [],
    });
  }

  async function bestWeights() {
    job.textContent = "Looking for the weights that are best for the worst group …";
    try {
      const { lr, steps, shares } = settings();
      const found = await ask("/api/best-weights", { lr, steps, shares });
      state.weight = Number((found.weights[0] / found.weights[1]).toPrecision(3));
      job.textContent = found.sentence;
      show();
      want(true);
    } catch (error) {
      if (!wasReplaced(error)) job.textContent = error.message;
    }
  }

  async function trainIt() {
    trained = null;
    try {
      let now = await ask("/api/jobs", {}, { body: { kind: "train digits", settings: settings() } });
      const { number } = now;
      let cancelled = false;
      while (open && now.state === "running") {
        const run = now.progress.at(0)?.run;
        const answer = run ? (await ask("/api/curves", [["run", run], ["curve", "loss"]], { slot: "trained" }))[run] : null;
        if (answer?.times) trained = answer;
        draw();
        job.replaceChildren(trained ? `Training: step ${trained.times.at(-1)} of ${state.steps} ` : "Training begins ", make("button", { type: "button", onclick: () => { cancelled = true; ask("/api/cancel", {}, { body: { number } }); } }, "Cancel"));
        await new Promise((done) => setTimeout(done, 250));
        now = (await ask("/api/jobs", {}, { slot: "poll jobs" })).find((one) => one.number === number);
      }
      const run = now.progress.at(0)?.run;
      if (run) {
        trained = (await ask("/api/curves", [["run", run], ["curve", "loss"]], { slot: "trained" }))[run];
        job.replaceChildren(cancelled ? "Cancelled. " : now.error ?? "Trained: the marks are what happened. ", make("a", { href: `#runs?run=${run}` }, "Open the run"));
      } else job.textContent = now.error ?? now.state;
      draw();
    } catch (error) {
      if (!wasReplaced(error)) job.textContent = error.message;
    }
  }

  main.replaceChildren(make("h1", {}, "Forecast: what will training do, before it is done"),
    make("p", { class: "lead" }, "A network of 256 hidden units will tell small digits from large ones. Nine tenths of the images are upright and faint, one tenth turned and bright. The lines are forecast from the network before its first step; nothing is trained. Move a slider to ask what if."),
    make("div", { class: "columns" },
      make("form", { class: "panel", onsubmit: (event) => event.preventDefault() }, make("fieldset", {}, make("legend", {}, "What if"), ...DIALS.map(dialOf)), make("div", { class: "row" }, best, train), start.allow_runs ? null : make("p", { class: "small" }, "To train from here, start the explorer with --allow-runs.")),
      make("div", { class: "shown" }, why, make("div", { class: "panel" }, place, trust, make("p", { class: "small" }, "Thin lines: the first forecast. Marks: a real training. Beyond the ", term("horizon"), ", shaded, the forecast's own tests object."), job)),
      make("div", { class: "more" }, glossary())));
  show();
  want(true);
  return { leave: () => { open = false; } };
}
