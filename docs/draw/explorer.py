"""Draws the pictures of the page on the explorer: python docs/draw/explorer.py (in the Chromium of the system)"""

import io
import re
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image
from playwright.sync_api import sync_playwright

STATIC = Path(__file__).parents[1] / "_static"
SEEDS = "&".join(f"run=demo/digits-seed-{seed}" for seed in range(3))
#: Name of the picture -> what follows # in the address of the page.
SHOWN = {
    "explorer": "theory",
    "explorer-runs": f"runs?{SEEDS}&curve=loss",
}


def main() -> None:
    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        command = [sys.executable, "-m", "tiltmeter", "explore", "demo", "--demo", "--quiet"]
        server = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True)
        try:
            address = next(match[0] for line in server.stdout if (match := re.search(r"http://\S+", line)))
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            for name, place in SHOWN.items():
                page = browser.new_page(viewport={"width": 1280, "height": 1000})
                page.goto(f"{address}#{place}")
                if name == "explorer":
                    page.get_by_role("button", name="three phases").click()
                page.wait_for_timeout(5000)
                picture = Image.open(io.BytesIO(page.screenshot()))
                picture.convert("RGB").quantize(64).save(STATIC / f"{name}.png", optimize=True)
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main()
