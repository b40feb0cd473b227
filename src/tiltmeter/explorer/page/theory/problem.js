// A problem of the two-group model as one plain object. `alignment` is the cosine between the shift and each teacher,
// so that shift_overlap = alignment * sqrt(shift); every other name is that of tm.teacher_mixture and tm.SGD.
export const GROUPS = ["+", "-"];
export const THIRD = "third";

// Whether the page has a closed form of it: two groups, every example used once. Else Python is asked.
export function isClosed(problem) {
  return !problem.samples && !problem.third;
}

// A name of a group as it is read aloud.
export function spoken(group) {
  return { "+": "plus", "-": "minus" }[group] ?? group;
}

export const DEFAULTS = {
  rho: 0.8, shift: 0, variance: [0.5, 1.5], overlap: 0.5, alignment: [0, 0], label_bias: [0, 0], lr: 0.1,
  weights: [1, 1], until: 200,
};

export function shiftOverlap(problem) {
  return problem.alignment.map((cosine) => cosine * Math.sqrt(problem.shift));
}

export function stabilityLimit(problem) {
  const p = [problem.rho, 1 - problem.rho];
  let first = 0;
  let second = 0;
  for (let g = 0; g < 2; g += 1) {
    first += p[g] * problem.weights[g] * problem.variance[g];
    second += p[g] * problem.weights[g] ** 2 * problem.variance[g] ** 2;
  }
  return (2 * first) / second;
}

// One sentence about what no data can be, or about training that diverges; null where all is well.
export function refusal(problem) {
  const [c, e] = problem.alignment;
  const t = problem.overlap;
  if (problem.shift > 0 && 1 + 2 * c * e * t - c * c - e * e - t * t < -1e-9) {
    return "No data has these overlaps together: the shift cannot point at both teachers while they differ so much. "
      + "Move the alignments or the overlap.";
  }
  const limit = stabilityLimit(problem);
  if (problem.lr >= limit) {
    return `Training diverges: the learning rate should stay below ${limit.toPrecision(4)} for this problem.`;
  }
  return null;
}
