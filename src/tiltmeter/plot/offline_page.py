"""offline_page: what every HTML page here has: the drawing library inside, data that cannot become code, and a policy.

Text of users (names of groups, curves, runs) enters a page in two ways: as text, through `html.escape`, and inside a
script, through `script_json`. The page's Content-Security-Policy lists the scripts by their hashes, so that a browser
runs no other, and forbids every request.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from functools import cache
from html import escape
from typing import Any

from tiltmeter.shown_text import visible

#: Vega draws through an interpreter of its expressions, so that the page may forbid `eval`.
_DRAW = (
    "charts.forEach((spec, i) => vegaEmbed('#chart' + i, spec, "
    "{actions: %s, renderer: 'svg', ast: true, loader: {http: {}}}));"
)
MENU = "{export: true, source: false, editor: false, compiled: false}"


def script_json(value: Any) -> str:
    """JSON that stands safely inside a script element: nothing in it can end or open an element or a comment.

    >>> print(script_json({"group": "</script><!--"}))
    {"group": "\\u003c/script\\u003e\\u003c!--"}
    """
    text = json.dumps(value, allow_nan=False)
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


@cache
def drawing_library() -> str:
    """The JavaScript that draws charts, made once for all pages of a process."""
    import vl_convert

    bundle: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    return bundle.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def scripts(specs: Sequence[Any], menu: bool = False) -> list[str]:
    """The scripts that draw these Vega-Lite charts into elements chart0, chart1, ...; none where there is no chart."""
    if not specs:
        return []
    draw = _DRAW % (MENU if menu else "false")
    return [drawing_library(), f"const charts = {script_json(list(specs))};\n{draw}"]


def policy(code: Sequence[str]) -> str:
    """The Content-Security-Policy of a page with these scripts and no other: no request, no eval, no form.

    >>> policy(["1"])[:60]
    "default-src 'none'; script-src 'sha256-a4ayc/80/OGda4BO/1o/V"
    """
    hashes = " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(c.encode()).digest()).decode()}'" for c in code)
    return (
        f"default-src 'none'; script-src {hashes or chr(39) + 'none' + chr(39)}; style-src 'unsafe-inline'; "
        "img-src data: blob:; connect-src 'none'; base-uri 'none'; form-action 'none'"
    )


def page_html(title: str, style: str, body: str, specs: Sequence[Any] = (), menu: bool = False) -> str:
    """A whole page; `body` is HTML whose texts are escaped already."""
    code = scripts(specs, menu)
    return (
        "<!DOCTYPE html>\n<html lang='en'><head><meta charset='utf-8'>"
        f'<meta http-equiv="Content-Security-Policy" content="{policy(code)}">'
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>{escape(visible(title))}</title><style>{style}</style></head><body>\n{body}\n"
        + "\n".join(f"<script>{one}</script>" for one in code)
        + "</body></html>\n"
    )
