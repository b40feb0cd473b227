"""`tiltmeter measure`: a measure of simplicity or group bias, recorded while a model trains."""

from __future__ import annotations

import json as json_format
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich import box
from rich.table import Table

from tiltmeter.cli.choices import made
from tiltmeter.cli.flags import Json, Save, To
from tiltmeter.cli.pictures import draw
from tiltmeter.cli.readings import Reading, readings_of
from tiltmeter.cli.terminal import print_table
from tiltmeter.cli.train_config import build_data, read_config, train_as_told
from tiltmeter.recipe import Recipe, Watch
from tiltmeter.record import Trajectory, log_spaced

#: Without a file: a short training run that shows the measure.
STEPS, BATCH, LR, PER_DECADE = 200, 32, 0.1, 4


def measure(
    name: str | None = None,
    config: Path | None = None,
    /,
    *,
    list_all: Annotated[bool, Parameter(name="--list", negative="", show_default=False)] = False,
    curve: str | None = None,
    to: To = None,
    save: Save = (),
    json: Json = False,
) -> None:
    """Record a measure while a model trains; prints its first and last values together with the null value.

    Parameters
    ----------
    name
        The measure; --list shows all.
    config
        A TOML file of `tiltmeter train`; its table [measure] sets the options of the measure. Without a file: the
        built-in digits and a small network, or the measure's own example.
    list_all
        List all measures: what they need and cost, where they are exact, when the bias is absent.
    curve
        The curve of the measure to draw (default: its first).
    """
    if list_all:
        _list(json)
        return
    if name is None:
        raise ValueError("Which measure? `tiltmeter measure --list` shows all.")
    trajectory = _train(name, config, to)
    if to is not None:
        print(f"Saved to {to}", file=sys.stderr)
    found = readings_of(trajectory)
    if not found:
        raise ValueError(f"The measure {name!r} gave no values for this model and data.")
    chosen = next((one for one in found if one.curve == curve), found[0] if curve is None else None)
    if chosen is None:
        raise KeyError(f"No curve {curve!r} of {name}. There are: {', '.join(one.curve for one in found)}.")
    _draw(trajectory, chosen, save)
    if json:
        _print_json(name, trajectory, found)
    else:
        _print(name, found)


def _train(name: str, config: Path | None, to: Path | None) -> Trajectory:
    from tiltmeter.measures.catalogue import find
    from tiltmeter.measures.example import example_of
    from tiltmeter.training.loop import train

    kind = find(name)
    if config is not None:
        tables = read_config(config, ("measure",))
        chosen = made(kind, tables.get("measure", {}), "measure")
        return train_as_told(tables, config.parent, (chosen,), to=to)
    chosen, model, data = example_of(kind)
    look = data
    if not hasattr(kind, "example"):
        data, look = build_data({}, Path())
    print(f"Training on {len(data):,} points, with {len(look):,} held-out points ...", file=sys.stderr)
    watch = Watch(when=log_spaced(PER_DECADE), measures=(chosen,))
    return train(model, data, look, Recipe(lr=LR, steps=STEPS, batch=BATCH), watch=watch, to=to)


def _draw(trajectory: Trajectory, chosen: Reading, paths: tuple[Path, ...]) -> None:
    if not paths:
        return
    draw(chosen.picture(trajectory.clock), paths)


def _list(json: bool) -> None:
    from tiltmeter.measures.overview import rows

    found = rows()
    if json:
        text = [{**vars(row), "command": f"tiltmeter measure {row.name}"} for row in found]
        print(json_format.dumps(text, indent=2))
        return
    print(
        f"{len(found)} measures; passes are forward passes over the held-out points, per observation, on the example."
    )
    table = Table(box=box.SIMPLE_HEAD)
    for head in ("measure", "what is measured", "what it takes", "passes", "where exact", "when absent"):
        table.add_column(head, justify="right" if head == "passes" else "left", no_wrap=head == "measure")
    for row in found:
        table.add_row(row.name, row.title, row.takes, row.cost, row.exact, row.absent)
    print_table(table)


def _print(name: str, found: list[Reading]) -> None:
    for one in found:
        print(one.sentence)
    table = Table(box=box.SIMPLE_HEAD)
    for head in (name, "", "first", "last", "null, last"):
        table.add_column(head, justify="left" if head in (name, "") else "right")
    for one in found:
        for label, first, last, null in one.lines:
            table.add_row(one.curve, label, first, last, null)
    print_table(table)


def _print_json(name: str, trajectory: Trajectory, found: list[Reading]) -> None:
    text = {
        "measure": name,
        "clock": trajectory.clock,
        "looks": trajectory[found[0].curve].sizes["time"],
        "curves": [one.to_json() for one in found],
    }
    print(json_format.dumps(text, indent=2, allow_nan=False))
