// Groups nobody named: found by the learning curves of a run, in the words of a table of the folder.
import { claimFirst, labelled, make } from "./elements.js";
import { JobLine } from "./job_line.js";
import { ask, wasReplaced } from "./server_calls.js";
import { numberTable } from "./tables.js";

export class GroupFinder {
  constructor(nameOf) {
    this.runs = [];
    this.nameOf = nameOf;
    this.job = new JobLine(() => [this.button]);
    this.words = make("select", { id: "found-table", onfocus: () => this.list() });
    this.without = make("input", { id: "found-without", type: "text", placeholder: "label, id", size: "14" });
    this.button = make("button", { type: "button", id: "find-groups", onclick: () => this.find() }, "Find groups nobody named");
    this.answer = make("div", { id: "found-groups" });
    this.element = make("div", { class: "panel hidden" }, make("h2", {}, "Groups nobody named"),
      make("p", { class: "small" }, "Half of the held-out points find whom the model serves worse or learns later; the others judge it. The table is the one that was trained on, or has one row for every held-out point."),
      make("div", { class: "row" }, labelled("in the words of", this.words), labelled("without the columns", this.without), this.button), this.job.element, this.answer);
    this.list();
  }

  // Shows the panel for runs that kept their points; what was found in others stays, under their names.
  offer(runs) {
    this.element.classList.toggle("hidden", runs.length === 0 && !this.job.busy && this.answer.childElementCount === 0);
    this.runs = runs;
  }

  async list() {
    try {
      const tables = await ask("/api/tables", {}, { slot: "tables to find groups in" });
      const names = tables.map((one) => one.table);
      if (tables.length > 0 && [...this.words.options].map((one) => one.value).join() === names.join()) return;
      const chosen = this.words.value;
      this.words.replaceChildren(...(tables.length > 0 ? tables.map((one) => make("option", { value: one.table }, one.name)) : [make("option", { value: "" }, "no table in this folder yet")]));
      if (names.includes(chosen)) this.words.value = chosen;
      if (!this.job.busy) this.button.disabled = tables.length === 0;
    } catch (error) {
      if (!wasReplaced(error)) this.job.say(error.message);
    }
  }

  async find() {
    const { runs } = this;
    if (runs.length === 0) return this.job.say("Choose a run that kept its points.");
    const names = runs.map(this.nameOf).join(", ");
    const without = this.without.value.split(",").map((name) => name.trim()).filter(Boolean);
    this.answer.replaceChildren();
    try {
      const job = await this.job.run("find groups", { runs, table: this.words.value, without }, (one) => ({ text: `Finding groups: ${one.progress.at(-1) ?? "waiting for its turn"} …` }));
      this.job.say(job.state === "cancelled" ? "Cancelled." : job.error ?? "");
      if (job.state === "done") this.show(names, job.answer);
    } catch (error) {
      if (!wasReplaced(error)) this.job.say(error.message);
    }
  }

  show(names, found) {
    const number = (value) => value?.toFixed(3) ?? "";
    const named = (group) => make("div", {}, group.name, make("div", { class: "small" }, group.verdict));
    const rows = found.groups.map((group) => [named(group), group.points.toLocaleString("en"), group.share, number(group.loss), number(group.loss_of_others)]);
    this.answer.replaceChildren(make("h3", {}, `In ${names}`), make("p", { class: "why short", id: "found-claim" }, ...claimFirst(`${found.claim}\n${found.licence}`)),
      rows.length > 0 ? numberTable(["group", "points", "share", "loss at the end", "of the others"], rows, "Groups nobody named") : "",
      found.python ? make("details", { open: true }, make("summary", {}, "Go on with these groups"),
        make("p", { class: "small" }, "A column of groups, to train, forecast or advise on:"), make("pre", { tabindex: "0" }, found.python),
        ...(found.shell ? [make("p", { class: "small" }, "The same as commands, with a report:"), make("pre", { tabindex: "0" }, found.shell)] : [])) : "");
  }
}
