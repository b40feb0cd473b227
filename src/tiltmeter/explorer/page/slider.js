// A slider between 0 and 1 that sets one number, by pointer and by keyboard; its label tells its meaning on hover.
import { make, meaningOf } from "./elements.js";
import { shortNumber } from "./theory/phases.js";

const KEYS = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 10, PageDown: -10 };

// `scale` has toUnit and fromUnit; onmove hears every movement, onrest the end of one.
export function slider({ id, label, word = null, scale, steps = 100, whole = false, onmove, onrest = () => {} }) {
  const meaning = meaningOf(word);
  const shown = make("output", { for: id });
  const input = make("input", { type: "range", id, min: "0", max: "1", step: "any", "aria-description": meaning });
  const name = make("label", { for: id, class: meaning ? "term" : null, "data-meaning": meaning }, label);
  let now = null;
  const move = (unit) => {
    const value = Number(scale.fromUnit(Math.min(1, Math.max(0, unit))).toPrecision(3));
    onmove(whole ? Math.max(1, Math.round(value)) : value);
  };
  input.addEventListener("input", () => move(Number(input.value)));
  input.addEventListener("change", () => onrest());
  input.addEventListener("keydown", (event) => {
    const by = KEYS[event.key];
    if (!by) return;
    event.preventDefault();
    move(scale.toUnit(now) + by / steps);
  });
  input.addEventListener("keyup", (event) => event.key in KEYS && onrest());
  return {
    element: make("div", { class: "control" }, name, shown, input),
    set(value) {
      if (value === now) return;
      now = value;
      input.value = String(scale.toUnit(value));
      shown.textContent = shortNumber(value);
      input.setAttribute("aria-valuetext", shown.textContent);
    },
  };
}

export function scaleOf(low, high, log) {
  return {
    low, high,
    toUnit: (value) => (log ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low)),
    fromUnit: (unit) => (log ? low * (high / low) ** unit : low + unit * (high - low)),
  };
}
