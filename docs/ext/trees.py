"""Six trees: a bar at the top of every page links to them, and the side bar shows only the one that holds the page."""

from typing import Any

from bs4 import BeautifulSoup
from sphinx.application import Sphinx

TREES = {
    "start": "Start",
    "tutorials": "Tutorials",
    "howto": "How-to",
    "understand": "Understand",
    "reference": "API",
    "evidence": "Evidence",
}


def tree_of(includes: dict[str, list[str]], page: str) -> str | None:
    """The tree that holds a page; None for the front page and pages such as the search."""
    parents = {child: parent for parent, children in includes.items() for child in children}
    while page not in TREES and page in parents:
        page = parents[page]
    return page if page in TREES else None


def _shown(app: Sphinx, page: str, _template: str, context: dict[str, Any], _doctree: Any) -> None:
    current = tree_of(app.env.toctree_includes, page)
    context["trees"] = [{"page": name, "title": title, "current": name == current} for name, title in TREES.items()]
    whole = context.get("furo_navigation_tree")
    if whole and current:
        chosen = BeautifulSoup(whole, "html.parser").select_one("li.toctree-l1.current")
        if chosen:
            context["furo_navigation_tree"] = f'<ul class="current">{chosen}</ul>'


def _folded(_app: Sphinx, _page: str, _template: str, context: dict[str, Any], _doctree: Any) -> None:
    """Hundreds of pages of the API are too many to list on each of them: only the branch of the page is open."""
    whole = context["toctree"]
    context["toctree"] = lambda **options: whole(**options | {"collapse": True})


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("html-page-context", _folded, priority=100)  # before the theme makes its tree
    app.connect("html-page-context", _shown, priority=900)  # after the theme has made its tree
    return {"parallel_read_safe": True}
