// The state of the theory page as a program: Python and shell.
import { shiftOverlap } from "./theory/problem.js";

const differs = (pair, standard) => pair[0] !== standard || pair[1] !== standard;

export function asPython(problem) {
  const parts = [`rho=${problem.rho}`, `shift=${problem.shift}`, `variance=(${problem.variance.join(", ")})`, `overlap=${problem.overlap}`];
  if (differs(problem.alignment, 0) && problem.shift > 0) parts.push(`shift_overlap=(${shiftOverlap(problem).join(", ")})`);
  if (differs(problem.label_bias, 0)) parts.push(`label_bias=(${problem.label_bias.join(", ")})`);
  const weights = differs(problem.weights, 1) ? `, weights={"+": ${problem.weights[0]}, "-": ${problem.weights[1]}}` : "";
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
    "print(tm.phases(theory))",
  ].join("\n");
}

export function asShell(problem) {
  const parts = ["tiltmeter predict", `--rho ${problem.rho}`, `--shift ${problem.shift}`, `--variance ${problem.variance.join(" ")}`, `--overlap ${problem.overlap}`];
  if (differs(problem.alignment, 0) && problem.shift > 0) parts.push(`--shift-overlap ${shiftOverlap(problem).join(" ")}`);
  if (differs(problem.label_bias, 0)) parts.push(`--label-bias ${problem.label_bias.join(" ")}`);
  parts.push(`--lr ${problem.lr}`);
  if (differs(problem.weights, 1)) parts.push(`--weights ${problem.weights.join(" ")}`);
  if (problem.samples) parts.push(`--samples ${problem.samples} --flow`);
  if (problem.samples && problem.flips.some((share) => share > 0)) parts.push(`--flips ${problem.flips.join(" ")}`);
  parts.push(`--until ${problem.until}`);
  return parts.join(" ");
}
