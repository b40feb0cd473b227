"""`tiltmeter advise`: which interventions the forecast prefers for a training, from the file of `tiltmeter train`."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from tiltmeter.cli.forecast import method_of
from tiltmeter.cli.show import draw
from tiltmeter.cli.terminal import Json, Save, Switch, To, print_json
from tiltmeter.cli.train_config import TrainingFile, read_config
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
    from tiltmeter.training.loop import train as training

    if to is not None and to.exists():
        raise FileExistsError(f"--to should name a new folder. Found {to}.")
    file = TrainingFile.of(tables, config.parent)
    data, held_out = file.data, file.held_out
    if method not in (None, "rehearsal", "twin"):
        raise KeyError(f"--method: no {method!r}. There are: rehearsal, twin.")
    taken, watch = method_of(method, {}), file.watch if tables["evaluations"] else None
    print(f"Trying interventions on {len(data):,} points ...", file=sys.stderr)
    advice = ask(file.network(), data, held_out, file.ordered, budget=budget, method=taken, watch=watch)
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
            arm = advice.interventions.get(name, ())
            steered = replace(file.recipe, interventions=(*file.recipe.interventions, *arm))
            fitted = data if any(one.needs == "validation groups" for one in arm) else None  # as `advise` fits them
            run = training(file.network(), data, held_out, steered, watch=file.watch, seed=file.seed, validation=fitted)
            trained[name] = run
            _keep({name: run}, to, "trained")
        judged = advice.judged_by(trained)
        told["trained"] = judged.card.to_json()
        if not json:
            print(f"\n{judged}\n{judged.card}")
    elif advice.best and not json:
        print(f"Next: tiltmeter train {config} --with {advice.best[0].replace(' ', '-')} --to runs/changed")
        print("      Add --train to train plainly and with the best three.")
    if save:
        draw(plot.who_paid(judged.card if judged is not None else advice.card), save)
    if json:
        print_json(told)


def _keep(runs: Any, to: Path | None, part: str) -> None:
    if to is None:
        return
    for name, run in runs.items():
        place = to / part / name.replace(" ", "-")
        place.parent.mkdir(parents=True, exist_ok=True)
        save_run(run, place)
    print(f"Saved {len(runs)} runs to {to / part}", file=sys.stderr)
