// What is wrong with a page as it is drawn: text with a contrast below 4.5, what sticks out to the right, and a tab order
// that is set by hand. Returns a list of sentences; an empty one is right.
() => {
  const LEAST = 4.5, faults = [];
  const parsed = (text) => {
    const parts = text?.startsWith("rgb") ? text.match(/[\d.]+/g).map(Number) : null;
    return parts && [parts[0] / 255, parts[1] / 255, parts[2] / 255, parts[3] ?? 1];
  };
  const over = (ink, below) => [0, 1, 2].map((i) => ink[i] * ink[3] + below[i] * (1 - ink[3]));
  const luminance = (colour) => {
    const [r, g, b] = colour.map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (a, b) => {
    const [high, low] = [luminance(a), luminance(b)].sort((x, y) => y - x);
    return (high + 0.05) / (low + 0.05);
  };
  // The filter of charts on dark pages, as the standard defines it: invert, turn the hue by 180 degrees, brighten.
  const filtered = (colour, filter) => {
    const [invert, brightness] = ["invert", "brightness"].map((name) => Number(filter.match(new RegExp(`${name}\\(([\\d.]+)`))?.[1]));
    const [r, g, b] = colour.map((v) => v * (1 - 2 * invert) + invert);
    const turned = [-0.574 * r + 1.43 * g + 0.144 * b, 0.426 * r + 0.43 * g + 0.144 * b, 0.426 * r + 1.43 * g - 0.856 * b];
    return turned.map((v) => Math.min(1, (brightness || 1) * Math.max(0, v)));
  };
  const backOf = (element) => {
    const layers = [];
    for (let one = element; one; one = one.parentElement) layers.unshift(parsed(getComputedStyle(one).backgroundColor));
    const dark = matchMedia("(prefers-color-scheme: dark)").matches && !matchMedia("print").matches;
    return layers.filter(Boolean).reduce((below, layer) => over(layer, below), dark ? [0.07, 0.07, 0.07] : [1, 1, 1]);
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode.textContent.trim(), parent = walker.currentNode.parentElement;
    const hidden = parent.closest("script, style, title, desc, option, .skip, .unseen, :disabled") || !parent.checkVisibility({ visibilityProperty: true });
    if (!text || hidden || parent.getBoundingClientRect().width < 1) continue;
    const style = getComputedStyle(parent), svg = parent.closest("svg"), ink = parsed(svg ? style.fill : style.color);
    if (!ink) continue;
    let opacity = svg ? Number(style.fillOpacity) : 1;
    for (let one = parent; one; one = one.parentElement) opacity *= Number(getComputedStyle(one).opacity);
    if (svg && opacity === 0) continue; // a tick label that Vega left out, since it would overlap
    const filter = svg ? getComputedStyle(svg).filter : "none";
    const below = filter === "none" ? backOf(parent) : [1, 1, 1];
    const shown = [over([...ink.slice(0, 3), ink[3] * opacity], below), below].map((one) => (filter === "none" ? one : filtered(one, filter)));
    const value = contrast(...shown);
    if (value < LEAST) faults.push(`contrast ${value.toFixed(2)}: ${text.slice(0, 40)}`);
  }
  const edge = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth > edge) faults.push(`the page is ${document.documentElement.scrollWidth} wide`);
  for (const one of document.querySelectorAll("main *, header *, section *")) {
    let inside = false; // what scrolls in a box of its own may be wider
    for (let box = one.parentElement; box && box !== document.body; box = box.parentElement) inside ||= getComputedStyle(box).overflowX !== "visible";
    const out = one.getBoundingClientRect().right - edge;
    if (!inside && out > 6 && one.checkVisibility()) faults.push(`${one.tagName} sticks out by ${Math.round(out)}: ${one.textContent.trim().slice(0, 40)}`);
  }
  for (const one of document.querySelectorAll("[tabindex]")) if (one.tabIndex > 0) faults.push(`tabindex ${one.tabIndex}`);
  return [...new Set(faults)].slice(0, 20);
}
