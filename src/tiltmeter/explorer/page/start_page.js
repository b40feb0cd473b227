// Start: a table of one's own becomes a task, which is forecast, trained and reported from the pages behind.
import { labelled, make } from "./elements.js";
import { ask, send, wasReplaced } from "./server_calls.js";
import { numberTable } from "./tables.js";

const YES_MEANS = { benefit: "good for the person: who is missed?", burden: "bad for the person: who is hit wrongly?" };

export function startPage(main, query, start) {
  let table = query.get("table") ?? "";
  let open = true;
  let told = null;
  const says = make("p", { role: "status", "aria-live": "polite", id: "start-status", class: "small" });
  const file = make("input", { type: "file", id: "table-file", accept: ".csv,.parquet,.feather", disabled: !start.allow_runs, onchange: () => file.files[0] && bring(file.files[0]) });
  const there = make("select", { id: "table-there", onchange: () => { if (there.value) choose(there.value); } }, make("option", { value: "" }, "choose one"));
  const task = make("div", { id: "task" });
  const drop = make("div", { class: "panel drop", id: "drop" }, make("p", {}, make("label", { for: "table-file" }, make("strong", {}, "A table with one row per person")), " (CSV, Parquet or Feather): drop it here, or choose it."), make("div", { class: "row" }, file),
    start.allow_runs ? "" : make("p", { class: "small" }, "To bring a table and to train from here, start the explorer with ", make("code", { class: "nowrap" }, "tiltmeter explore --allow-runs"), "."),
    make("p", { class: "small" }, "The file stays on this machine, in the folder ", make("strong", {}, start.folder), "."));
  drop.addEventListener("dragover", (event) => event.preventDefault());
  drop.addEventListener("drop", (event) => {
    event.preventDefault();
    const [given] = event.dataTransfer.files;
    if (given && start.allow_runs) bring(given);
  });

  function refuse(error) {
    if (!wasReplaced(error) && open) says.replaceChildren(make("span", { class: "refused" }, error.message));
  }

  async function bring(given) {
    says.textContent = `Bringing ${given.name} …`;
    try {
      const kept = await send("/api/table", { name: given.name }, given);
      await list();
      there.value = kept.table;
      await choose(kept.table);
    } catch (error) {
      refuse(error);
    }
  }

  async function list() {
    const found = await ask("/api/tables");
    there.replaceChildren(make("option", { value: "" }, found.length > 0 ? "choose one" : "none yet"), ...found.map((one) => make("option", { value: one.table }, one.name)));
    there.value = table;
  }

  async function choose(chosen, settings = {}) {
    table = chosen;
    says.textContent = "Reading the table …";
    try {
      told = await ask("/api/columns", { table, ...settings });
      if (!open) return;
      says.textContent = `${told.name}: ${told.rows.toLocaleString("en")} rows, ${told.columns} columns${told.missing > 0 ? `, ${told.missing.toLocaleString("en")} missing values (their rows are left out)` : ""}.`;
      draw();
    } catch (error) {
      task.replaceChildren();
      refuse(error);
    }
  }

  // A choice changes what can be chosen after it: another label has other values.
  function draw() {
    const guess = (what) => (told.guessed.includes(what) ? make("span", { class: "small" }, " guessed: check it") : "");
    const options = (values, chosen) => values.map((value) => make("option", { value, selected: value === chosen }, value));
    const columns = Object.keys(told.choices);
    const given = () => ({ label: label.value, group: group.value, ...(label.value === told.label && positive ? { positive: positive.value } : {}) });
    const label = make("select", { id: "task-label", onchange: () => choose(table, given()) }, ...options([...new Set([told.label, ...columns])], told.label));
    const group = make("select", { id: "task-group", onchange: () => choose(table, given()) }, ...options([...new Set([told.group, ...columns])], told.group));
    const positive = told.positive === null ? null : make("select", { id: "task-positive", onchange: () => choose(table, given()) }, ...options(told.choices[told.label] ?? [told.positive], told.positive));
    const kind = told.kind === null ? null : make("select", { id: "task-kind" }, ...Object.entries(YES_MEANS).map(([value, text]) => make("option", { value, selected: value === told.kind }, text)));
    const go = make("button", { type: "submit", disabled: !start.allow_runs, title: start.allow_runs ? null : "Start the explorer with --allow-runs." }, "Forecast");
    const form = make("form", { class: "panel", "aria-label": "The task", onsubmit: (event) => { event.preventDefault(); write({ ...given(), kind: kind?.value ?? "" }, go); } },
      make("h2", {}, "What to predict, and for which groups"),
      make("div", { class: "row" }, labelled("predict", label), guess("label")),
      positive ? make("div", { class: "row" }, labelled("a yes is", positive), guess("positive label")) : "",
      kind ? make("div", { class: "row" }, labelled("a yes is", kind), guess("question")) : "",
      make("div", { class: "row" }, labelled("groups by", group), guess("group")),
      numberTable(["group", "rows", ...(told.positive === null ? [] : [`share with ${told.positive}`])], told.sizes.map((one) => [one.group, one.rows.toLocaleString("en"), ...(one.positive === null ? [] : [`${(100 * one.positive).toFixed(0)} %`])]), "The groups"),
      make("div", { class: "row" }, go, make("span", { class: "small" }, "Your network is not trained yet: the forecast comes first.")));
    task.replaceChildren(form);
  }

  async function write(settings, button) {
    button.disabled = true;
    says.textContent = "Writing the training file …";
    try {
      const { source } = await ask("/api/task", {}, { body: { table, ...settings } });
      location.hash = `forecast?source=${encodeURIComponent(source)}`;
    } catch (error) {
      button.disabled = false;
      refuse(error);
    }
  }

  main.replaceChildren(make("h1", {}, "Start: from a table to a forecast"),
    make("p", { class: "lead" }, "Say what to predict and for which groups. The forecast tells whom a model trained on it would serve worse, and when; ", make("em", {}, "Train it"), " shows what happens, ", make("em", {}, "Report"), " writes it up."),
    make("div", { class: "columns even" }, make("div", {}, drop, make("div", { class: "row" }, labelled("or a table of the folder", there)), says), make("div", { class: "shown" }, task)));
  list().then(() => (table ? choose(table) : null)).catch(refuse);
  return { leave: () => { open = false; } };
}
