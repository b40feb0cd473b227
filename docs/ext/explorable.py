"""The theory page of the explorer and its lessons as one file of the built documentation, without any request."""

from pathlib import Path

from sphinx.application import Sphinx

from tiltmeter.explorer.lessons import lessons
from tiltmeter.explorer.single_file import single_file


def _write(app: Sphinx, error: Exception | None) -> None:
    if error is None and app.builder.name == "html":
        # The lessons that need no answer of Python: they work in the page alone.
        shown = [one.to_json() for one in lessons() if not any("samples" in step.state for step in one.steps)]
        page = single_file("Play with it", {"pages": ["theory", "lessons"], "lessons": shown})
        (Path(app.outdir) / "explorable.html").write_text(page, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("build-finished", _write)
    return {"parallel_read_safe": True}
