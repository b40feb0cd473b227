// Curves in words, and the phases in everyday words, for a reader who does not know yet what it means that a group leads.
const CURVE_NAMES = { tpr: "true positive rate", fpr: "false positive rate", positive_rate: "selection rate", error: "error rate" };

export const curveWords = (curve) => CURVE_NAMES[curve] ?? (curve ?? "").replaceAll("_", " ");

const BECAUSE = {
  "larger variance": "whose inputs vary more", "smaller variance": "whose inputs vary less", "more data": "which has more data", "less data": "which has less data",
  "shift and label imbalance": "because where a group lies hints at its labels", "teachers, start or loss weights": "because of its rule, its start or its weight in the loss",
};

export function plainWords(found) {
  if (found.length === 0) return "The model is equally good for both groups at all times.";
  const on = (phase) => `${phase.leader === "-" ? "−" : phase.leader}${phase.reason ? `, ${BECAUSE[phase.reason] ?? phase.reason}` : ""}`;
  if (found.length === 1) return `From beginning to end the model does better on ${on(found[0])}.`;
  const [first, ...others] = found;
  return `At first the model does better on ${on(first)}${others.map((phase) => `; then on ${on(phase)}`).join("")}.`;
}
