"""The executed notebooks as pages: text, code and the outputs that they hold, with a picture of each for the gallery.

The pages are written to `docs/gallery` when the site is built. The notebooks are our own: their HTML is shown as it is.
"""

import json
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
FOLDER = Path(__file__).parents[1] / "gallery"


def text_of(part: Any) -> str:
    """A text of a notebook, which may be a list of lines."""
    return part if isinstance(part, str) else "".join(part)


def output_page(output: dict[str, Any]) -> str:
    """One output of a cell: a picture or HTML as it is, else text."""
    data = output.get("data", {})
    for kind in ("image/svg+xml", "text/html"):
        if kind in data:
            return f'```{{raw}} html\n<div class="notebook-output">{text_of(data[kind])}</div>\n```\n'
    text = text_of(output.get("text") or data["text/plain"]).rstrip()
    return f"```{{code-block}} text\n:class: output\n\n{text}\n```\n"


def notebook_page(name: str, cells: list[dict[str, Any]]) -> str:
    """The page of one notebook."""
    title, *rest = text_of(cells[0]["source"]).splitlines()
    parts = [
        f"{title}\n",
        f"{{download}}`Download this notebook <../notebooks/{name}.ipynb>`\n",
        "\n".join(rest).strip(),
    ]
    for cell in cells[1:]:
        source = text_of(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```\n")
        parts += [output_page(output) for output in cell.get("outputs", ())]
    return "\n".join(parts) + "\n"


def first_picture(cells: list[dict[str, Any]]) -> str:
    """The first drawn picture among the outputs."""
    outputs = (output.get("data", {}) for cell in cells for output in cell.get("outputs", ()))
    return next(text_of(data["image/svg+xml"]) for data in outputs if "image/svg+xml" in data)


def write_pages() -> None:
    """Write what has changed, so that only these pages are built again."""
    FOLDER.mkdir(exist_ok=True)
    for source in sorted(NOTEBOOKS.glob("*.ipynb")):
        cells = json.loads(source.read_text(encoding="utf-8"))["cells"]
        made = {f"{source.stem}.md": notebook_page(source.stem, cells), f"{source.stem}.svg": first_picture(cells)}
        for name, text in made.items():
            place = FOLDER / name
            if not place.exists() or place.read_text(encoding="utf-8") != text:
                place.write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("builder-inited", lambda _: write_pages())
    return {"parallel_read_safe": True}
