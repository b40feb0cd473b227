"""`tiltmeter advise`: which interventions the forecast prefers for a training, from the file of `tiltmeter train`."""

from __future__ import annotations

import json as json_text
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from tiltmeter.cli.forecast import method_of
from tiltmeter.cli.show import draw
from tiltmeter.cli.terminal import Json, Save, Switch, To
from tiltmeter.cli.train_config import build_data, build_network, build_when, read_config
from tiltmeter.recipe.table import recipe_from_table
from tiltmeter.recipe.watch import Watch
from tiltmeter.record import save as save_run


def advise(
    config: Path,
    *,
    train: Switch = False,
    budget: float | None = None,
    method: str | None = None,
    to: To = None,
    save: Save = (),
    json: Json = False,
) -> None:
    """Try interventions for this network and these data, and rank the models that they deliver.

    Parameters
    ----------
    config
        A TOML file with tables [data], [model], [training] and [evaluations], as for `tiltmeter train`.
    train
        Train plainly and with the best three, and print forecast against trained.
    budget
        CPU seconds that it may take (default: a minute, or 0.6 of all trainings where that is more).
    method
        rehearsal or twin; by default what the budget buys.
    to
        Save every run in this new folder: `forecast/NAME` and `trained/NAME`.
    """
    tables = read_config(config)
    import torch  # noqa: F401  # said now rather than after the data are read

    from tiltmeter import plot
    from tiltmeter.advice.advise import advise as ask

    if to is not None and to.exists():
        raise FileExistsError(f"--to should name a new folder. Found {to}.")
    data, held_out = build_data(tables, config.parent)
    recipe = recipe_from_table(tables["training"], data.groups)
    watch = Watch(when=build_when(tables))
    if method not in (None, "rehearsal", "twin"):
        raise KeyError(f"--method: no {method!r}. There are: rehearsal, twin.")
    taken = method_of(method, {})
    print(f"Trying interventions on {len(data):,} points ...", file=sys.stderr)
    seeded = replace(recipe, order=tables["training"].get("seed", 0)) if recipe.order is None else recipe
    network = build_network(tables, data, recipe.loss)
    advice = ask(
        network, data, held_out, seeded, budget=budget, method=taken, watch=watch if tables["evaluations"] else None
    )
    _keep(advice.runs, to, "forecast")
    told: dict[str, Any] = advice.to_json()
    if not json:
        print(advice)
    judged: Any = None
    if train and not advice.best:
        print("Nothing is trained: no intervention does clearly better.", file=sys.stderr)
    elif train:
        trained = {}
        for name in ("plain", *advice.best):
            print(f"Training: {name} ...", file=sys.stderr)
            steered = replace(recipe, interventions=(*recipe.interventions, *advice.interventions.get(name, ())))
            trained[name] = _train(tables, data, held_out, steered, watch)
        _keep(trained, to, "trained")
        judged = advice.judged_by(trained)
        told["trained"] = judged.card.to_json()
        if not json:
            print(f"\n{judged}\n{judged.card}")
    elif advice.best and not json:
        print("Add --train to train plainly and with the best three.")
    if save:
        draw(plot.who_paid(judged.card if judged is not None else advice.card), save)
    if json:
        print(json_text.dumps(told, indent=2, allow_nan=False))


def _train(tables: Any, data: Any, held_out: Any, recipe: Any, watch: Watch) -> Any:
    from tiltmeter.training.loop import train

    seed = tables["training"].get("seed", 0)
    return train(build_network(tables, data, recipe.loss), data, held_out, recipe, watch=watch, seed=seed)


def _keep(runs: Any, to: Path | None, part: str) -> None:
    if to is None:
        return
    for name, run in runs.items():
        place = to / part / name.replace(" ", "-")
        place.parent.mkdir(parents=True, exist_ok=True)
        save_run(run, place)
    print(f"Saved {len(runs)} runs to {to / part}", file=sys.stderr)
