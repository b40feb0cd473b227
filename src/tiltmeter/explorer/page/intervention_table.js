// The forecast of every intervention, each chosen by its button; those without a forecast say why.
import { make } from "./elements.js";
import { shortNumber } from "./theory/phases.js";

export function interventionTable({ groups, rows }, choose) {
  const best = Math.min(...rows.filter((row) => !row.refused).map((row) => row.worst));
  const header = ["intervention", ...groups.map((group) => `loss of ${group}`), "worst", "gap"];
  const line = (row) => {
    if (row.refused) return make("tr", {}, make("th", { scope: "row" }, row.law), make("td", { colspan: String(groups.length + 2), class: "small" }, row.refused));
    const button = make("button", { type: "button", onclick: () => choose(row.law) }, row.law || "none");
    const mark = row.worst === best ? " ←" : "";
    const cells = [...row.losses.map((value) => shortNumber(value, 3)), `${shortNumber(row.worst, 3)}${mark}`, shortNumber(row.gap, 3)];
    return make("tr", {}, make("th", { scope: "row" }, button), ...cells.map((text) => make("td", { class: "number" }, text)));
  };
  return make("div", { class: "scroll-across", tabindex: "0", role: "region", "aria-label": "Interventions compared" },
    make("table", {}, make("thead", {}, make("tr", {}, ...header.map((name, i) => make("th", { scope: "col", class: i ? "number" : null }, name)))), make("tbody", {}, ...rows.map(line))),
    make("p", { class: "small" }, "Losses at the last step. ← best for the worst group."));
}
