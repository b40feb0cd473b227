// Forecast and what-if: a network and its data, forecast before it is trained and bent by sliders.
import { writeAddress } from "./address.js";
import { bendControls } from "./bend_controls.js";
import { groupColours } from "./charts.js";
import { claimFirst, glossary, labelled, legend, make, term } from "./elements.js";
import { forecastChart, forecastData } from "./forecast_chart.js";
import { interventionTable } from "./intervention_table.js";
import { JobLine } from "./job_line.js";
import { ask, wasReplaced } from "./server_calls.js";
import { trustMeter } from "./trust_meter.js";

const DIGITS = "digits";

export function forecastPage(main, query, start) {
  let source = query.get("source") ?? DIGITS;
  let curve = query.get("curve") ?? "";
  let over = query.get("over") ?? "";
  let open = true;
  let told = null;
  let plain = null;
  let trained = null;
  let busy = false;
  let push = false;
  let wanted = null;
  let controls = null;
  const job = new JobLine(() => form.querySelectorAll(".starts-job"));
  const why = make("p", { class: "why", role: "status", "aria-live": "polite", id: "why" }, "The first forecast takes some seconds …");
  const about = make("p", { class: "lead", id: "about" });
  const place = make("div", { class: "chart tall", id: "chart-forecast" });
  const key = make("div", { id: "forecast-key", class: "key" });
  const promise = make("p", { class: "small", id: "promise" });
  const band = make("p", { class: "small", id: "band" });
  const trust = trustMeter(promise, band);
  const drawn = make("p", { class: "small", id: "drawn" });
  const compared = make("div", { id: "compared" });
  const form = make("form", { class: "panel", "aria-label": "What if", onsubmit: (event) => event.preventDefault() });
  const sourceChoice = make("select", { id: "source", onchange: () => { source = sourceChoice.value; curve = ""; push = true; begin(new URLSearchParams()); } });
  const curveChoice = make("select", { id: "forecast-curve", onchange: () => { curve = curveChoice.value; push = true; plain = null; want(true); showRun(); } });
  const overChoice = make("select", { id: "over", onchange: () => { over = overChoice.value; push = true; trained = null; showRun(); keepAddress(); } });
  const chart = forecastChart(place, () => ({ groups: told?.groups ?? [], clock: told?.clock ?? "step", curve: told?.curve ?? curve, hasBand: Boolean(told?.band) }));
  const saved = () => source.startsWith("run/");

  async function begin(settings) {
    told = plain = trained = null;
    controls = null;
    compared.replaceChildren();
    trust.show(null);
    promise.textContent = "";
    why.textContent = "The first forecast takes some seconds …";
    why.classList.remove("refused");
    about.textContent = "";
    form.replaceChildren(make("p", { class: "small" }, saved() ? "A saved forecast is shown as it is. Choose a TOML file or a saved Tangent to bend one." : "Loading …"));
    if (!saved()) {
      try {
        const found = await ask("/api/what-if", { source });
        if (!open) return;
        about.textContent = `${found.about} The lines are forecast from the network before its first step; your network is not trained. Move a slider to ask what if.`;
        controls = bendControls(found, settings, { onmove: () => want(false), onrest: () => want(true) });
        form.replaceChildren(controls.element, buttons(found.no_training));
      } catch (error) {
        if (!wasReplaced(error)) refuse(error);
        return;
      }
    }
    want(true);
    showRun();
  }

  // `noTraining` says why this source cannot be trained; it is empty where it can.
  function buttons(noTraining) {
    const reason = noTraining || (start.allow_runs ? "" : "Start the explorer with --allow-runs.");
    const act = (text, title, disabled, work) => make("button", { type: "button", class: "starts-job", title, disabled, onclick: () => attempt(work) }, text);
    return make("div", {}, make("div", { class: "row" },
      act("Best weights", "The loss weights that are forecast to be best for the worst group", false, bestWeights),
      act("Compare interventions", "Forecast every intervention of the menu", false, compareAll),
      act("Train it", reason || "The same network, from the same weights", reason !== "", trainIt),
      make("button", { type: "button", onclick: () => { controls.reset(); want(true); } }, "Reset")),
    noTraining ? make("p", { class: "small", id: "no-training" }, noTraining) : start.allow_runs ? "" : make("p", { class: "small" }, "To train from here, start the explorer with ", make("code", { class: "nowrap" }, "--allow-runs"), "."));
  }

  function refuse(error) {
    why.textContent = error.message;
    why.classList.add("refused");
    if (controls === null) form.replaceChildren(make("p", { class: "refused" }, error.message));
  }

  function keepAddress() {
    const address = controls?.query() ?? new URLSearchParams();
    if (source !== DIGITS) address.set("source", source);
    if (curve) address.set("curve", curve);
    if (over) address.set("over", over);
    writeAddress("forecast", address, push);
    push = false;
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
        const answer = await ask("/api/forecast", { source, curve, ...(controls?.settings() ?? {}), full: asked.full ? "yes" : "no" });
        if (!open) return;
        if (answer.waits) {
          trust.show({ level: "", text: answer.waits });
          continue;
        }
        told = answer;
        plain ??= told;
        curve = told.curve;
        why.replaceChildren(...claimFirst(told.sentence));
        why.classList.remove("refused");
        trust.show(told.trust);
        promise.textContent = told.promise_text ?? "";
        band.textContent = told.band ? `Band: ${told.band.text}.` : "";
        names(curveChoice, told.curves, told.curve);
        draw();
      } catch (error) {
        if (!wasReplaced(error)) refuse(error);
      }
    }
    busy = false;
    keepAddress();
  }

  function draw() {
    if (told === null || !open) return;
    key.replaceChildren(legend(told.groups, groupColours(told.groups)));
    explain();
    chart.show(forecastData(told, plain, trained));
  }

  // What the parts of the picture are; only those that are in it.
  function explain() {
    const beyond = told.promised_since > 0;
    const said = [plain !== told ? "Thin lines: the forecast before it was bent. " : "", trained?.times ? "Marks: the real training. " : "", beyond ? make("span", {}, "Grey: before the ", term("promise"), ".") : ""];
    drawn.replaceChildren(...said);
  }

  function names(select, values, chosen) {
    if ([...select.options].map((one) => one.value).join() !== values.join()) select.replaceChildren(...values.map((value) => make("option", { value }, value)));
    select.value = chosen;
  }

  async function attempt(work) {
    if (job.busy) return;
    try {
      await work();
    } catch (error) {
      if (!wasReplaced(error)) job.say(error.message);
    }
  }

  function ended(now) {
    if (now.state === "cancelled") job.say("Cancelled.");
    else if (now.state !== "done") job.say(now.error ?? now.state);
    return now.state === "done";
  }

  const settings = () => ({ source, ...controls.bend() });

  async function bestWeights() {
    const now = await job.run("best weights", settings(), (one) => ({ text: `Best weights for the worst group: ${one.progress.at(-1) ?? "starting"} …` }));
    if (!ended(now)) return;
    controls.setWeights(now.answer.weights);
    job.say(now.answer.sentence);
    want(true);
  }

  async function compareAll() {
    const now = await job.run("compare interventions", settings(), (one) => {
      const text = String(one.progress.at(-1) ?? "starting");
      const found = /^(\d+) of (\d+)/.exec(text);
      return { text: `Forecasting interventions: ${text} …`, share: found ? Number(found[1]) / Number(found[2]) : undefined };
    });
    if (!ended(now)) return;
    job.say("Forecast, not trained. Choose one to see its curves.");
    compared.replaceChildren(interventionTable(now.answer, (law) => { controls.setLaw(law); want(true); }));
  }

  async function trainIt() {
    over = "";
    trained = null;
    const { steps } = controls.bend();
    const read = async (run) => (await ask("/api/curves", [["run", run], ["curve", curve]], { slot: "trained" }))[run];
    const now = await job.run("train", settings(), async (one) => {
      const run = one.progress[0]?.run;
      const answer = run ? await read(run) : null;
      if (answer?.times?.length) trained = answer;
      draw();
      const step = trained?.times.at(-1) ?? 0;
      return { text: trained ? `Training: step ${step} of ${steps}` : "Training begins …", share: trained ? step / steps : undefined };
    });
    const run = now.progress[0]?.run;
    if (!run) return void ended(now);
    for (let tries = 0; tries < 20 && !trained?.times; tries += 1) {  // a short training may end before it is found
      trained = await read(run);
      if (!trained.times) await new Promise((done) => setTimeout(done, 200));
    }
    trained = await read(run);
    over = run;
    await listRuns();
    keepAddress();
    job.say(now.state === "cancelled" ? "Cancelled. " : now.error ?? "Trained: the marks are what happened. ", make("a", { href: `#runs?run=${encodeURIComponent(run)}` }, "Open the run"), " · ", make("a", { href: `/report?run=${encodeURIComponent(run)}`, target: "_blank", rel: "noopener" }, "Report"));
    draw();
  }

  // A run of the folder as marks over the forecast, also while it is written.
  async function showRun() {
    const asked = over;
    while (open && asked && asked === over) {
      try {
        const answer = (await ask("/api/curves", [["run", asked], ["curve", curve]], { slot: "over" }))[asked];
        if (!open || asked !== over) return;
        if (answer.error) job.say(answer.error);
        trained = answer.times ? answer : null;
        draw();
        if (answer.state !== "running") return;
      } catch (error) {
        if (wasReplaced(error)) return;
      }
      await new Promise((done) => setTimeout(done, 300));
    }
    draw();
  }

  async function listRuns() {
    const { rows } = await ask("/api/runs", {}, { slot: "runs to lay over" });
    overChoice.replaceChildren(make("option", { value: "" }, "no run"), ...rows.filter((row) => !row.cell || row.run === over).slice(0, 300).map((row) => make("option", { value: row.run }, row.name)));
    overChoice.value = over;
  }

  async function listSources() {
    try {
      const found = await ask("/api/sources");
      sourceChoice.replaceChildren(...found.map((one) => make("option", { value: one.source }, one.name)));
      sourceChoice.value = source;
      await listRuns();
    } catch (error) {
      if (!wasReplaced(error)) job.say(error.message);
    }
  }

  main.replaceChildren(make("h1", {}, "Forecast: what will training do, before it is done"),
    make("div", { class: "row" }, labelled("forecast of", sourceChoice)), about,
    make("div", { class: "columns" }, form,
      make("div", { class: "shown" }, why, make("div", { class: "panel" },
        make("div", { class: "row" }, labelled("curve", curveChoice), labelled("compare with", overChoice)),
        key, place, trust.element, drawn, job.element, compared)),
      make("div", { class: "more" }, glossary())));
  listSources();
  begin(query);
  return { leave: () => { open = false; job.open = false; } };
}
