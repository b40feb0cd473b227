"""Every option of the command line, appended to docs/command-line.md from the help of each verb."""

import contextlib
import io
import os
from unittest.mock import patch

from sphinx.application import Sphinx

from tiltmeter.cli import main, verbs

PAGE = "command-line"


def help_of(verb: str) -> str:
    """What `tiltmeter VERB --help` prints."""
    printed = io.StringIO()
    with patch.dict(os.environ, {"COLUMNS": "100", "NO_COLOR": "1"}), contextlib.redirect_stdout(printed):
        main([verb, "--help"])
    return printed.getvalue().strip()


def options() -> str:
    """A section for each verb."""
    lines = ["", "## Every option", ""]
    for verb, about in verbs().items():
        lines += [f"### tiltmeter {verb}", "", about.line, "", "```text", help_of(verb), "```", ""]
    return "\n".join(lines)


def _add(_: Sphinx, name: str, source: list[str]) -> None:
    if name == PAGE:
        source[0] += options()


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", _add)
    return {"parallel_read_safe": True}
