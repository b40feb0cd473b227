// Verdicts: every experiment with its claims, what was found, and what is contradicted.
import { writeAddress } from "./address.js";
import { drawStored } from "./charts.js";
import { labelled, make } from "./elements.js";
import { JobLine } from "./job_line.js";
import { ask, wasReplaced } from "./server_calls.js";

const STATES = ["all", "not run", "nothing contradicted", "some contradicted"];

const COLUMNS = ["claimed", "from", "measured", "asked", "verdict"];

// The verdict stands out; the sentence behind it is plain text.
function verdictOf(claim, text) {
  const kind = claim.verdict === "clear" ? "verdict-yes" : claim.verdict === "contradicted" ? "verdict-no" : null;
  return [make("span", { class: kind }, claim.verdict), text.startsWith(claim.verdict) ? text.slice(claim.verdict.length) : ` ${text}`];
}

export function verdictsPage(main, query, start) {
  let all = [];
  let open = true;
  const wanted = { paper: query.get("paper") ?? "", state: query.get("state") ?? "all" };
  const unfolded = new Set();
  const paper = make("select", { id: "paper", onchange: () => { wanted.paper = paper.value; draw(true); } }, make("option", { value: "" }, "all papers"));
  const state = make("select", { id: "state", onchange: () => { wanted.state = state.value; draw(true); } }, ...STATES.map((one) => make("option", {}, one)));
  const list = make("div", { id: "verdicts" }, make("p", {}, "Loading …"));
  const count = make("p", { role: "status", class: "small" });
  const job = new JobLine(() => list.querySelectorAll("button"));
  const hint = make("p", { class: "hidden", id: "none-run" }, "These verdicts came with tiltmeter-lab: none of the experiments has been run in this folder yet. ", start.allow_runs ? "Open one and press Run quick, or type " : "Run one, which takes some seconds: ", make("code", {}, `tiltmeter reproduce learning-rates --to ${start.folder}/reproduce`));

  function stateOf(one) {
    const claims = one.outcomes.flatMap((outcome) => (outcome.state === "run" ? outcome.claims : []));
    if (claims.length === 0) return STATES[1];
    return claims.some((claim) => claim.verdict === "contradicted") ? STATES[3] : STATES[2];
  }

  function draw(push = false) {
    const found = all.filter((one) => (paper.value === "" || one.paper === paper.value) && (state.value === "all" || stateOf(one) === state.value));
    const address = new URLSearchParams();
    if (paper.value) address.set("paper", paper.value);
    if (state.value !== "all") address.set("state", state.value);
    writeAddress("verdicts", address, push);
    count.textContent = `${found.length} of ${all.length} experiments`;
    const ran = (one) => one.outcomes.some((outcome) => outcome.here);
    hint.classList.toggle("hidden", all.some(ran));
    list.replaceChildren(...[...found.filter(ran), ...found.filter((one) => !ran(one))].map(entry));
  }

  function entry(one) {
    const told = stateOf(one);
    const run = start.allow_runs ? make("button", { type: "button", disabled: job.busy, onclick: () => quick(one.name) }, "Run quick") : null;
    const details = make("details", { class: "panel", open: unfolded.has(one.name), ontoggle: () => (details.open ? unfolded.add(one.name) : unfolded.delete(one.name)) },
      make("summary", {}, make("strong", {}, one.name), `: ${one.title} `, make("span", { class: told === STATES[3] ? "verdict-no" : told === STATES[2] ? "verdict-yes" : "small" }, `(${told})`)),
      make("p", { class: "small" }, one.paper, one.needs.length > 0 ? ` Needs ${one.needs.join(", ")}.` : ""),
      ...one.outcomes.map((outcome) => outcomeOf(one.name, outcome)),
      make("div", { class: "row" }, !one.outcomes.some((outcome) => outcome.here) ? make("span", { class: "small" }, `Not run in this folder: tiltmeter reproduce ${one.name} --to ${start.folder}/reproduce`) : null, run));
    return details;
  }

  function outcomeOf(name, outcome) {
    const rows = outcome.claims.map((claim) => make("tr", { role: "row" }, ...claim.cells.map((cell, i) => make("td", { role: "cell", "data-label": COLUMNS[i] }, ...(i === 4 ? verdictOf(claim, cell) : [cell])))));
    const pictures = outcome.pictures.map((title, number) => {
      const place = make("div", { class: "chart" });
      const details = make("details", { ontoggle: async () => {
        if (!details.open || place.childElementCount > 0) return;
        try {
          await drawStored(place, await ask("/api/picture", { name, variant: outcome.variant, number }, { slot: `picture ${name} ${number}` }));
        } catch (error) {
          if (!wasReplaced(error)) place.textContent = error.message;
        }
      } }, make("summary", {}, title), place);
      return details;
    });
    return make("section", {}, make("h3", {}, `Results, ${outcome.variant} scale${outcome.here ? "" : ", shipped with tiltmeter-lab"}`),
      make("div", { class: "scroll-across", tabindex: "0", role: "region", "aria-label": `Claims of ${name}` }, make("table", { class: "claims", role: "table" }, make("thead", {}, make("tr", {}, ...COLUMNS.map((column) => make("th", { scope: "col" }, column)))), make("tbody", {}, ...rows))),
      make("p", { class: "small" }, outcome.made), ...pictures);
  }

  async function quick(name) {
    if (job.busy) return;
    try {
      const now = await job.run("run quick", { name }, (one) => ({ text: `${name} is running: ${one.progress.at(-1) ?? "starting"}` }));
      job.say(`${name}: ${now.error ?? now.state}`);
      await load();
    } catch (error) {
      if (!wasReplaced(error)) job.say(error.message);
    }
  }

  async function load() {
    try {
      all = await ask("/api/verdicts");
    } catch (error) {
      if (!wasReplaced(error)) list.replaceChildren(make("p", { class: "refused" }, error.message));
      return;
    }
    if (!open) return;
    const papers = [...new Set(all.map((one) => one.paper))].sort();
    paper.replaceChildren(make("option", { value: "" }, "all papers"), ...papers.map((one) => make("option", { value: one }, one)));
    paper.value = wanted.paper;
    state.value = wanted.state;
    draw();
  }

  main.replaceChildren(make("h1", {}, "Verdicts"),
    make("p", { class: "lead" }, "Published claims, tested again. A claim is clear, contradicted or undecided by the 95 % interval of its number; a number without an error is only measured. Only claims marked published are in a setting close to a paper. Many rules were written while looking at results of the quick scale."),
    make("div", { class: "row" }, labelled("paper", paper), labelled("state", state), count), hint, job.element, list);
  load();
  return { leave: () => { open = false; job.open = false; } };
}
