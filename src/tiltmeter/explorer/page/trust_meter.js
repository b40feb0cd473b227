// How far a forecast is to be trusted: one word and three bars; what it rests on is shown on demand.
import { make } from "./elements.js";

const LEVELS = ["low", "fair", "reliable"];

export function trustMeter(...details) {
  const bars = make("span", { class: "levels", "aria-hidden": "true" }, ...LEVELS.map(() => make("i")));
  const text = make("span");
  const element = make("details", { id: "trust", class: "trust hidden" }, make("summary", {}, bars, text), ...details);
  return {
    element,
    show(trust) {
      element.classList.toggle("hidden", trust === null);
      element.dataset.level = trust?.level ?? "";
      bars.classList.toggle("hidden", !LEVELS.includes(trust?.level));
      [...bars.children].forEach((bar, i) => bar.classList.toggle("on", i <= LEVELS.indexOf(trust?.level)));
      text.textContent = trust?.text ?? "";
    },
  };
}
