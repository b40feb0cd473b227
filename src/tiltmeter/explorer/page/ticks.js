// Round numbers for axes.
export function logTicks(low, high, most) {
  for (const steps of [[1, 2, 5], [1, 3], [1]]) {
    const found = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power += 1) {
      for (const step of steps) {
        const tick = Number(`${step}e${power}`);
        if (tick >= low * (1 - 1e-9) && tick <= high * (1 + 1e-9)) found.push(tick);
      }
    }
    if (found.length <= most || steps.length === 1) return found.filter((_, i) => i % Math.ceil(found.length / Math.max(2, most)) === 0);
  }
  return [];
}

export function linearTicks(low, high, most) {
  const raw = (high - low) / most;
  const size = 10 ** Math.floor(Math.log10(raw));
  const step = size * [1, 2, 5, 10].find((one) => one * size >= raw * (1 - 1e-9));
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high * (1 + 1e-12) + 1e-12 * step && found.length < 50; i += 1) found.push(Number((i * step).toPrecision(12)));
  return found;
}
