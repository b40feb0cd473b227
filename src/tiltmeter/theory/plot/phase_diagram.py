"""The phase diagram: over a grid of two parameters, which group leads at the end, and whether the lead ever changed."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any, NamedTuple

import altair as alt
import numpy as np
import xarray as xr

from tiltmeter.leaders.headline import term
from tiltmeter.pairs import groups_of
from tiltmeter.plot.offline_charts import Layers
from tiltmeter.plot.theme import FAINT, SHADES, axis, frame, group_name, legend, rows, short
from tiltmeter.plot.time_axis import log_ticks, tick_labels
from tiltmeter.record.trajectory import Trajectory
from tiltmeter.theory.dynamics.grids import crossing_count, leader_of


class Kinds(NamedTuple):
    """The kind of every point as an index into `names`; rows are along the second dimension given."""

    names: list[str]
    colours: list[str]
    matrix: np.ndarray
    tie: int
    valueless: int


def kinds_of(trajectory: Trajectory, curve: str, across: str, up: str) -> Kinds:
    """The kind of every point of a two-dimensional grid.

    A point without a value at the last time has diverged, unless the trajectory records that it has not.
    """
    values = trajectory[curve]
    groups = groups_of(values)
    final = values.isel(time=-1, drop=True)
    leads = leader_of(final, curve).transpose(up, across)
    matrix = np.full(leads.shape, 2 * len(groups))
    ahead = {group: _equal(leads.values, group) for group in groups}
    for i, group in enumerate(groups):
        matrix[ahead[group]] = 2 * i
    crossed = np.zeros(leads.shape, dtype=bool)
    for a, b in combinations(groups, 2):
        count = crossing_count(trajectory, curve, (a, b)).transpose(up, across).values
        crossed |= (count > 0) & (ahead[a] | ahead[b])
    matrix[crossed] += 1
    empty = final.isnull().all("group").transpose(up, across)
    matrix[empty.values] = 2 * len(groups) + 1
    known = trajectory.diverged
    explained = known is None or bool(known.notnull().broadcast_like(empty).where(empty, True).all())
    names: list[str] = []
    colours: list[str] = []
    for i, group in enumerate(groups):
        names += [f"{group_name(group)} leads, no crossing", f"{group_name(group)} leads after a crossing"]
        colours += SHADES[i % len(SHADES)]
    return Kinds(
        [*names, "tie", "diverged" if explained else "no value"],
        [*colours, "#FFFFFF", "#FFFFFF"],
        matrix,
        2 * len(groups),
        2 * len(groups) + 1,
    )


def _equal(labels: np.ndarray, group: Hashable) -> np.ndarray:
    """Where a label occurs; compared one by one, because a label may be a tuple."""
    return np.array([label == group for label in labels.flat], dtype=bool).reshape(labels.shape)


@dataclass(frozen=True)
class GridAxis:
    """The edges of the cells, the order that sorts the grid, and whether the scale is logarithmic."""

    name: str
    edges: np.ndarray
    order: np.ndarray
    log: bool

    @classmethod
    def of(cls, coordinate: xr.DataArray) -> GridAxis:
        """The axis of a coordinate.

        >>> GridAxis.of(xr.DataArray([0.1, 1.0, 10.0], dims="lr", name="lr")).log
        True
        """
        values = coordinate.values
        if values.dtype.kind not in "fiu":
            raise TypeError(f"The axes of a phase diagram are numbers. Found {values.dtype} in {coordinate.name!r}.")
        order = np.argsort(values)
        log = is_log_spaced(values[order])
        return cls(str(coordinate.name), cell_edges(values[order], log), order, log)

    def at(self, fraction: np.ndarray) -> np.ndarray:
        """The values at these fractions of the axis: 0 is the first edge, 1 the last."""
        low, high = (np.log(self.edges[[0, -1]]) if self.log else self.edges[[0, -1]]).tolist()
        found = low + (high - low) * fraction
        return np.asarray(np.exp(found) if self.log else found)

    def cell(self, values: np.ndarray) -> np.ndarray:
        """The cell in which each value lies."""
        return np.clip(np.searchsorted(self.edges, values) - 1, 0, self.order.size - 1)

    def channel(self) -> dict[str, Any]:
        """Scale and axis of a position channel."""
        domain = [float(self.edges[0]), float(self.edges[-1])]
        if not self.log:
            scale = alt.Scale(domain=domain, nice=False, zero=False)
            return {"scale": scale, "axis": axis(self.name, grid=False, tickCount=6)}
        ticks = log_ticks(*domain)
        written = axis(self.name, grid=False, values=ticks, labelExpr=tick_labels(ticks))
        return {"scale": alt.Scale(type="log", domain=domain, nice=False), "axis": written}


def is_log_spaced(values: np.ndarray) -> bool:
    """Whether positive values increase by a constant factor and not by a constant step.

    >>> is_log_spaced(np.array([1.0, 10.0, 100.0])), is_log_spaced(np.array([1.0, 2.0, 3.0]))
    (True, False)
    """
    if values.size < 3 or values[0] <= 0:
        return False
    factors = np.diff(np.log(values))
    return bool(np.allclose(factors, factors[0], rtol=1e-6) and not np.allclose(np.diff(values), values[1] - values[0]))


def cell_edges(values: np.ndarray, log: bool) -> np.ndarray:
    """Halfway between neighbours, on the scale of the axis; the outer cells are symmetric.

    >>> cell_edges(np.array([0.0, 1.0, 2.0]), log=False)
    array([-0.5,  0.5,  1.5,  2.5])
    """
    scaled = np.log(values) if log else values.astype(float)
    if scaled.size == 1:
        return np.asarray(scaled[0] + np.array([-0.5, 0.5]))
    middle = (scaled[1:] + scaled[:-1]) / 2
    found = np.concatenate([[2 * scaled[0] - middle[0]], middle, [2 * scaled[-1] - middle[-1]]])
    return np.exp(found) if log else found


Rectangle = tuple[int, int, int, int, int]


def rectangles(kinds: np.ndarray) -> list[Rectangle]:
    """Rectangles (kind, row, row after, column, column after) that cover the matrix without overlap.

    >>> rectangles(np.array([[0, 0, 1], [0, 0, 1]]))
    [(0, 0, 2, 0, 2), (1, 0, 2, 2, 3)]

    Runs of one kind along a row are joined over rows where they coincide, so a map with short borders needs few
    rectangles.
    """
    found: list[Rectangle] = []
    begun: dict[tuple[int, int, int], int] = {}
    for row in range(kinds.shape[0] + 1):
        here = [(int(kinds[row, a]), a, b) for a, b in runs(kinds[row])] if row < kinds.shape[0] else []
        for run in [run for run in begun if run not in here]:
            found.append((run[0], begun.pop(run), row, run[1], run[2]))
        for run in here:
            begun.setdefault(run, row)
    return found


def runs(row: np.ndarray) -> list[tuple[int, int]]:
    """Start and end of every run of equal values.

    >>> runs(np.array([5, 5, 7]))
    [(0, 2), (2, 3)]
    """
    return list(pairwise([0, *(np.flatnonzero(np.diff(row)) + 1).tolist(), row.size]))


def hatching(where: np.ndarray, x: GridAxis, y: GridAxis, lines: int = 80) -> list[dict[str, float | None]]:
    """Diagonal strokes over the cells that `where` selects, as pairs of points on the two axes."""
    if not where.any():
        return []
    strokes = []
    along = np.linspace(0.0, 1.0, 2 * max(where.shape) + 400)
    for offset in np.linspace(-1.0, 1.0, lines)[1:-1]:
        inside = along[(along + offset >= 0.0) & (along + offset <= 1.0)]
        across, up = x.at(inside), y.at(inside + offset)
        selected = where[y.cell(up), x.cell(across)]
        for start, stop in runs(selected):
            if selected[start] and stop - start > 1:
                last = stop - 1
                ends = {"x": across[start], "x2": across[last], "y": up[start], "y2": up[last]}
                strokes.append({name: short(value) for name, value in ends.items()})
    return strokes


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

    Args:
        trajectory: Result of `predict` over a grid of two dimensions.
        curve: Name of the curve, such as "loss" or "error".
        x: Grid dimension along the horizontal axis; None: the first.
        y: Grid dimension along the vertical axis; None: the second.
        title: Text above the picture; None: what it shows.
    """
    across, up = grid_dimensions(trajectory, curve, x, y)
    kinds = kinds_of(trajectory, curve, across, up)
    horizontal, vertical = (GridAxis.of(trajectory[curve].coords[dim]) for dim in (across, up))
    matrix = kinds.matrix[np.ix_(vertical.order, horizontal.order)]
    present = [kind for kind in range(len(kinds.names)) if (matrix == kind).any()]
    names = [kinds.names[kind] for kind in present]

    entries = legend(f"{term(curve)} at the end", symbolSize=180, symbolStrokeWidth=1, offset=14)
    shared: dict[str, Any] = {"field": "kind", "type": "nominal", "sort": None, "legend": entries}
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
    return Layers(layer=layers).properties(
        **frame(title, SIDE, SIDE, shows=f"Who leads in {term(curve)} at the end, and whether the lead changed")
    )


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
