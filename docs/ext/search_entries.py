"""The search keeps the index entries of pages that were not built again. Sphinx forgets them, and ranks them lower."""

from sphinx.application import Sphinx
from sphinx.util.index_entries import split_index_msg


def _kept(app: Sphinx) -> list[tuple[str, dict[str, object], str]]:
    indexer = getattr(app.builder, "indexer", None)
    if indexer is not None:
        for page, entries in app.env.get_domain("index").entries.items():
            if page not in indexer._index_entries:
                words = {
                    (word, target or "", main)
                    for kind, value, target, main, _ in entries
                    for word in split_index_msg(kind, value)
                }
                indexer._index_entries[page] = sorted(words)
    return []


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("html-collect-pages", _kept)  # the last event before the index is written
    return {"parallel_read_safe": True}
