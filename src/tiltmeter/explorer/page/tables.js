// Tables of numbers.
import { make } from "./elements.js";
import { shortNumber } from "./theory/phases.js";

// The first column is text, the others are numbers.
export function numberTable(header, rows, caption = null) {
  return make("div", { class: "scroll-across", tabindex: "0", role: "region", "aria-label": caption ?? header.join(", ") },
    make("table", {}, make("thead", {}, make("tr", {}, ...header.map((name, i) => make("th", { scope: "col", class: i ? "number" : null }, name)))),
      make("tbody", {}, ...rows.map((row) => make("tr", {}, ...row.map((cell, i) => make("td", { class: i ? "number" : null }, cell)))))));
}

// Every pair of groups: who leads at the end, since when, and the limits of the gap there.
export function pairTable(rows) {
  return numberTable(["pair", "leader", "since", "gap", "limits"], rows.map((row) => [row.pair.join(", "), row.leader || "not clear", row.since === null ? "" : shortNumber(row.since), shortNumber(row.gap), `${shortNumber(row.low)} to ${shortNumber(row.high)}`]), "Every pair of groups");
}

// The rules of `stopping`, or why there are none; with `move`, a rule is a button that moves the marker there.
export function stoppingTable(answer, at, mean, move = null) {
  if (!answer || answer.stopping?.length === 0 || !answer.stopping) return make("p", { class: "small" }, answer === null ? "Computing …" : answer?.stopping_refused ?? "");
  const table = numberTable(["stop for the", at, "gap", mean, "worst group"], answer.stopping.map((rule) => [move ? make("button", { type: "button", onclick: () => move(rule) }, rule.rule) : rule.rule, ...["time", "gap", "mean", "worst"].map((name) => shortNumber(rule[name]))]), "When to stop");
  return make("div", {}, table, make("p", { class: "small" }, answer.stopping_note ?? ""));
}
