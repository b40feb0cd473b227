"""Build the notebooks of the gallery: cells from docs/notebooks/*.py, executed, as .ipynb and as one HTML page each.

Needs requirements/notebooks.txt: `make notebooks`. The pages take nothing from the network: no MathJax, no require.js.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "notebooks"
HEAD = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }}
pre {{ overflow: auto; }}
</style></head>
"""


def cells(text: str) -> list[tuple[str, str]]:
    """The cells of a script with `# %%` marks: their kinds, and their texts."""
    found = []
    for part in re.split(r"^# %%", text, flags=re.MULTILINE)[1:]:
        head, _, body = part.partition("\n")
        if "[markdown]" in head:
            found.append(("markdown", re.sub(r"^# ?", "", body.strip(), flags=re.MULTILINE)))
        else:
            found.append(("code", body.strip()))
    return found


def notebook(text: str) -> Any:
    """The notebook of a script, not yet executed; the ids of its cells do not change from build to build."""
    import nbformat.v4 as nb

    made = [
        (nb.new_markdown_cell if kind == "markdown" else nb.new_code_cell)(body, id=f"cell-{number}")
        for number, (kind, body) in enumerate(cells(text))
    ]
    about = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    return nb.new_notebook(cells=made, metadata=about)


def main() -> None:
    import nbformat
    from nbclient import NotebookClient
    from nbconvert import HTMLExporter

    os.environ["OMP_NUM_THREADS"] = "1"
    page = HTMLExporter(template_name="basic", mathjax_url="", require_js_url="", embed_images=True)
    for source in sorted(FOLDER.glob("*.py")):
        made = notebook(source.read_text(encoding="utf-8"))
        NotebookClient(made, timeout=300, kernel_name="python3").execute()
        for cell in made.cells:
            cell.metadata = {}
        made.metadata.pop("language_info", None)
        nbformat.write(made, source.with_suffix(".ipynb"))
        body, _ = page.from_notebook_node(made)
        head = HEAD.format(title=source.stem.capitalize())
        source.with_suffix(".html").write_text(f"{head}<body>{body}</body></html>\n", encoding="utf-8")
        print(source.with_suffix(".ipynb").name)


if __name__ == "__main__":
    main()
