"""`tiltmeter show`: what a run directory holds."""

from __future__ import annotations

import time
from collections.abc import Iterator
from json import dumps
from pathlib import Path

from tiltmeter.cli.flags import Curve, Json, Level, Save, Switch
from tiltmeter.cli.pictures import save_pictures
from tiltmeter.cli.summary import Summary
from tiltmeter.record import check, load
from tiltmeter.record.labelled import array_to_json
from tiltmeter.record.trajectory import Trajectory

#: Seconds between two looks at a run that is being written.
PAUSE = 0.5


def show(
    run: Path,
    *,
    curve: Curve = "loss",
    level: Level = 0.05,
    save: Save = (),
    follow: Switch = False,
    ahead: Path | None = None,
    json: Json = False,
) -> None:
    """What a run directory holds, in words, as a table and as a picture.

    Parameters
    ----------
    run
        The run directory.
    follow
        Show it again whenever the run has grown, until it ends.
    ahead
        The file of `tiltmeter train` that made the run: also forecast its rest from the last checkpoint.
    """
    if ahead is not None:
        if follow:
            raise ValueError("--ahead looks once: leave out --follow.")
        _ahead(run, ahead, curve, level, save, json)
        return
    if follow:
        for _ in growing(run):
            _show(run, curve, level, (), json)
    else:
        _show(run, curve, level, save, json)
    if follow and save:
        _show(run, curve, level, save, json)


def _ahead(run: Path, config: Path, curve: str, level: float, save: tuple[Path, ...], json: bool) -> None:
    """What the run holds so far, and its rest as forecast from where it stands."""
    from tiltmeter.cli.train_config import build_data, build_network, build_when, read_config
    from tiltmeter.forecast.nowcast import nowcast
    from tiltmeter.recipe.table import recipe_from_table
    from tiltmeter.recipe.watch import Watch

    tables = read_config(config)
    data, look = build_data(tables["data"], config.parent, tables["problem"])
    recipe = recipe_from_table(tables["training"], data.groups)
    network = build_network(tables, data, recipe.loss)
    rest = nowcast(run, network, data, look, recipe, watch=Watch(when=build_when(tables)))
    summary = Summary(rest, curve, level)
    save_pictures(summary, save)
    if not json:
        _show(run, curve, level, (), json)
        print(f"From step {int(rest[curve].time[0])} on, as forecast from the weights and the optimiser there:")
    summary.print(as_json=json)


def growing(run: Path, pause: float = PAUSE) -> Iterator[int]:
    """Yield the number of looks whenever there are new ones, until the run ends."""
    seen = 0
    while True:
        state = check(run)
        if not state.ok:
            raise ValueError(str(state))
        if state.looks > seen:
            seen = state.looks
            yield seen
        if state.state != "running":
            return
        time.sleep(pause)


def _show(run: Path, curve: str, level: float, save: tuple[Path, ...], json: bool) -> None:
    loaded = load(run)
    if not isinstance(loaded, Trajectory):
        from tiltmeter.cli.equilibrium import tell

        if save:
            raise ValueError(f"{run} holds no curves over time to draw: try `plot.equilibrium_sweep` in Python.")
        if "error" not in loaded or not {"group"} <= set(loaded["error"].dims) <= {"group", "samples"}:
            # A dataset from elsewhere: print xarray's own description.
            curves = {str(name): array_to_json(curve) for name, curve in loaded.items()}
            print(dumps({"curves": curves}, indent=2, allow_nan=False) if json else loaded)
        else:
            tell(loaded, json)
        return
    summary = Summary(loaded, curve, level)
    save_pictures(summary, save)
    summary.print(as_json=json)
    if not json:
        print(check(run))
