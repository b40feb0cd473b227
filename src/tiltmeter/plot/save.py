"""save: write a picture to a file, in the format of its suffix, without network access."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import altair as alt

from tiltmeter.plot.offline_page import page_html
from tiltmeter.record.directory.atomic_files import write_atomically

FORMATS = ("png", "svg", "pdf", "html", "json")
STYLE = "body { font: 16px/1.5 system-ui, sans-serif; margin: 1rem; }"


def save(chart: alt.TopLevelMixin, path: str | os.PathLike[str]) -> Path:
    """Write a chart as .png (at twice its size), .svg, .pdf, .html (self-contained) or .json (Vega-Lite).

    >>> import tempfile
    >>> from tiltmeter import plot, predict
    >>> from tiltmeter.theory import cases
    >>> chart = plot.curves(predict(*cases.centred_crossing(), curves=("loss",)))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(chart, folder + "/loss.json").name
    'loss.json'

    Args:
        chart: Picture of `tm.plot`.
        path: File to write; its ending says which format.
    """
    target = Path(path)
    suffix = target.suffix.removeprefix(".").lower()
    if suffix not in FORMATS:
        ends = ", ".join(f".{name}" for name in FORMATS)
        raise ValueError(f"`path` should end in one of {ends}. Found {target.name!r}.")
    if not isinstance(chart, alt.TopLevelMixin):
        raise TypeError(f"`chart` should be an Altair chart. Found {type(chart).__name__}.")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"`path` should lie in an existing directory. Found none at {target.parent}.")
    if suffix == "html":
        body = '<div id="chart0"></div>'
        write_atomically(target, page_html(target.stem, STYLE, body, [chart.to_dict()], menu=True).encode())
        return target
    options: dict[str, Any] = {"scale_factor": 2} if suffix == "png" else {}
    chart.save(str(target), format=suffix, **options)  # type: ignore[arg-type]
    return target
