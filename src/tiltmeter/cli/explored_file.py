"""explored_file: the file of `tiltmeter train` and `tiltmeter forecast` as an experiment of the explorer."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tiltmeter.cli.train_config import PICTURES, TABLES_OF_PEOPLE, build_data, build_network, build_when, read_config
from tiltmeter.explorer.experiment import Experiment
from tiltmeter.recipe.recipe import Recipe
from tiltmeter.recipe.table import recipe_from_table
from tiltmeter.recipe.watch import Watch
from tiltmeter.record import every


def explored_file(path: Path, root: Path, fetch: bool) -> Experiment:
    """What the file describes. Its table should lie in the explored folder; public data are used only if `fetch`."""
    tables = read_config(path)
    _check_source(tables["data"], path.parent, root, fetch)
    data, held_out = build_data(tables, path.parent)
    given = tables["training"]
    recipe = recipe_from_table(given, data.groups)
    seed, when = given.get("seed", 0), build_when(tables)

    def train(bent: Recipe, to: Path) -> None:
        from tiltmeter.training.loop import train as train_it

        points, validation = data, None
        if "validation" in given:
            points, validation = data.split(given["validation"], seed)
        network = build_network(tables, data, bent.loss)
        train_it(
            *(network, points, held_out, bent),
            watch=Watch(when=when),
            seed=seed,
            to=to,
            checkpoint=every(given.get("checkpoint", 1000)),
            validation=validation,
        )

    hidden = ", ".join(map(str, tables["model"].get("hidden", [64])))
    counts = ", ".join(f"{int((data.codes == code).sum()):,} of {group}" for code, group in enumerate(data.groups))
    about = f"{path.name}: a network with layers of {hidden} units, {len(data):,} training points ({counts})."
    return Experiment(about, data, held_out, recipe, lambda: build_network(tables, data, recipe.loss), train, when)


def _check_source(given: Mapping[str, Any], folder: Path, root: Path, fetch: bool) -> None:
    """The explorer reads nothing outside its folder, and sends nothing unless it may run things."""
    source = given.get("source")
    if source is None or source in ("digits", "problem"):
        return
    path = folder / source
    if source in (*TABLES_OF_PEOPLE, *PICTURES) and not path.is_file():
        if not fetch:
            raise ValueError(
                f"[data] source {source!r} may have to be downloaded: start the explorer with --allow-runs."
            )
    elif not path.resolve().is_relative_to(root):
        raise ValueError("[data] source should lie in the folder that is explored. Found one outside.")
