"""Single file: the page as one HTML file that works without the program, from a disk or in the documentation.

Browsers load no modules from a disk, so the modules are put one after another into one script: lines that import go,
`export` goes, and what a module imports comes before it. This needs top-level names that are unique among all modules,
which a test holds.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from html import escape
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

from tiltmeter.explorer.theory_state import presets
from tiltmeter.plot.offline_page import policy, script_json
from tiltmeter.version import __version__

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


_IMPORT = re.compile(r'^import (?:\{[^}]*\} from )?"(\./[\w./-]+)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=function|const|class|async|let)", re.MULTILINE)
_DECLARED = re.compile(r"^(?:async )?(?:function|const|let|class) (\w+)", re.MULTILINE)


def single_file(title: str, embedded: Mapping[str, Any]) -> str:
    """The theory page or lessons, with everything they would ask a server for inside; it makes no request.

    >>> page = single_file("A lesson", {"pages": ["theory"]})
    >>> "connect-src 'none'" in page, len(page) < 200_000
    (True, True)

    These pages draw their curves themselves, so that the drawing library of the other pages is left out.
    """
    start = {"version": __version__, "presets": presets(), "alone": True, **embedded}
    script = one_script("main.js")
    body = re.sub(r".*<body>|</body>.*", "", page_files()["index.html"], flags=re.DOTALL)
    return (
        "<!DOCTYPE html>\n<html lang='en'><head><meta charset='utf-8'>"
        f'<meta http-equiv="Content-Security-Policy" content="{policy([script])}">'
        "<meta name='viewport' content='width=device-width, initial-scale=1'><link rel='icon' href='data:,'>"
        f"<title>{escape(title)}</title><style>{page_files()['style.css']}</style></head><body>{body}"
        f"<script type='application/json' id='embedded'>{script_json(start)}</script>"
        f"<script type='module'>{script}</script></body></html>\n"
    )


def one_script(entry: str) -> str:
    """A module and all that it imports as one script, in the order in which they need each other."""
    order: list[str] = []
    _visit(entry, order)
    parts = [f"// {name}\n{_EXPORT.sub('', _IMPORT.sub('', page_files()[name]))}" for name in order]
    return "\n".join(parts).replace("</script", "<\\/script")


def declared(name: str) -> list[str]:
    """The top-level names of one module."""
    return _DECLARED.findall(_EXPORT.sub("", page_files()[name]))


def _visit(name: str, order: list[str]) -> None:
    folder = name[: name.rindex("/") + 1] if "/" in name else ""
    for other in _IMPORT.findall(page_files()[name]):
        found = folder + other.removeprefix("./")
        if found not in order:
            _visit(found, order)
    if name not in order:
        order.append(name)
