// The controls of the theory page: sliders in their parts, the examples, and a third group.
import { make } from "./elements.js";
import { OF_THIRD, PARAMETERS } from "./parameters.js";
import { slider } from "./slider.js";
import { shortNumber } from "./theory/phases.js";
import { isClosed, stabilityLimit } from "./theory/problem.js";

const THIRD_STANDARD = [0.2, 1, 0.2];
const SAMPLES = ["", 0.5, 1, 2, 4, 8];
const FLIPS = ["0,0", "0.1,0.1", "0,0.2", "0.2,0"];

export function theoryControls(start, read, change) {
  const sliders = [];
  const limit = make("div", { class: "limit", id: "limit" });
  const parts = new Map();
  const made = (parameter) => {
    const one = slider({ id: `slider-${parameter.id}`, label: parameter.label, word: parameter.word, scale: parameter, onmove: (value) => change(parameter.with(read(), value)) });
    if (parameter.id === "lr") one.element.append(limit);
    sliders.push([parameter, one]);
    return one.element;
  };
  for (const parameter of PARAMETERS) {
    if (!parts.has(parameter.part)) parts.set(parameter.part, make("fieldset", {}, make("legend", {}, parameter.part)));
    parts.get(parameter.part).append(made(parameter));
  }
  parts.get("Labels").append(make("p", { class: "small note" }, "Alignments act only with a shift."));
  const examples = start.alone ? null : examplesControl(read, change);
  const third = start.alone ? null : thirdControl(read, change, OF_THIRD.map(made));
  let marked = null;

  function show(problem) {
    for (const [parameter, one] of sliders) if (parameter.name !== "third" || problem.third) one.set(parameter.value(problem));
    examples?.show(problem);
    third?.show(problem);
    const most = isClosed(problem) ? stabilityLimit(problem) : null;
    if (most === marked) return;
    marked = most;
    const unit = most === null ? 0 : Math.min(1, Math.max(0, PARAMETERS.find((one) => one.id === "lr").toUnit(most)));
    limit.replaceChildren(...(most === null ? [] : [make("span", { class: unit > 0.6 ? "flip" : "", style: `left:${100 * unit}%` }, `stability limit ${shortNumber(most, 3)}`)]));
  }

  const element = make("form", { class: "panel", "aria-label": "Parameters", onsubmit: (event) => event.preventDefault() }, ...parts.values(), ...(start.alone ? [] : [examples.element, third.element]));
  return { element, show };
}

// A stream of fresh examples, or a set that is drawn once and used again and again.
function examplesControl(read, change) {
  const amount = make("select", { id: "samples" }, ...SAMPLES.map((value) => make("option", { value: String(value) }, value === "" ? "fresh examples, each used once" : `a fixed set, ${value} per dimension`)));
  const flips = make("select", { id: "flips" }, ...FLIPS.map((value) => make("option", { value }, value === "0,0" ? "no wrong labels" : `wrong: + ${100 * Number(value.split(",")[0])} %, − ${100 * Number(value.split(",")[1])} %`)));
  const apply = () => change({ ...read(), samples: amount.value === "" ? null : Number(amount.value), flips: amount.value === "" ? [0, 0] : flips.value.split(",").map(Number), third: amount.value === "" ? read().third : null });
  amount.addEventListener("change", apply);
  flips.addEventListener("change", apply);
  return {
    element: make("fieldset", {}, make("legend", {}, "Examples"), make("div", {}, make("label", { for: "samples", class: "small" }, "used "), amount), make("div", { class: "flips" }, make("label", { for: "flips", class: "small" }, "labels "), flips)),
    show(problem) {
      const value = String(problem.samples ?? "");
      if (![...amount.options].some((one) => one.value === value)) amount.append(make("option", { value }, `a fixed set, ${value} per dimension`));
      amount.value = value;
      flips.value = String(problem.flips);
      flips.disabled = !problem.samples;
    },
  };
}

function thirdControl(read, change, controls) {
  const box = make("input", { type: "checkbox", id: "third", onchange: () => change({ ...read(), third: box.checked ? THIRD_STANDARD : null, ...(box.checked ? { samples: null, flips: [0, 0] } : {}) }) });
  const inner = make("div", { class: "hidden" }, ...controls);
  return {
    element: make("fieldset", {}, make("legend", {}, "More groups"), box, make("label", { for: "third", class: "small" }, " a third group"), inner),
    show(problem) {
      box.checked = problem.third !== null;
      inner.classList.toggle("hidden", problem.third === null);
    },
  };
}
