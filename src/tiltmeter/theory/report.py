"""Sections about fully trained students: the Dataset of `equilibrium`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import xarray as xr

from tiltmeter.report.data_section import pairs_table
from tiltmeter.report.html import Cell, card_table, fold, section
from tiltmeter.theory.plot.equilibrium_sweep import equilibrium_sweep as draw

#: Group curves of the table, where they exist.
SHOWN = ("error", "positive_rate", "tpr", "fpr", "ppv", "loss", "training_loss")
#: A table of more grid points than this is no longer read; the chart and the ends tell the story.
MOST = 40


def dataset_section(found: xr.Dataset, name: str = "") -> str:
    """What the students do to each group, along the grid if there is one, and what was solved."""
    if "error" not in found or "group" not in found["error"].dims:
        raise ValueError("`report` takes datasets of trained students, as from `equilibrium`: here is no group error.")
    seeds = found.mean("seed") if "seed" in found.dims else found
    grid = [dim for dim in seeds["error"].dims if dim != "group"]
    parts = [_values(seeds, grid)]
    if len(grid) == 1 and seeds.sizes[grid[0]] > 1 and "seed" not in found.dims:
        parts.append(_picture(found))
    origin = found.attrs.get("origin")
    if isinstance(origin, Mapping):
        parts.append(fold("All settings", _settings(origin)))
    return section("trained", f"{name}: trained to the end" if name else "Trained to the end", *parts)


def _picture(found: xr.Dataset) -> str:
    """The sweep as a drawing without a script."""
    import vl_convert

    drawn: str = vl_convert.vegalite_to_svg(draw(found).to_dict())
    return f'<div class="paper">{drawn[drawn.index("<svg") :]}</div>'


def _values(found: xr.Dataset, grid: list[Any]) -> str:
    shown = [name for name in SHOWN if name in found and set(found[name].dims) == {"group", *grid}]
    points = found[shown].stack(point=grid) if grid else found[shown].expand_dims(point=1)
    rows = []
    for i in range(min(points.sizes["point"], MOST)):
        here = points.isel(point=i)
        place = [Cell(f"{float(here.coords[dim]):.4g}") for dim in grid]
        for group in found.coords["group"].values:
            values = [Cell(f"{float(here[name].sel(group=group)):.4f}") for name in shown]
            rows.append([*place, Cell(str(group)), *values])
    return card_table([*map(str, grid), "group", *(name.replace("_", " ") for name in shown)], rows, "", stack=False)


def _settings(origin: Mapping[str, Any]) -> str:
    settings = origin.get("settings", {})
    return pairs_table(
        [("source", str(origin.get("source"))), *((str(k), json.dumps(v)[:200]) for k, v in settings.items())]
    )
