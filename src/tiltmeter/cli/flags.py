"""Flags that several verbs share, each with one line of help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

#: A flag without a value and without a `--no-` form.
Switch = Annotated[bool, Parameter(negative="", show_default=False)]
Json = Annotated[bool, Parameter(negative="", show_default=False, help="Print the results as JSON.")]
Curve = Annotated[str, Parameter(help="The curve in which leaders are compared.")]
Level = Annotated[float, Parameter(help="How often any statement about leaders may be wrong.")]
To = Annotated[Path | None, Parameter(help="Save the result in this new run directory.")]
Save = Annotated[
    tuple[Path, ...],
    Parameter(
        negative_iterable=(),
        show_default=False,
        help="Draw a picture to this file (png, svg, pdf or html); may be repeated.",
    ),
]
