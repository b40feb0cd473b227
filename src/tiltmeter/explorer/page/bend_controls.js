// What can be bent of a forecast: learning rate, steps, weights and shares of the groups, an intervention.
import { make } from "./elements.js";
import { scaleOf, slider } from "./slider.js";

const MOST_SHOWN = 8;

export function bendControls(found, query, { onmove, onrest }) {
  const first = { lr: found.lr, steps: found.steps, weights: found.weights, shares: found.shares, law: "" };
  const state = fromQuery(query);
  const shows = [];

  function fromQuery(given) {
    const numbers = (name, standard) => {
      const values = (given.get(name) ?? "").split(",").map(Number);
      return standard !== null && given.has(name) && values.length === standard.length && values.every((one) => one > 0) ? values : standard && [...standard];
    };
    return {
      lr: first.lr !== null && Number(given.get("lr")) > 0 ? Number(given.get("lr")) : first.lr,
      steps: Number(given.get("steps")) >= 1 ? Math.round(Number(given.get("steps"))) : first.steps,
      weights: numbers("weights", first.weights), shares: numbers("shares", first.shares),
      law: found.laws.includes(given.get("law")) && !found.refused_interventions.includes(given.get("law")) ? given.get("law") : "",
    };
  }

  function add(id, label, scale, read, write, more = {}) {
    const one = slider({ id: `dial-${id}`, label, scale, steps: 50, onmove: (value) => { write(value); show(); onmove(); }, onrest, ...more });
    shows.push(() => one.set(read()));
    return one.element;
  }

  function show() {
    for (const set of shows) set();
    law.value = state.law;
  }

  const law = make("select", { id: "intervention", onchange: () => { state.law = law.value; onrest(); } }, make("option", { value: "" }, "none"), ...found.laws.map((name) => make("option", { value: name, disabled: found.refused_interventions.includes(name) }, name)));
  const groups = found.groups.slice(0, MOST_SHOWN);
  const parts = [make("fieldset", {}, make("legend", {}, "Training"),
    first.lr === null ? make("p", { class: "small" }, "The learning rate follows a schedule.") : add("lr", "Learning rate", scaleOf(first.lr / 20, first.lr * 20, true), () => state.lr, (value) => { state.lr = value; }),
    add("steps", "Steps", scaleOf(Math.max(1, first.steps / 20), first.steps * 20, true), () => state.steps, (value) => { state.steps = value; }, { whole: true }))];
  if (first.weights !== null) {
    parts.push(make("fieldset", {}, make("legend", {}, "How much each group counts"),
      ...groups.map((group, i) => add(`weight-${i}`, `Loss weight of ${group}`, scaleOf(0.05, 20, true), () => state.weights[i], (value) => { state.weights[i] = value; }))));
  }
  const shared = found.groups.length === 2 ? groups.slice(0, 1) : groups;
  parts.push(make("fieldset", {}, make("legend", {}, "How often each group is drawn"),
    ...shared.map((group, i) => add(`share-${i}`, `Share of ${group}`, scaleOf(0.01, 0.99, false), () => state.shares[i], (value) => setShare(i, value)))));
  if (found.laws.length > 0) parts.push(make("fieldset", {}, make("legend", {}, "Intervention"), make("label", { for: "intervention", class: "small" }, "by "), law,
    found.refused_interventions.length > 0 ? make("p", { class: "small", id: "refused-interventions" }, `Not from a saved Tangent, since they need the network or its data: ${found.refused_interventions.join(", ")}.`) : ""));

  // The other groups keep their proportions to each other.
  function setShare(place, value) {
    const others = 1 - state.shares[place];
    state.shares = state.shares.map((share, i) => (i === place ? value : others > 0 ? (share * (1 - value)) / others : (1 - value) / (state.shares.length - 1)));
  }

  const moved = (name) => String(state[name]) !== String(first[name]);

  // What is sent; what was not moved stays as the recipe has it.
  function bend() {
    return { lr: moved("lr") ? state.lr : null, steps: state.steps, weights: moved("weights") ? state.weights : [], shares: moved("shares") ? state.shares : [], law: state.law };
  }

  show();
  return {
    element: make("div", {}, ...parts),
    bend,
    settings() {
      const { lr, steps, weights, shares, law: chosen } = bend();
      return { lr: lr ?? "", steps, weights, shares, law: chosen };
    },
    query: () => new URLSearchParams(Object.keys(first).filter((name) => state[name] !== null && moved(name)).map((name) => [name, String(state[name])])),
    setWeights(weights) {
      state.weights = weights.map((weight) => Number(weight.toPrecision(3)));
      show();
    },
    setLaw(name) {
      state.law = name;
      show();
    },
    reset() {
      Object.assign(state, fromQuery(new URLSearchParams()));
      show();
    },
  };
}
