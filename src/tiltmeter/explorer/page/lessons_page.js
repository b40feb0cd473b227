// Lessons: a question about a problem, the answer as a curve, and why.
import { writeAddress } from "./address.js";
import { glossary, make, readable, term } from "./elements.js";
import { fromQuery } from "./parameters.js";
import { ask, wasReplaced } from "./server_calls.js";
import { answerShown, lossChart, lossShown } from "./theory_charts.js";
import { phases, sentence } from "./theory/phases.js";

export function lessonsPage(main, query, start) {
  const lesson = start.lessons.find((one) => one.name === query.get("lesson")) ?? (start.lessons.length === 1 ? start.lessons[0] : null);
  if (lesson === null) {
    main.replaceChildren(
      make("h1", {}, "Lessons"),
      make("p", { class: "lead" }, "Each lesson is a few questions. Make a guess first, then see what happens, then read why."),
      make("div", { class: "charts" }, ...start.lessons.map((one) => make("article", { class: "panel" }, make("h2", {}, make("a", { href: `#lessons?lesson=${one.name}` }, one.title)), make("p", {}, one.about), make("p", { class: "small" }, `${one.steps.length} questions`)))));
    return {};
  }
  const place = Math.min(lesson.steps.length, Math.max(1, Number(query.get("step")) || 1));
  const step = lesson.steps[place - 1];
  const problem = fromQuery(new URLSearchParams(step.state));
  const chartPlace = make("div", { class: "chart tall", id: "chart-loss" });
  const chart = lossChart(chartPlace);
  const told = make("p", { class: "why", role: "status", "aria-live": "polite", id: "why" });
  const why = make("p", { id: "because" });
  const shown = make("div", { class: "panel hidden" }, told, chartPlace, make("p", { class: "small" }, "Loss over ", term("time"), "; lower is better. Shaded: who leads. Dotted: ", term("time scale", "time scales"), " τ."), why);
  const reveal = make("button", { type: "button", id: "reveal", onclick: () => show() }, "Reveal");
  const choices = step.choices.map((choice, i) => make("div", {}, make("input", { type: "radio", name: "guess", id: `guess-${i}`, value: String(i) }), make("label", { for: `guess-${i}` }, ` ${choice}`)));
  const link = (to, text) => make("a", { class: "button", href: `#lessons?lesson=${lesson.name}&step=${to}` }, text);

  async function show() {
    const guess = main.querySelector("input[name=guess]:checked");
    const right = guess && Number(guess.value) === step.answer;
    const verdict = guess === null ? "" : right ? "Right. " : `Not quite: ${step.choices[step.answer]}. `;
    shown.classList.remove("hidden");
    reveal.disabled = true;
    why.textContent = step.why;
    let text = step.sentence;
    if (problem.samples) {
      try {
        const answer = start.answers?.[step.state] ?? await ask("/api/theory", Object.fromEntries(new URLSearchParams(step.state)));
        chart.show(answerShown(answer, "loss"));
        text = answer.sentence;
      } catch (error) {
        if (wasReplaced(error)) return;
        text = error.message;
      }
    } else {
      const found = phases(problem);
      text = sentence(found);
      chart.show(lossShown(problem, found));
    }
    told.textContent = verdict + readable(text);
  }

  writeAddress("lessons", new URLSearchParams([["lesson", lesson.name], ["step", String(place)]]));
  main.replaceChildren(
    make("h1", {}, lesson.title),
    make("p", { class: "lead" }, lesson.about),
    make("div", { class: "columns even" },
      make("form", { class: "panel", onsubmit: (event) => event.preventDefault() },
        make("p", { class: "small" }, `Question ${place} of ${lesson.steps.length}`),
        make("p", {}, step.text),
        make("fieldset", {}, make("legend", {}, step.question), ...choices),
        make("div", { class: "row" }, reveal, place > 1 ? link(place - 1, "Back") : null, place < lesson.steps.length ? link(place + 1, "Next") : null),
        make("div", { class: "row" }, start.lessons.length > 1 ? make("a", { href: "#lessons" }, "All lessons") : null, make("a", { href: `#theory?${step.state}` }, "Play with this problem"), start.alone ? null : make("a", { class: "button", download: `${lesson.name}.html`, href: `/lesson.html?lesson=${lesson.name}` }, "Save for a class"))),
      make("div", { class: "shown" }, shown)),
    glossary());
  return {};
}
