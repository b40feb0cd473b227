"""The notebooks of the gallery run, were executed, and show everything without a network."""

import json
import shutil
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "docs/notebooks"
sys.path.insert(0, str(FOLDER.parent / "draw"))
from notebooks import cells  # noqa: E402

NAMES = ("engineer", "experimenter", "teacher", "theorist")


@pytest.mark.parametrize("name", NAMES)
def test_cells_run(name, monkeypatch, tmp_path):
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": name}
    for kind, text in cells((FOLDER / f"{name}.py").read_text(encoding="utf-8")):
        if kind == "code":
            exec(compile(text, name, "exec"), namespace)


@pytest.mark.parametrize("name", NAMES)
def test_the_executed_notebook_is_of_this_source(name):
    made = json.loads((FOLDER / f"{name}.ipynb").read_text(encoding="utf-8"))
    found = [(cell["cell_type"], "".join(cell["source"])) for cell in made["cells"]]
    assert found == cells((FOLDER / f"{name}.py").read_text(encoding="utf-8")), "run `make notebooks`"
    outputs = [output for cell in made["cells"] for output in cell.get("outputs", ())]
    assert not [output for output in outputs if output["output_type"] == "error"]
    kinds = {kind for output in outputs for kind in output.get("data", {})}
    assert {"text/html", "image/svg+xml"} <= kinds, "results as HTML, charts as pictures"
    page = (FOLDER / f"{name}.html").read_text(encoding="utf-8")
    for text in (json.dumps(made), page):
        assert "cdn." not in text
        assert "vegaEmbed" not in text
        assert "<script" not in text


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_page_opens_without_a_network(name):
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("Chromium is not installed on this machine.")
    sync = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with sync.sync_playwright() as browsers:
        browser = browsers.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_context(offline=True).new_page()
        said, asked = [], []
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto((FOLDER / f"{name}.html").as_uri())
        pictures = page.locator("svg").count() + page.locator("img").count()
        browser.close()
    assert pictures >= 1
    assert said == []
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
