"""The notebooks of the gallery run, were executed, and show everything without a network."""

import json
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
    for foreign in ("cdn.", "vegaEmbed", "<script"):
        assert foreign not in json.dumps(made)
