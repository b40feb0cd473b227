import { colourOf, DASH_PATTERNS } from "./line_styles.js";

// Elements made from text, never from markup: a name can be anything and stays text.
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

// A choice with its label before it, which stay on one line.
export function labelled(text, select) {
  return make("span", { class: "pair" }, make("label", { for: select.id }, text), select);
}

const SVG = "http://www.w3.org/2000/svg";

export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

// The words of docs/glossary.md; a test compares them.
const MEANINGS = {
  group: "A part of the data whose members the model may treat differently, such as two kinds of people.",
  loss: "What training makes small, averaged over a group; in the theory half the squared error. Lower is better.",
  leader: "The group that is better off at a moment of training: the one with the lower loss.",
  crossing: "A moment at which the lead passes from one group to the other.",
  phase: "The stretch of training between two crossings.",
  teacher: "The rule that labels a group. Overlap 1: both groups have the same rule; 0: unrelated rules.",
  shift: "How far the mean inputs of the two groups lie from the origin, in opposite directions.",
  variance: "How much the inputs of a group vary around their mean.",
  representation: "How much of the data belongs to each group.",
  alignment: "Cosine between the shift and a teacher: how far the group itself predicts the label.",
  "label bias": "A constant in the rule of a group: above 0 more of its labels are positive, below 0 fewer.",
  "loss weight": "How many times as much an example of this group counts in training.",
  "stability limit": "The learning rate at and above which training diverges.",
  band: "Limits that hold at all evaluations together, at the error rate that is written beside them.",
  evaluation: "One moment of training at which all curves were measured.",
  promise: "From when on a forecast gives limits for the gaps between groups, within which nine of ten trainings stay.",
  cell: "One combination of settings and seed of a study: one run.",
  "share of variance": "How much of the differences between the runs of a study goes with one setting, with a pair of settings, or with chance.",
  driver: "The property of the data that makes the gap between groups.",
  time: "t = steps/d: the number of training steps divided by the number d of inputs of the student.",
  "time scale": "How long the student takes to learn along the shift (M), across it (R), and to settle its length (Q).",
  "order parameter": "A number that says where the student stands: along the shift (M), along a teacher (R), its length (Q).",
};

export function meaningOf(word) {
  return MEANINGS[word] ?? null;
}

// The first line of a text is what it claims; how sure it is and what else is known stand smaller below.
export function claimFirst(text) {
  const [claim, ...rest] = text.split("\n");
  return [claim, ...rest.map((line) => make("span", { class: "licence" }, line))];
}

// A name that may be broken after its separators.
export function breakable(name) {
  return name.split(/(?<=[/_-])/).flatMap((part, i) => (i === 0 ? [part] : [make("wbr"), part]));
}

// A word with its meaning on hover and on focus.
export function term(word, shown = word) {
  return hint(shown, MEANINGS[word]);
}

export function hint(shown, meaning) {
  return make("span", { class: "term", tabindex: "0", "data-meaning": meaning, "aria-description": meaning }, shown);
}

export function glossary() {
  const list = make("dl");
  for (const [word, meaning] of Object.entries(MEANINGS)) list.append(make("dt", {}, make("strong", {}, word)), make("dd", {}, meaning));
  return make("details", { class: "panel" }, make("summary", {}, "What the words mean"), list);
}

// Names of curves with the style of their lines, for charts without names at the ends.
export function legend(names, colours = names.map((_, i) => colourOf(i, names.length))) {
  return make("p", { class: "legend", "aria-hidden": "true" }, ...names.map((name, i) => make("span", {}, svg("svg", { width: "34", height: "10" }, svg("line", { x1: "0", x2: "34", y1: "5", y2: "5", "stroke-width": "2.5", "stroke-dasharray": DASH_PATTERNS[i % DASH_PATTERNS.length], style: `stroke:${colours[i]}` })), name)));
}

// A sentence of the library with the minus sign of the group that has one.
export function readable(text) {
  return text.replaceAll("roup - ", "roup − ");
}
