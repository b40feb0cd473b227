// A marker that is moved through the evaluations of a run: what stopping there would cost.
import { make } from "./elements.js";
import { shortNumber } from "./theory/phases.js";

export class StopMarker {
  constructor(onmove) {
    this.onmove = onmove;
    this.told = null;
    this.text = make("output", { for: "stop-at" });
    this.input = make("input", { type: "range", id: "stop-at", min: "0", max: "1", step: "any", oninput: () => this.moved() });
    this.input.value = "1";
    this.element = make("div", { class: "control" }, make("label", { for: "stop-at" }, "Stop at"), this.text, this.input);
  }

  moved() {
    this.write();
    this.onmove();
  }

  show(told) {
    this.told = told;
    this.write();
  }

  // The time of the marker; null at the end.
  get time() {
    if (!this.told || Number(this.input.value) >= 1 || this.told.times.length === 0) return null;
    return this.told.times[Math.round(Number(this.input.value) * (this.told.times.length - 1))];
  }

  moveTo(time) {
    const { times } = this.told;
    const place = times.reduce((best, one, i) => (Math.abs(one - time) < Math.abs(times[best] - time) ? i : best), 0);
    this.input.value = String(Math.min(place / (times.length - 1), 1 - 1e-9));
    this.moved();
    this.input.focus();
  }

  write() {
    const at = this.time;
    this.text.textContent = at === null ? "the end" : priceOf(this.told, at);
    this.input.setAttribute("aria-valuetext", this.text.textContent);
  }
}

// Gap, mean and worst group at an evaluation, and what the mean loses against its best evaluation.
function priceOf(told, at) {
  const numbers = (row) => row.filter((value) => value !== null);
  const mean = (row) => row.reduce((sum, value) => sum + value, 0) / row.length;
  const sign = told.better === "higher" ? -1 : 1;
  const row = numbers(told.values[told.times.indexOf(at)]);
  if (row.length === 0) return `${told.clock} ${shortNumber(at)}`;
  const best = Math.min(...told.values.map(numbers).filter((one) => one.length > 0).map((one) => sign * mean(one)));
  const lost = sign * mean(row) - best;
  const worst = sign > 0 ? Math.max(...row) : Math.min(...row);
  return `${told.clock} ${shortNumber(at)}: gap ${shortNumber(Math.max(...row) - Math.min(...row), 3)}, worst group ${shortNumber(worst, 3)}, mean ${shortNumber(mean(row), 3)}${told.better === "neither" ? "" : ` (${shortNumber(lost, 2)} from its best)`}`;
}
