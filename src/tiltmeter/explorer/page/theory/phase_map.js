// A map over any two parameters: for every cell who leads, in what order. The two parameters it spans do not matter to
// it, so it is drawn again only when another one moves.
import { constants, geomspace, losses } from "./closed_form.js";
import { FIRST } from "./crossings.js";
import { refusal } from "./problem.js";

export const KINDS = ["nobody", "+", "-", "- then +", "+ then -", "more changes", "impossible"];

export function phaseMap(problem, across, up, cells, evaluations) {
  const kinds = new Uint8Array(cells * cells);
  const times = geomspace(FIRST, problem.until, evaluations);
  for (let row = 0; row < cells; row += 1) {
    for (let column = 0; column < cells; column += 1) {
      const here = up.set(across.set(problem, column / (cells - 1)), row / (cells - 1));
      kinds[row * cells + column] = kindOf(here, here.until === problem.until ? times : geomspace(FIRST, here.until, evaluations));
    }
  }
  return kinds;
}

function kindOf(problem, times) {
  if (refusal(problem) !== null) return 6;
  const k = constants(problem);
  let first = 0;
  let last = 0;
  let changes = 0;
  for (const time of times) {
    const [a, b] = losses(k, time);
    const sign = Math.abs(a - b) > 1e-12 ? Math.sign(a - b) : 0;
    if (sign !== 0) {
      if (last !== 0 && sign !== last) changes += 1;
      if (first === 0) first = sign;
      last = sign;
    }
  }
  if (first === 0) return 0;
  if (changes === 0) return first < 0 ? 1 : 2;
  if (changes === 1) return last < 0 ? 3 : 4;
  return 5;
}
