"""Page files: the modules and styles of the page, read once; a request names one of them and never a path."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

KINDS = {".js": "text/javascript", ".css": "text/css", ".html": "text/html"}


@cache
def page_files() -> dict[str, str]:
    """Name within `page` -> text."""
    return dict(_below(files("tiltmeter.explorer") / "page", ""))


def kind_of(name: str) -> str:
    """The media type of one of them."""
    return KINDS[name[name.rindex(".") :]]


def _below(folder: Traversable, before: str) -> list[tuple[str, str]]:
    found = []
    for entry in sorted(folder.iterdir(), key=lambda one: one.name):
        if entry.is_dir():
            found += _below(entry, f"{before}{entry.name}/")
        elif any(entry.name.endswith(ending) for ending in KINDS):
            found.append((before + entry.name, entry.read_text(encoding="utf-8")))
    return found
