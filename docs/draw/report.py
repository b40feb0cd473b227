"""The picture of the report's first screen: incomes of Adult, trained plainly and with two interventions.

`TILTMETER_DATA=FOLDER python docs/draw/report.py`, with Adult in the folder and Chromium installed.
"""

import io
import tempfile
from dataclasses import replace
from pathlib import Path

import torch
from PIL import Image
from playwright.sync_api import sync_playwright

import tiltmeter as tm

OUT = Path(__file__).parents[1] / "_static" / "report.png"


def main() -> None:
    train, held_out = tm.data.adult("sex")
    held_out = held_out.split(6000 / len(held_out), seed=0)[1]
    recipe = tm.Recipe(lr=0.1, steps=600, batch=64, order=0, loss=tm.Logistic())
    arms = {
        "plain": (),
        "weights by group and label": (tm.interventions.Reweighed(),),
        "balanced weights": (tm.interventions.Balanced(),),
    }
    with tempfile.TemporaryDirectory() as folder:
        for name, interventions in arms.items():
            torch.manual_seed(0)
            network = torch.nn.Sequential(
                torch.nn.Linear(train.x.shape[1], 32), torch.nn.ReLU(), torch.nn.Linear(32, 1)
            )
            run = tm.train(network, train, held_out, replace(recipe, interventions=interventions))
            tm.save(run, Path(folder) / name)
        page = tm.report(
            [Path(folder) / name for name in arms], Path(folder) / "page.html", title="Income over $50,000"
        )
        with sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
            shown = browser.new_page(viewport={"width": 1280, "height": 1000})
            shown.goto(Path(page).resolve().as_uri())
            picture = Image.open(io.BytesIO(shown.screenshot()))
            picture.convert("RGB").quantize(64).save(OUT, optimize=True)
            browser.close()


if __name__ == "__main__":
    main()
