// The state of the theory page as a program: Python and shell.
import { shiftOverlap } from "./theory/problem.js";

const differs = (pair, standard) => pair[0] !== standard || pair[1] !== standard;

export function asPython(problem) {
  const parts = [`rho=${problem.rho}`, `shift=${problem.shift}`, `variance=(${problem.variance.join(", ")})`, `overlap=${problem.overlap}`];
  if (differs(problem.alignment, 0) && problem.shift > 0) parts.push(`shift_overlap=(${shiftOverlap(problem).join(", ")})`);
  if (differs(problem.label_bias, 0)) parts.push(`label_bias=(${problem.label_bias.join(", ")})`);
  const weights = differs(problem.weights, 1) ? `, weights={"+": ${problem.weights[0]}, "-": ${problem.weights[1]}}` : "";
  if (problem.third) return pythonOfThree(problem, parts, weights);
  const training = problem.samples ? "Flow" : "SGD";
  const flips = problem.flips?.some((share) => share > 0) ? `, flips={"+": ${problem.flips[0]}, "-": ${problem.flips[1]}}` : "";
  const data = problem.samples ? `, data=tm.Fixed(${problem.samples}${flips})` : "";
  return [
    "import numpy as np",
    "import tiltmeter as tm",
    "",
    `problem = tm.teacher_mixture(${parts.join(", ")})`,
    `times = np.geomspace(0.01, ${problem.until}, 400)`,
    `theory = tm.predict(problem, tm.${training}(lr=${problem.lr}${weights}), times${data})`,
    'print(tm.leaders(theory, "loss"))',
  ].join("\n");
}

// Three groups have no short form: their means and teachers are given by their products.
function pythonOfThree(problem, parts, weights) {
  const [share, variance, overlap] = problem.third;
  const given = weights === "" ? "" : weights.replace("}", ', "third": 1}');
  return [
    "import numpy as np",
    "import tiltmeter as tm",
    "",
    `two = tm.teacher_mixture(${parts.join(", ")})`,
    "gram = np.zeros((6, 6))  # means of +, - and third, then their teachers",
    "gram[np.ix_([0, 1, 3, 4], [0, 1, 3, 4])] = two.gram",
    `gram[5, 3:5] = gram[3:5, 5] = ${overlap}`,
    "gram[5, 5] = 1",
    "problem = tm.theory.Mixture(",
    `    weight={"+": ${problem.rho} * (1 - ${share}), "-": (1 - ${problem.rho}) * (1 - ${share}), "third": ${share}},`,
    `    variance={"+": ${problem.variance[0]}, "-": ${problem.variance[1]}, "third": ${variance}},`,
    "    gram=gram,",
    `    label_bias={"+": ${problem.label_bias[0]}, "-": ${problem.label_bias[1]}, "third": 0},`,
    ")",
    `times = np.geomspace(0.01, ${problem.until}, 400)`,
    `theory = tm.predict(problem, tm.SGD(lr=${problem.lr}${given}), times)`,
    'print(tm.leaders(theory, "loss"))',
  ].join("\n");
}

export function asShell(problem) {
  if (problem.third) return "# Three groups have no short form: use Python, or a TOML file with [problem].";
  const pair = (values) => `(${values.join(", ")})`;
  const numbers = [`rho=${problem.rho}`, `shift=${problem.shift}`, `variance=${pair(problem.variance)}`, `overlap=${problem.overlap}`];
  if (differs(problem.alignment, 0) && problem.shift > 0) numbers.push(`shift_overlap=${pair(shiftOverlap(problem))}`);
  if (differs(problem.label_bias, 0)) numbers.push(`label_bias=${pair(problem.label_bias)}`);
  const parts = [`tiltmeter predict "${numbers.join(", ")}"`];
  parts.push(`--lr ${problem.lr}`);
  if (differs(problem.weights, 1)) parts.push(`--weights ${problem.weights.join(" ")}`);
  if (problem.samples) parts.push(`--samples ${problem.samples} --flow`);
  if (problem.samples && problem.flips.some((share) => share > 0)) parts.push(`--flips ${problem.flips.join(" ")}`);
  parts.push(`--until ${problem.until}`);
  return parts.join(" ");
}
