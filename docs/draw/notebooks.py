"""Build the notebooks of the gallery: cells from docs/notebooks/*.py, executed; `ext/notebook_pages.py` makes pages.

Needs requirements/notebooks.txt: `make notebooks`.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "notebooks"


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

    os.environ["OMP_NUM_THREADS"] = "1"
    for source in sorted(FOLDER.glob("*.py")):
        made = notebook(source.read_text(encoding="utf-8"))
        NotebookClient(made, timeout=300, kernel_name="python3").execute()
        for cell in made.cells:
            cell.metadata = {}
        made.metadata.pop("language_info", None)
        nbformat.write(made, source.with_suffix(".ipynb"))
        print(source.with_suffix(".ipynb").name)


if __name__ == "__main__":
    main()
