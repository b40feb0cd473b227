// The runs page: a table of the folder, and the curves of the chosen runs while they are written.
import { writeAddress } from "./address.js";
import { claimFirst, glossary, make, term } from "./elements.js";
import { GroupFinder } from "./find_groups.js";
import { aheadOf, GapCharts, linesOf, meanOf, runChart } from "./run_charts.js";
import { RunTable } from "./run_table.js";
import { ask, wasReplaced } from "./server_calls.js";
import { StopMarker } from "./stop_marker.js";
import { numberTable, pairTable, stoppingTable } from "./tables.js";
import { shortNumber } from "./theory/phases.js";

const POLL = 200;
const ROWS = 2000;
const JUDGE = 2000;
const MOST_AHEAD = 8;
const MOST_PAIRS = 12;
const EMPTY = "There are no runs in this folder yet. A training that is recorded below it appears here by itself; tiltmeter explore --demo records some to look at.";
const pause = (time) => new Promise((done) => setTimeout(done, time));

function aheadText(name, told) {
  return `Dashed: how ${name} was forecast to go on from step ${shortNumber(told.from_step)}, by ${told.name}${told.band ? `; shaded: ${told.band.text}` : ""}. ${told.outlook}`;
}

export function runsPage(main, query, start) {
  const chosen = new Set(query.getAll("run"));
  const told = new Map();
  let open = true;
  let curve = query.get("curve") ?? "";
  let log = query.get("time") !== "linear";
  let version = "";
  let judgedAt = 0;
  let judgedFor = "";
  let judgement = null;
  let nowcasts = {};
  let nowcastsFor = "";
  let greeted = chosen.size > 0;
  let restart = () => {};

  const status = make("p", { role: "status", class: "small", id: "run-status" });
  const why = make("p", { class: "why", role: "status", "aria-live": "polite", id: "why" });
  const ahead = make("p", { class: "small", role: "status", id: "ahead" });
  const curvePlace = make("div", { class: "chart tall", id: "chart-runs" });
  const gapPlace = make("div", { class: "charts", id: "chart-gap" });
  const choice = make("select", { id: "curve", onchange: () => { curve = choice.value; change(true); } });
  const follow = make("input", { type: "checkbox", id: "follow", onchange: () => { followLatest(); change(true); } });
  follow.checked = query.get("follow") === "latest";
  const together = make("input", { type: "checkbox", id: "together", onchange: () => change(true) });
  together.checked = query.get("seeds") !== "apart";
  const scale = make("button", { type: "button", "aria-pressed": String(log), onclick: () => { log = !log; scale.setAttribute("aria-pressed", String(log)); change(true); } }, "log time");
  const seeds = make("button", { type: "button", onclick: () => addSeeds() }, "Add runs that differ by their seed");
  const report = make("a", { class: "button", target: "_blank", rel: "noopener", href: "/report" }, "Report");
  const marker = new StopMarker(() => drawChart());
  const stopping = make("div", { id: "stopping" });
  const gapOf = make("span", { class: "small" });
  const stopOf = make("span", { class: "small" });
  const pairs = make("div", { id: "pairs" });
  const compared = make("div", { id: "compared", class: "below" });
  const finder = new GroupFinder(nameOf);

  const table = new RunTable({ chosen, onchoice: choose, onshown: () => restart() });
  const charts = { runs: runChart(curvePlace, described), gap: new GapCharts(gapPlace, described) };

  // Who opens the page without a choice sees the newest run.
  function greet() {
    const [newest] = table.rows.filter((row) => !row.cell).sort((a, b) => b.changed - a.changed);
    if (greeted || chosen.size > 0 || !newest) return;
    greeted = true;
    chosen.add(newest.run);
    table.draw();
    change();
  }

  function choose(run, on, add) {
    greeted = true;
    if (!add) chosen.clear();
    if (on) chosen.add(run);
    else chosen.delete(run);
    follow.checked = false;
    table.draw();
    change(true);
  }

  async function addSeeds() {
    const [first] = chosen;
    if (!first) return;
    for (const run of await ask("/api/alike", { run: first })) chosen.add(run);
    table.draw();
    change(true);
  }

  function followLatest() {
    if (!follow.checked || table.rows.every((row) => row.cell)) return;
    const newest = table.rows.filter((row) => !row.cell).reduce((a, b) => (b.changed > a.changed ? b : a));
    if (chosen.size === 1 && chosen.has(newest.run)) return;
    chosen.clear();
    chosen.add(newest.run);
    table.draw();
    change();
  }

  // What somebody chose can be gone back from.
  function change(push = false) {
    const address = new URLSearchParams([...chosen].map((run) => ["run", run]));
    if (curve) address.set("curve", curve);
    if (!log) address.set("time", "linear");
    if (follow.checked) address.set("follow", "latest");
    if (!together.checked) address.set("seeds", "apart");
    writeAddress("runs", address, push);
    for (const run of told.keys()) if (!chosen.has(run)) told.delete(run);
    report.href = `/report?${new URLSearchParams([...chosen].map((run) => ["run", run]))}`;
    for (const one of told.values()) one.version = "";
    judgedFor = nowcastsFor = "";
    judgement = null;
    draw();
  }

  function good() {
    return [...chosen].map((run) => [run, told.get(run)]).filter(([, one]) => one?.times);
  }

  function described() {
    const shown = good();
    const groups = [...new Set(shown.flatMap(([, one]) => one.groups))];
    return { groups, runs: seriesNames(shown), clock: shown[0]?.[1].clock ?? "step", log, curve };
  }

  function bundles(shown) {
    const found = new Map();
    for (const [run, one] of shown) {
      const key = together.checked ? one.alike : run;
      found.set(key, [...(found.get(key) ?? []), [run, one]]);
    }
    return [...found.values()];
  }

  function seriesNames(shown) {
    return bundles(shown).map((some) => (some.length > 1 ? `${nameOf(some[0][0])} and ${some.length - 1} more seeds` : nameOf(some[0][0])));
  }

  // Which of several runs a judgement is of.
  function judged(sentence) {
    const names = seriesNames(good());
    return sentence && names.length > 1 ? `${names[0]}: ${sentence}` : sentence;
  }

  function nameOf(run) {
    return table.rows.find((row) => row.run === run)?.name ?? run;
  }

  function draw() {
    for (const part of parts) part.classList.toggle("hidden", chosen.size === 0 && version !== "");
    drawChart();
    const bands = (judgement?.bands ?? []).slice(0, MOST_PAIRS).map((band) => ({
      pair: `${band.pair[0]} − ${band.pair[1]}`,
      rows: band.times.map((time, i) => ({ time, gap: band.gap[i], lower: band.lower[i], upper: band.upper[i] })).filter((row) => (!log || row.time > 0) && row.lower !== null),
    })).filter((band) => band.rows.length > 0);
    gapPlace.parentElement.classList.toggle("hidden", bands.length === 0);
    if (bands.length > 0) charts.gap.show(bands);
    pairs.replaceChildren(judgement?.pairs?.length > 1 ? pairTable(judgement.pairs) : "");
    drawTexts(good());
  }

  function drawChart() {
    const shown = good();
    if (shown.length === 0) return;
    const lines = [];
    const thin = [];
    const names = seriesNames(shown);
    bundles(shown).forEach((some, i) => {
      const mean = some.length > 1 ? meanOf(some.map(([, one]) => one)) : some[0][1];
      if (some.length > 1) for (const [run, one] of some) thin.push(...linesOf(nameOf(run), one, log));
      if (mean) lines.push(...linesOf(names[i], mean, log));
    });
    const fits = (row) => !log || row.time > 0;
    const rules = judgement?.stopping ?? [];
    const marks = [...new Set(rules.map((rule) => rule.time))].map((time) => ({ time, label: rules.filter((rule) => rule.time === time).map((rule) => rule.rule).join(", ") }));
    const crossings = (judgement?.crossings ?? []).map((one) => ({ time: one.time, low: one.low, high: one.high, label: `${one.after} leads` }));
    marker.show(shown[0][1]);
    const stop = marker.time === null ? [] : [{ time: marker.time }];
    const rest = shown.filter(([run]) => nowcasts[run]).map(([run]) => aheadOf(nameOf(run), nowcasts[run], log));
    charts.runs.show({ curves: lines, seeds: thin, ahead: rest.flatMap((one) => one.lines), aheadBands: rest.flatMap((one) => one.bands), points: lines.length < 200 ? lines : [], marks: marks.filter(fits), crossings: crossings.filter(fits), stop: stop.filter(fits) });
  }

  function drawTexts(shown) {
    const [first = []] = bundles(shown);
    finder.offer(first.every(([, one]) => one.points && one.state !== "running") ? first.map(([run]) => run) : []);
    const refused = [...chosen].map((run) => [run, told.get(run)?.error]).filter(([, error]) => error);
    const evaluations = shown.map(([run, one]) => `${nameOf(run)}: ${one.evaluations} evaluations, ${one.state}${one.all_evaluations ? "" : `, ${one.times.length} drawn (every extreme and every crossing kept)`}`);
    status.textContent = [...evaluations, ...refused.map(([run, error]) => `${nameOf(run)}: ${error}`)].slice(0, 6).join(" · ");
    const nothing = version === "" ? "Reading the folder …" : table.rows.length === 0 ? EMPTY : "Click a run in the table to see its curves; tick several to compare them.";
    const text = chosen.size === 0 ? nothing : judged(judgement?.sentence) ?? judgement?.error ?? (shown.length > 0 ? "Working out who leads …" : "");
    if (why.dataset.text !== text) {
      why.dataset.text = text;
      why.replaceChildren(...claimFirst(text));
    }
    const names = [...new Set(shown.flatMap(([, one]) => one.curves))];
    if (names.length > 0 && [...choice.options].map((one) => one.value).join() !== names.join()) {
      choice.replaceChildren(...names.map((name) => make("option", { value: name }, name)));
      if (names.includes(curve)) choice.value = curve;
      else choice.value = shown[0][1].curve;
    }
    const rest = shown.filter(([run]) => nowcasts[run]).map(([run]) => aheadText(nameOf(run), nowcasts[run])).join(" ");
    if (ahead.textContent !== rest) ahead.textContent = rest;
    for (const place of [gapOf, stopOf]) place.textContent = seriesNames(shown).length > 1 ? ` (${seriesNames(shown)[0]})` : "";
    const running = shown.some(([, one]) => one.state === "running");
    stopping.replaceChildren(running && !judgement?.stopping?.length ? make("p", { class: "small" }, "Told when the run is over.") : stoppingTable(judgement, "at", "mean", (rule) => marker.moveTo(rule.time)));
    const { groups } = described();
    const last = (one, group) => one.values.at(-1)?.[one.groups.indexOf(group)] ?? null;
    compared.replaceChildren(shown.length > 1
      ? make("div", { class: "panel" }, make("h2", {}, "The chosen runs, side by side"), numberTable(["run", "state", "evaluations", ...groups.map((group) => `${curve} of ${group}, last`)], shown.map(([run, one]) => [nameOf(run), one.state, String(one.evaluations), ...groups.map((group) => (last(one, group) === null ? "" : shortNumber(last(one, group))))]), "Runs compared"))
      : "");
  }

  async function pollCurves() {
    while (open) {
      const asked = [...chosen];
      if (asked.length > 0 && !document.hidden) {
        try {
          const settings = [["curve", curve], ...asked.map((run) => ["run", run]), ...asked.map((run) => ["known", told.get(run)?.version ?? ""])];
          const answer = await ask("/api/curves", settings, { slot: "curves" });
          let changed = false;
          for (const [run, one] of Object.entries(answer)) {
            if (one.same || !chosen.has(run)) continue;
            if (one.error && told.get(run)?.error === one.error) continue;
            told.set(run, one);
            curve ||= one.curve ?? "";
            changed = true;
          }
          if (changed) draw();
          judge();
          askAhead();
        } catch (error) {
          if (!wasReplaced(error)) {
            status.textContent = "The server does not answer. Trying again …";
            for (const one of told.values()) one.version = "";
            await pause(500);
          }
        }
      }
      await pause(POLL);
    }
  }

  async function judge() {
    const shown = good();
    const now = shown.map(([run, one]) => `${run} ${one.version}`).join();
    if (shown.length === 0 || now === judgedFor || performance.now() - judgedAt < JUDGE) return;
    judgedAt = performance.now();
    judgedFor = now;
    const one = bundles(shown)[0].map(([run]) => run);
    try {
      judgement = await ask("/api/judgement", [["curve", shown[0][1].curve ?? curve], ...one.map((run) => ["run", run])]);
    } catch (error) {
      if (wasReplaced(error)) return;
      judgement = { error: error.message };
    }
    if (open) draw();
  }

  // What was forecast of the rest of the chosen runs; asked again when anything in the folder changed.
  async function askAhead() {
    const asked = [...chosen].slice(0, MOST_AHEAD);
    const now = `${version} ${curve} ${asked.join()}`;
    if (asked.length === 0 || version === "" || now === nowcastsFor) return;
    nowcastsFor = now;
    try {
      nowcasts = await ask("/api/nowcasts", [["curve", curve], ...asked.map((run) => ["run", run])]);
      if (open) draw();
    } catch (error) {
      if (!wasReplaced(error)) nowcastsFor = "";
    }
  }

  async function pollRows() {
    while (open) {
      try {
        const answer = await ask("/api/runs", { known: version }, { slot: "rows" });
        if (answer.rows) {
          version = answer.version;
          table.update(answer.rows, answer.now);
          followLatest();
          greet();
          if (chosen.size === 0) draw();
        }
      } catch (error) {
        if (!wasReplaced(error)) await pause(500);
      }
      await pause(document.hidden ? 4 * ROWS : ROWS);
    }
  }

  // Leaders and crossings of the rows in view, a few at a time; runs that grew are asked about again.
  async function pollSummaries() {
    const asked = new Map();
    while (open) {
      const row = table.visible().slice(0, table.most).filter((one) => asked.get(one.run) !== `${one.bytes} ${one.state}`).slice(0, 6);
      if (row.length > 0) {
        try {
          const answer = await ask("/api/summaries", row.map((one) => ["run", one.run]), { slot: "summaries" });
          for (const one of row) asked.set(one.run, `${one.bytes} ${one.state}`);
          for (const [run, one] of Object.entries(answer)) table.summaries.set(run, one);
          table.draw();
        } catch (error) {
          if (!wasReplaced(error)) await pause(1000);
        }
        await pause(300);
      } else {
        await Promise.race([pause(5000), new Promise((done) => { restart = done; })]);
      }
    }
  }

  const parts = [
    make("div", { class: "panel" },
      make("div", { class: "row" }, make("label", { for: "curve" }, "curve"), choice, scale, make("span", {}, together, make("label", { for: "together" }, " seeds together")), seeds, report),
      curvePlace, ahead, status, marker.element),
    make("div", { class: "panel" }, make("h2", {}, "When to stop, and what it costs", stopOf), stopping)];
  table.tools.append(make("span", {}, follow, make("label", { for: "follow" }, " follow the latest")));
  main.replaceChildren(
    make("h1", {}, "Runs"),
    make("p", { class: "lead" }, "Every run directory below the folder ", make("strong", {}, start.folder), ". A run that is being written is drawn while it grows. A leader is named only where it is clear, by ", term("band", "bands"), " that hold at all ", term("evaluation", "evaluations"), " together."),
    make("div", { class: "columns even" }, table.element,
      make("div", { class: "shown" }, why, parts[0],
        make("div", { class: "panel hidden" }, make("h2", {}, "The gap between groups, and what is known of it", gapOf), pairs, gapPlace), parts[1], finder.element, compared,
        glossary())));
  pollCurves();
  pollRows();
  pollSummaries();
  change();
  return { leave: () => { open = false; finder.job.open = false; restart(); } };
}
