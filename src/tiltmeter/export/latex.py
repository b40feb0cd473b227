r"""to_latex: the last values of a run as a table for a paper."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tiltmeter.export.table import plain_label, target
from tiltmeter.record import Trajectory
from tiltmeter.visible_text import visible

#: Signs that LaTeX obeys.
_SIGNS = {
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    '"': r"\textquotedbl{}",
    "|": r"\textbar{}",
}


def to_latex(run: Trajectory, path: str | os.PathLike[str], curves: Sequence[str] = ()) -> Path:
    r"""Write the values at the last look, one row for each group, with the standard error in brackets where known.

    >>> print(latex_text("50 % of <a_b>"))
    50 \% of \textless{}a\_b\textgreater{}

    The table needs only `\usepackage{booktabs}`. Seeds are averaged; the bracket is then the standard error over seeds.
    """
    place = target(path, ".tex")
    if not isinstance(run, Trajectory):
        raise TypeError(f"`run` should be a Trajectory, as `load` gives. Found {type(run).__name__}.")
    names = list(curves) or [n for n in run if _fits(run, n) and not n.endswith("_se")]
    for name in names:
        if not _fits(run, name):
            dims = ", ".join(map(str, run[name].dims))
            raise ValueError(f"A table has one number per group. Found {name!r} with {dims}.")
    if not names:
        raise ValueError("A table needs a curve of groups with at least one look. Found none.")
    groups = run[names[0]].coords["group"].values.tolist()
    lines = [r"\begin{tabular}{l" + "r" * len(names) + "}", r"\toprule"]
    lines.append(" & ".join(["group", *(latex_text(name.replace("_", " ")) for name in names)]) + r" \\")
    lines.append(r"\midrule")
    for group in groups:
        cells = [_cell(run, name, group) for name in names]
        lines.append(" & ".join([latex_text(str(plain_label(group))), *cells]) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}", ""]
    place.write_text("\n".join(lines), encoding="utf-8")
    return place


def latex_text(text: str) -> str:
    """Text that LaTeX prints as it is."""
    return "".join(_SIGNS.get(sign, sign) for sign in visible(text).replace("\n", " "))


def _fits(run: Trajectory, name: str) -> bool:
    curve = run[name]
    return "group" in curve.dims and set(curve.dims) <= {"time", "group", "seed"} and curve.sizes["time"] > 0


def _cell(run: Trajectory, name: str, group: object) -> str:
    places = run[name].coords["group"].values.tolist()
    if group not in places:
        return "--"
    last = run[name].isel(time=-1, group=places.index(group)).values
    if not np.isfinite(last).any():
        return "--"
    error = float("nan")
    if last.ndim and last.size > 1:
        error = float(np.nanstd(last, ddof=1) / np.sqrt(np.isfinite(last).sum()))
    elif f"{name}_se" in run:
        error = float(run[f"{name}_se"].isel(time=-1, group=places.index(group)).values.reshape(-1)[0])
    return f"{float(np.nanmean(last)):.4f}" + (f" ({error:.4f})" if np.isfinite(error) else "")
