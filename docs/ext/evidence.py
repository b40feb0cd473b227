"""Evidence: an index of the experiments with search and chips, a page for each, and what did not hold.

All of it is made from the outcomes that tiltmeter-lab stores when the site is built; the pages are written to
`docs/evidence`.
"""

import os
from pathlib import Path

from api_page import write_changed
from sphinx.application import Sphinx

from tiltmeter_lab.verdict_page import STORE, index_page, pages, read_outcomes

DOCS = Path(__file__).parents[1]
FOLDER = "evidence"
PICTURES = os.path.relpath(STORE.parent / "_static" / "verdicts", DOCS / FOLDER)


def _write(_: Sphinx) -> None:
    write_changed(DOCS / FOLDER, pages(read_outcomes(), PICTURES))


def _index(_: Sphinx, name: str, source: list[str]) -> None:
    if name == FOLDER:
        source[0] += index_page(read_outcomes(), FOLDER)


def _depends(app: Sphinx, *_: object) -> list[str]:
    """The index is made anew when the outcomes changed."""
    newest = max(STORE.stat().st_mtime_ns, Path(__file__).stat().st_mtime_ns)
    return [FOLDER] if newest > app.env.all_docs.get(FOLDER, 0) * 1000 else []


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("builder-inited", _write)
    app.connect("source-read", _index)
    app.connect("env-get-outdated", _depends)
    return {"parallel_read_safe": True}
