"""Sections about fully trained students: the Dataset of `equilibrium` or `train_to_equilibrium`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import xarray as xr

from tiltmeter.plot.equilibrium_sweep import equilibrium_sweep as draw
from tiltmeter.report.page import Section, Table

#: Group curves of the table, where they exist.
SHOWN = ("error", "positive_rate", "tpr", "fpr", "ppv", "loss", "training_loss")
#: A table of more grid points than this is no longer read; the chart and the ends tell the story.
MOST = 40


def dataset_sections(found: xr.Dataset, name: str = "") -> list[Section]:
    """What the students do to each group, along the grid if there is one, and what was solved."""
    if "error" not in found or "group" not in found["error"].dims:
        raise ValueError("`report` takes datasets of trained students, as from `equilibrium`: here is no group error.")
    before = f"{name}: " if name else ""
    seeds = found.mean("seed") if "seed" in found.dims else found
    grid = [dim for dim in seeds["error"].dims if dim != "group"]
    charts = [draw(found)] if len(grid) == 1 and seeds.sizes[grid[0]] > 1 and "seed" not in found.dims else []
    sections = [Section(f"{before}Trained to the end", tables=[_values(seeds, grid)], charts=charts)]
    origin = found.attrs.get("origin")
    if isinstance(origin, Mapping):
        sections.append(Section(f"{before}Settings", tables=[_settings(origin)]))
    return sections


def _values(found: xr.Dataset, grid: list[Any]) -> Table:
    shown = [name for name in SHOWN if name in found and set(found[name].dims) == {"group", *grid}]
    points = found[shown].stack(point=grid) if grid else found[shown].expand_dims(point=1)
    rows = []
    for i in range(min(points.sizes["point"], MOST)):
        here = points.isel(point=i)
        place = [f"{float(here.coords[dim]):.4g}" for dim in grid]
        for group in found.coords["group"].values:
            rows.append([*place, str(group), *(f"{float(here[name].sel(group=group)):.4f}" for name in shown)])
    return Table([*map(str, grid), "group", *(name.replace("_", " ") for name in shown)], rows)


def _settings(origin: Mapping[str, Any]) -> Table:
    settings = origin.get("settings", {})
    rows = [("source", str(origin.get("source"))), *((str(k), json.dumps(v)[:200]) for k, v in settings.items())]
    return Table(("", ""), rows)
