"""Glossary tips: the first use of a word of docs/glossary.md on a page shows its meaning on hover and on focus."""

import re
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

PAGE = Path(__file__).parents[1] / "glossary.md"
#: The words of these sections get tips; the others are usual words or words of the explorer.
WITH_TIPS = ("Words of tiltmeter", "Rates of the report")


def glossary(sections: tuple[str, ...] | None = None) -> dict[str, str]:
    """Word -> meaning, of the tables of the page; None: of all its sections."""
    parts = re.split(r"^## (.*)\n", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    kept = (text for title, text in zip(parts[::2], parts[1::2], strict=True) if sections is None or title in sections)
    rows = (row for text in kept for row in re.findall(r"^\| (.+?) \| (.+?) \|$", text, re.MULTILINE))
    return {word: meaning.replace("`", "") for word, meaning in rows if word != "word"}


def tip(shown: str, meaning: str) -> str:
    """HTML of a word with its meaning, for the mouse, the keyboard and screen readers."""
    text = escape(meaning, quote=True)
    return f'<span class="term" tabindex="0" data-meaning="{text}" aria-description="{text}">{escape(shown)}</span>'


def _plain(text: nodes.Text) -> bool:
    """Whether a text stands in a paragraph and not in code, a link, a heading or a table."""
    parent, in_paragraph = text.parent, False
    while parent is not None:
        if isinstance(parent, (nodes.literal, nodes.reference, nodes.title, nodes.table, nodes.FixedTextElement)):
            return False
        in_paragraph = in_paragraph or isinstance(parent, nodes.paragraph)
        parent = parent.parent
    return in_paragraph


def _add(app: Sphinx, tree: nodes.document, page: str) -> None:
    if app.builder.name != "html" or page in ("glossary", "index") or page.startswith("lab/"):
        return
    for word, meaning in glossary(WITH_TIPS).items():
        use = re.compile(rf"\b{word}s?\b", re.IGNORECASE)
        for text in [text for text in tree.findall(nodes.Text) if _plain(text)]:
            match = use.search(text.astext())
            if match:
                before, after = text[: match.start()], text[match.end() :]
                marked: list[Any] = [nodes.raw("", tip(match[0], meaning), format="html")]
                text.parent.replace(text, [nodes.Text(before), *marked, nodes.Text(after)])
                break


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("doctree-resolved", _add)
    return {"parallel_read_safe": True}
