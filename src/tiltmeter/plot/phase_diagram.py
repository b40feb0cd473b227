"""The phase diagram: over a grid of two parameters, which group leads at the end, and whether the lead ever changed."""

from __future__ import annotations

from typing import Any

import altair as alt
import numpy as np

from tiltmeter.plot.grid_axis import GridAxis
from tiltmeter.plot.map_cells import hatching, rectangles
from tiltmeter.plot.offline_charts import Layers
from tiltmeter.plot.phase_kinds import kinds_of
from tiltmeter.plot.theme import FAINT, frame, legend, rows, short
from tiltmeter.record.trajectory import Trajectory

SIDE = 400
#: The legend's symbol for hatched cells.
HATCH = "M-1,-1L1,-1L1,1L-1,1ZM-1,1L1,-1M-1,0L0,-1M0,1L1,0"


def phase_diagram(
    trajectory: Trajectory, curve: str = "loss", x: str | None = None, y: str | None = None, title: str | None = None
) -> alt.LayerChart:
    """A grid as a map. Colour: leader at the last time; dark: no crossing before; light: after a crossing.

    >>> import numpy as np
    >>> from tiltmeter import SGD, predict, teacher_mixture
    >>> problem = teacher_mixture(rho=("rho", np.linspace(0.1, 0.9, 9)), variance=(0.5, 1.5),
    ...                           overlap=("overlap", np.linspace(0.0, 1.0, 9)))
    >>> grid = predict(problem, SGD(lr=0.1), np.geomspace(0.01, 200.0, 100), curves=("loss",))
    >>> phase_diagram(grid).to_dict()["layer"][0]["encoding"]["fill"]["scale"]["domain"]
    ['+ leads, no crossing', '+ leads after a crossing', '- leads, no crossing']

    Points that diverged are hatched; ties are blank. `x` and `y` name the two grid dimensions; a geometric grid gets a
    log axis. With more than two groups, the crossings of the final leader are used.

    What it does not show: two crossings between neighbouring times, and a change of lead after the last time. Choose
    the times accordingly.
    """
    across, up = grid_dimensions(trajectory, curve, x, y)
    kinds = kinds_of(trajectory, curve, across, up)
    horizontal, vertical = (GridAxis.of(trajectory[curve].coords[dim]) for dim in (across, up))
    matrix = kinds.matrix[np.ix_(vertical.order, horizontal.order)]
    present = [kind for kind in range(len(kinds.names)) if (matrix == kind).any()]
    names = [kinds.names[kind] for kind in present]

    told = legend(f"{curve} at the end", symbolSize=180, symbolStrokeWidth=1, offset=14)
    shared: dict[str, Any] = {"field": "kind", "type": "nominal", "sort": None, "legend": told}
    place = {
        "x": alt.X("x:Q", **horizontal.channel()),
        "y": alt.Y("y:Q", **vertical.channel()),
        "x2": alt.X2("x2:Q"),
        "y2": alt.Y2("y2:Q"),
    }
    blank = (kinds.tie, kinds.valueless)
    fill = alt.Fill(scale=alt.Scale(domain=names, range=[kinds.colours[kind] for kind in present]), **shared)
    # A stroke in the colour of the cell hides the thin gaps that antialiasing leaves between neighbours.
    outline = [FAINT if kind in blank else kinds.colours[kind] for kind in present]
    stroke = alt.Stroke(scale=alt.Scale(domain=names, range=outline), **shared)
    symbols = [HATCH if kind == kinds.valueless else "square" for kind in present]
    shape = alt.Shape(scale=alt.Scale(domain=names, range=symbols), **shared)

    ex, ey = ([short(edge) for edge in grid_axis.edges] for grid_axis in (horizontal, vertical))
    cells = [
        {"kind": kinds.names[kind], "x": ex[left], "x2": ex[right], "y": ey[low], "y2": ey[high]}
        for kind, low, high, left, right in rectangles(matrix)
        if kind not in blank
    ]
    strokes = hatching(matrix == kinds.valueless, horizontal, vertical)
    layers = [
        alt.Chart(rows(cells)).mark_rect(strokeWidth=0.5, clip=True).encode(fill=fill, stroke=stroke, **place),
        alt.Chart(rows(strokes)).mark_rule(strokeWidth=0.8, color=FAINT, clip=True).encode(**place),
        alt.Chart(rows([])).mark_point().encode(fill, stroke, shape),  # gives the legend its symbols
    ]
    return Layers(layer=layers).properties(**frame(title, SIDE, SIDE))


def grid_dimensions(trajectory: Trajectory, curve: str, x: str | None, y: str | None) -> tuple[str, str]:
    """The dimensions on the two axes, checked."""
    if not isinstance(trajectory, Trajectory):
        raise TypeError(f"`phase_diagram` draws a trajectory. Found {type(trajectory).__name__}.")
    values = trajectory[curve]
    dims = [str(dim) for dim in values.dims if dim not in ("time", "group")]
    if "seed" in dims:
        raise ValueError("`phase_diagram` needs one value per grid point: average over `seed` first.")
    if len(dims) != 2:
        found = f"{len(dims)}: {', '.join(dims)}" if dims else "none"
        raise ValueError(f"`phase_diagram` needs a grid over exactly two dimensions. Found {found}.")
    for name in (x, y):
        if name is not None and name not in dims:
            raise KeyError(f"No grid dimension {name!r}. There are: {', '.join(dims)}.")
    if x is not None and x == y:
        raise ValueError(f"`x` and `y` should name different dimensions. Found {x!r} twice.")
    first = x if x is not None else next(dim for dim in dims if dim != y)
    return first, next(dim for dim in dims if dim != first)
