"""The explorer: from a key press on a slider to redrawn curves, against a page that only moves a line; lists; lag.

    python benchmarks/explorer.py      # or: tiltmeter bench explorer

Needs Chromium, playwright and the extra `[explore]`. Times of a browser depend on the machine and on what else it does;
the ratio of the first two lines is measured in one run, in alternation.
"""

from __future__ import annotations

import json
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import xarray as xr

from tiltmeter.explorer.run_curves import run_curves
from tiltmeter.explorer.run_rows import run_rows
from tiltmeter.record import Origin, Recorder
from tiltmeter.record.directory.seal import sealed_line

PRESSES = 40
LOOKS = 100_000
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
      const look = () => {
        if (document.querySelector(line).getAttribute("d") !== before) {
          requestAnimationFrame(() => done(performance.now() - begun));
        } else requestAnimationFrame(look);
      };
      requestAnimationFrame(look);
    }, { once: true, capture: true });
    window.ready = true;
  });
}"""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        listing(Path(folder) / "many")
        long_run(Path(folder) / "long")
        command = [sys.executable, "-m", "tiltmeter", "explore", str(Path(folder) / "live"), "--quiet", "--port", "0"]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            address = re.search(r"http://\S+", server.stdout.readline())[0]
            lag(address)
            browser(address, Path(folder) / "live")
        finally:
            server.terminate()
            server.wait()


def listing(folder: Path) -> None:
    """2,000 run directories, listed for the first time and again."""
    write(folder / "r0", 20)
    for number in range(1, 2000):
        shutil.copytree(folder / "r0", folder / f"r{number}")
    for word in ("first", "again"):
        wall, begun = time.perf_counter(), time.process_time()
        count = len(run_rows(str(folder))["rows"])
        spent = time.process_time() - begun
        print(f"{count} runs listed, {word}: {spent:.2f} s CPU, {time.perf_counter() - wall:.2f} s")


def long_run(folder: Path) -> None:
    """A day's run of 100,000 looks: read for the first time, and again after one more look."""
    write(folder / "day", 1)
    (folder / "day" / "end.json").unlink()
    curves = folder / "day" / "curves.jsonl"
    more = ({"kind": "look", "time": step, "values": {"loss": [1.0 / step, 0.3]}} for step in range(2, LOOKS + 2))
    lines = [sealed_line(json.dumps(one, separators=(",", ":")).encode()) for one in more]
    with curves.open("ab") as file:
        file.writelines(lines[:-1])
    for word in ("first", "after one more look"):
        begun = time.process_time()
        told = run_curves(str(folder), ["day"], "loss", {})["day"]
        spent = 1000 * (time.process_time() - begun)
        print(f"{told['looks']:,} looks, {word}: {spent:.0f} ms CPU, {len(told['times'])} sent")
        with curves.open("ab") as file:
            file.write(lines[-1])


def lag(address: str) -> None:
    """How long the server takes for a small answer while it forecasts, beside the same when it is idle."""
    asked = lambda path: urllib.request.urlopen(address + path, timeout=900).read()  # noqa: E731
    idle = [_timed(lambda: asked("page/style.css")) for _ in range(50)]
    done = threading.Event()

    def forecast() -> None:
        try:
            for lr in (0.006, 0.005, 0.004):
                asked(f"api/forecast?lr={lr}&steps=600&full=yes")
        finally:
            done.set()

    threading.Thread(target=forecast).start()
    busy = []
    while not done.is_set():
        busy.append(_timed(lambda: asked("page/style.css")))
        time.sleep(0.02)
    for word, times in (("idle", idle), ("while forecasting", busy)):
        print(f"a small answer, {word}: {_told(times)} over {len(times)}")


def browser(address: str, folder: Path) -> None:
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as p:
        found = p.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        plain, page = found.new_page(), found.new_page()
        page.set_default_timeout(300_000)
        plain.set_content(PLAIN)
        page.goto(address)
        page.wait_for_selector("#chart-loss svg .mark-line path[d^=M]", state="attached")
        page.wait_for_timeout(3000)
        times: dict[str, list[float]] = {"plain": [], "theory": []}
        for press in range(PRESSES):
            key = "ArrowLeft" if press % 2 else "ArrowRight"
            times["plain"].append(_press(plain, "#slider", "#line", key))
            times["theory"].append(_press(page, "#slider-rho", "#chart-loss svg .mark-line path", key))
        for name, some in times.items():
            print(f"key press to redrawn, {name}: {_told(some)}")
        ratio = statistics.median(times["theory"]) / statistics.median(times["plain"])
        print(f"theory page / page that moves one line: {ratio:.2f}x")
        live(page, address, folder)
        found.close()


def live(page: Any, address: str, folder: Path) -> None:
    """From a look on disk to its count on the page."""
    recorder = Recorder(folder / "run", clock="step", origin=Origin("example"))
    page.goto(address + "#runs?run=run")
    page.reload()
    ages = []
    for step in range(1, 31):
        values = xr.DataArray([1.0 / step, 0.3], dims="group", coords={"group": ["a", "b"]})
        recorder.append(step, {"loss": values})
        begun = time.perf_counter()
        page.wait_for_function(
            f"() => document.querySelector('#run-status')?.textContent.includes('run: {step} looks')", timeout=60_000
        )
        if step > 5:
            ages.append(1000 * (time.perf_counter() - begun))
    recorder.close()
    print(f"a look of a live run, from disk to page: {_told(ages)}")


def write(path: Path, looks: int) -> None:
    with Recorder(path, clock="step", origin=Origin("example")) as recorder:
        for step in range(1, looks + 1):
            values = xr.DataArray([1.0 / step, 0.3], dims="group", coords={"group": ["a", "b"]})
            recorder.append(step, {"loss": values})


def _press(page: Any, slider: str, line: str, key: str) -> float:
    page.bring_to_front()
    page.evaluate("() => { window.ready = false; }")
    page.evaluate(f"(given) => {{ window.measured = ({MEASURE})(given); }}", [slider, line])
    page.wait_for_function("() => window.ready")
    page.keyboard.press(key)
    return float(page.evaluate("() => window.measured"))


def _timed(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return 1000 * (time.perf_counter() - begun)


def _told(times: list[float]) -> str:
    ordered = sorted(times)
    late = ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))]
    return f"median {statistics.median(ordered):.0f} ms, 95th percentile {late:.0f} ms, longest {ordered[-1]:.0f} ms"


if __name__ == "__main__":
    main()
