// Charts: a Vega-Lite description is drawn once; afterwards only its data is changed.
import { make } from "./elements.js";

const reduced = { actions: false, renderer: "svg", ast: true, logLevel: 1, loader: { http: {} } };

let loading = null;

// The drawing library is large: it is fetched when the first chart needs it.
function library() {
  loading ??= new Promise((done, failed) => {
    const script = make("script", { src: "/vega.js" });
    script.onload = () => done();
    script.onerror = () => { loading = null; failed(new Error("The drawing library could not be loaded.")); };
    document.head.append(script);
  });
  return loading;
}

async function embed(place, spec) {
  await library();
  return window.vegaEmbed(place, spec, reduced);
}

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

export function groupColours(groups) {
  const known = { "+": colour("plus"), "-": colour("minus") };
  const others = ["plus", "minus", "third", "fourth", "fifth", "sixth", "ink"].map(colour);
  return groups.map((group, i) => (groups.length === 2 && known[group]) || others[i % others.length]);
}

export const DASHES = [[1, 0], [7, 3], [2, 2], [9, 3, 2, 3], [14, 4], [5, 2, 1, 2, 1, 2], [4, 6]];

function settings() {
  const ink = colour("ink");
  return {
    background: "transparent", font: "system-ui, sans-serif", view: { stroke: null },
    axis: { labelColor: ink, titleColor: ink, gridColor: colour("line"), gridOpacity: 0.5, domainColor: ink, tickColor: ink, labelFontSize: 12, titleFontSize: 12, titleFontWeight: 500 },
    axisY: { minExtent: 38 }, legend: { labelColor: ink, titleColor: ink, orient: "top", labelFontSize: 13, symbolType: "stroke", symbolOpacity: 1, symbolStrokeWidth: 2.5, symbolSize: 400, columnPadding: 14, columns: 3 },
    text: { color: ink }, rule: { color: ink }, rect: { color: ink }, title: { color: ink, fontSize: 13, fontWeight: 500 },
  };
}

export class Chart {
  constructor(place, describe) {
    this.place = place;
    this.describe = describe;
    this.data = null;
    this.drawing = null;
    this.late = false;
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this.shape = null;
      if (this.data) this.show(this.data);
    });
    // Vega follows the window, not its container.
    let width = 0;
    new ResizeObserver(([seen]) => {
      if (Math.abs(seen.contentRect.width - width) < 1) return;
      width = seen.contentRect.width;
      if (this.view && width > 0) dispatchEvent(new Event("resize"));
    }).observe(place);
  }

  // Draw these data; the first time the whole chart, afterwards only what they change. One drawing at a time: data that
  // come meanwhile are drawn after it.
  show(data) {
    this.data = data;
    this.late = true;
    this.drawing ??= this.draw().finally(() => { this.drawing = null; });
    return this.drawing;
  }

  async draw() {
    while (this.late) {
      this.late = false;
      const described = this.describe();
      const shape = JSON.stringify(described);
      if (shape !== this.shape) {
        const spec = { $schema: "https://vega.github.io/schema/vega-lite/v6.json", width: "container", autosize: { type: "fit-x", contains: "padding" }, datasets: { ...this.data }, ...described, config: settings() };
        const result = await embed(this.place, spec);
        this.view?.finalize();
        this.view = result.view;
        this.shape = shape;
      }
      for (const [name, rows] of Object.entries(this.data)) this.patch(name, rows);
      await this.view.runAsync();
    }
  }

  patch(name, rows) {
    try {
      this.view.data(name, rows);
    } catch {
      // A layer that has nothing to show was left out of the chart.
    }
  }
}

// A picture that was stored as a whole.
export function drawStored(place, spec) {
  return embed(place, { ...spec, background: "white" });
}

// 1, 3, 10, 30, ...: Vega leaves out those outside the scale.
const LOG_TICKS = Array.from({ length: 22 }, (_, i) => Number(`${i % 2 === 0 ? 1 : 3}e${Math.floor(i / 2) - 3}`));

export function timeAxis(title, log = true) {
  return { field: "time", type: "quantitative", title, scale: log ? { type: "log", nice: false } : { zero: false, nice: false }, axis: { grid: false, ...(log ? { values: LOG_TICKS, format: ",~r" } : { format: "~g" }) } };
}

export function seriesEncoding(names, colours, field = "series", legend = { symbolType: "stroke", symbolOpacity: 1 }) {
  return {
    color: { field, type: "nominal", scale: { domain: names, range: colours }, title: null, legend },
    strokeDash: { field, type: "nominal", scale: { domain: names, range: names.map((_, i) => DASHES[i % DASHES.length]) }, title: null, legend },
  };
}
