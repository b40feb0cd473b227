"""The explorer in Chromium: a key press on a slider until its curves are redrawn, an evaluation on disk until it is
shown."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Any

import xarray as xr

from tiltmeter.record import Origin, Recorder

PRESSES, WARM = 60, 10
#: The page to compare with: one line in one SVG element, moved by a slider.
PLAIN = """<!DOCTYPE html><svg width=700 height=300><path id=line fill=none stroke=black d="M0,0L700,300"/></svg>
<input type=range id=slider min=0 max=100 value=50><script>
document.getElementById("slider").addEventListener("input", (event) => {
  const at = Number(event.target.value);
  const points = Array.from({length: 160}, (_, i) => `${4.375 * i},${150 + at * Math.sin(i / 20)}`);
  document.getElementById("line").setAttribute("d", "M" + points.join("L"));
});
</script>"""
#: From the key press to the first frame after the line has changed.
MEASURE = """async ([selector, line]) => {
  const slider = document.querySelector(selector);
  const before = document.querySelector(line).getAttribute("d");
  slider.focus();
  return new Promise((done) => {
    let begun = 0;
    addEventListener("keydown", () => {
      begun = performance.now();
      const held_out = () => {
        if (document.querySelector(line).getAttribute("d") !== before) {
          requestAnimationFrame(() => done(performance.now() - begun));
        } else requestAnimationFrame(held_out);
      };
      requestAnimationFrame(held_out);
    }, { once: true, capture: true });
    window.ready = true;
  });
}"""
LINE = "#chart-loss svg .mark-line path"


def in_chromium(address: str, folder: Path) -> dict[str, list[float]]:
    """Milliseconds: key presses of the plain page and of the theory page in alternation, and ages of evaluations."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as p:
        found = p.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        plain, page = found.new_page(), found.new_page()
        page.set_default_timeout(300_000)
        plain.set_content(PLAIN)
        page.goto(address)
        page.wait_for_selector(f"{LINE}[d^=M]", state="attached")
        page.wait_for_selector("#stopping tbody tr")
        page.wait_for_timeout(2000)
        times: dict[str, list[float]] = {"plain": [], "theory": []}
        for press in range(WARM + PRESSES):
            key = "ArrowLeft" if press % 2 else "ArrowRight"
            times["plain"].append(_press(plain, "#slider", "#line", key))
            times["theory"].append(_press(page, "#slider-rho", LINE, key))
        times = {name: some[WARM:] for name, some in times.items()}
        times["live"] = _live(page, address, folder)
        found.close()
    return times


def _press(page: Any, slider: str, line: str, key: str) -> float:
    page.bring_to_front()
    page.evaluate("() => { window.ready = false; }")
    page.evaluate(f"(given) => {{ window.measured = ({MEASURE})(given); }}", [slider, line])
    page.wait_for_function("() => window.ready")
    page.keyboard.press(key)
    return float(page.evaluate("() => window.measured"))


def _live(page: Any, address: str, folder: Path) -> list[float]:
    """From an evaluation on disk to its count on the page."""
    recorder = Recorder(folder / "run", clock="step", origin=Origin("example"))
    page.goto(address + "#runs?run=run")
    page.reload()
    ages = []
    for step in range(1, 46):
        values = xr.DataArray([1.0 / step, 0.3], dims="group", coords={"group": ["a", "b"]})
        time.sleep(0.037 * (step % 7))  # evaluations do not come in step with the page's questions
        recorder.append(step, {"loss": values})
        begun = time.perf_counter()
        page.wait_for_function(
            f"() => document.querySelector('#run-status')?.textContent.includes('run: {step} evaluations')",
            timeout=60_000,
        )
        if step > 5:
            ages.append(1000 * (time.perf_counter() - begun))
    recorder.close()
    return ages
