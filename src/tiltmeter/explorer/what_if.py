"""What-if: forecast a training for every setting of the sliders, look for better ones, and train it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tiltmeter.explorer.experiment import Experiment, TangentExperiment, learning_rate
from tiltmeter.explorer.run_curves import first_curve, series, shown
from tiltmeter.explorer.run_judgement import answer_first, loaded
from tiltmeter.explorer.run_rows import address_of, run_folder
from tiltmeter.explorer.settings import PLACE
from tiltmeter.explorer.what_if_sources import SAVED, experiment_of
from tiltmeter.leaders.leaders import leaders
from tiltmeter.plot.theme import group_name
from tiltmeter.record import Trajectory
from tiltmeter.shown_text import visible

#: A forecast by kernels follows the sliders at once and has no measured error.
SKETCH, NO_PROMISE = "A sketch, not a promise", "The linearised network, which promises nothing"
SLOW = "This recipe is rehearsed for a few seconds, when the slider rests."


def what_if_start(root: str, source: str, reader: str | None, fetch: bool) -> dict[str, Any]:
    """What can be bent of this source, and where it stands."""
    from tiltmeter.interventions.menu import menu

    one = experiment_of(root, source, reader, fetch)
    recipe = one.recipe
    own = recipe.weights or {}
    by_group = set(own) <= set(one.groups)
    weights = [float(own.get(group, 1.0)) for group in one.groups] if by_group else None
    drawn = recipe.drawn
    return {
        "about": visible(one.about),
        "groups": [group_name(group) for group in one.groups],
        "lr": learning_rate(recipe),
        "steps": one.steps,
        "weights": weights,
        "shares": one.shares if drawn is None else [float(drawn.get(group, 0.0)) for group in one.groups],
        "laws": list(menu(one.steps)) if not recipe.interventions else [],
        "refused_interventions": one.refused_interventions,
        "no_training": one.no_training,
    }


def what_if_forecast(
    root: str, source: str, reader: str | None, fetch: bool, bend: dict[str, Any], full: bool, curve: str = "loss"
) -> dict[str, Any]:
    """Forecast a curve of all groups; `full` also what takes seconds."""
    ahead = experiment_of(root, source, reader, fetch).forecast(bend, full)
    return {"waits": SLOW} if ahead is None else forecast_told(ahead, curve)


def saved_forecast(root: str, source: str, curve: str = "loss") -> dict[str, Any]:
    """A forecast that was saved, as it is."""
    path = run_folder(Path(root)).get(source.removeprefix(SAVED))
    if path is None:
        raise ValueError("This forecast is no longer there.")
    return forecast_told(loaded(Path(root), path), curve)


def forecast_told(ahead: Trajectory, curve: str) -> dict[str, Any]:
    """The curve, the sentence and the promise of a forecast."""
    from tiltmeter.forecast.bands import promise_sentence
    from tiltmeter.plot.promise_rule import promised_since

    names = [name for name, one in ahead.items() if shown(one) and "group" in one.dims and not name.endswith("_se")]
    if not names:
        raise ValueError("There is no curve of groups in this forecast.")
    chosen = first_curve(ahead, curve, names)
    told, since, promise = series(ahead[chosen]), promised_since(ahead), promise_sentence(ahead)
    try:
        judged = leaders(ahead, chosen)
        sentence = answer_first(ahead, judged) if promise else f"{SKETCH}: {judged.headline.line}"
    except ValueError:  # a curve that is neither better high nor better low
        sentence = _ends(ahead, chosen)
    return {
        **told,
        "band": _band(ahead, chosen, told["times"]),
        "curve": visible(chosen),
        "curves": [visible(name) for name in names],
        "clock": ahead.clock,
        "sentence": visible(sentence),
        "promised_since": None if since is None or since == float("inf") else since,
        "trust": trust_in(ahead),
        "promise_text": visible(f"{promise or NO_PROMISE}."),
    }


def trust_in(ahead: Trajectory) -> dict[str, str]:
    """How far a forecast is to be trusted: reliable if it promises all evaluations, fair if some of them, else low.

    >>> from tiltmeter.record.origin import Origin
    >>> settings = {"promise": {"from": 0.0, "reliable_until": 2000.0, "sentence": "Rehearsed 5 times"}}
    >>> trust_in(Trajectory({}, "step", Origin("forecast", settings=settings)))
    {'level': 'reliable', 'text': 'Reliable up to step 2,000'}
    """
    promise: Any = ahead.origin.settings.get("promise")
    if not isinstance(promise, Mapping):
        return {"level": "low", "text": "Trust is low: nothing is promised"}
    since, last = float(promise["from"]), promise.get("reliable_until")
    until = "" if last is None else f" up to {ahead.clock} {last:,.0f}"
    if since > 0:
        return {"level": "fair", "text": f"Trust is fair: promised from {ahead.clock} {since:,.0f} on{until}"}
    return {"level": "reliable", "text": f"Reliable{until}"}


def best_weights_found(
    root: str, source: str, reader: str | None, fetch: bool, bend: dict[str, Any], tell: Callable[[Any], None]
) -> dict[str, Any]:
    """Find the loss weights that are forecast to make the worst group best off."""
    from tiltmeter.forecast.kernel.best_weights import best_weights

    tell("computing the kernels of the network")
    one = experiment_of(root, source, reader, fetch)
    recipe = replace(one.bent({**bend, "weights": [], "law": ""}), weights=None)
    kernels = one.kernels
    tell("trying weights")
    found = best_weights(kernels, recipe)
    return {"weights": [float(found.weights[group]) for group in one.groups], "sentence": visible(str(found))}


def interventions_compared(
    root: str, source: str, reader: str | None, fetch: bool, bend: dict[str, Any], tell: Callable[[Any], None]
) -> dict[str, Any]:
    """Forecast the training with every intervention of the menu: the final losses, or why it has no forecast."""
    from tiltmeter.interventions.menu import menu

    tell("computing the kernels of the network")
    one = experiment_of(root, source, reader, fetch)
    rows: list[dict[str, Any]] = [{"law": "", **_final(one, {**bend, "law": ""})}]
    laws = list(menu(int(bend["steps"])))
    for done, law in enumerate(laws, 1):
        tell(f"{done} of {len(laws)}: {law}")
        try:
            rows.append({"law": law, **_final(one, {**bend, "law": law})})
        except (ValueError, TypeError) as refused:
            rows.append({"law": law, "refused": visible(str(refused))})
    return {"groups": [group_name(group) for group in one.groups], "rows": rows}


def train_bent(
    root: str, source: str, reader: str | None, fetch: bool, bend: dict[str, Any], tell: Callable[[Any], None]
) -> dict[str, Any]:
    """Train the same network from the same weights into a new run directory; `tell` hears its name first."""
    one = experiment_of(root, source, reader, fetch)
    if not isinstance(one, Experiment):
        raise ValueError(one.no_training)
    recipe = one.bent(bend)
    folder = Path(root) / PLACE
    name = _free(folder, re.sub(r"[^\w-]+", "-", Path(source).name.removesuffix(".toml")) or "run")
    address = address_of(f"{PLACE}/{name}".encode())
    tell({"run": address})
    one.train(recipe, folder / name)
    return {"run": address}


def _final(one: Experiment | TangentExperiment, bend: Mapping[str, Any]) -> dict[str, Any]:
    loss = one.kernels.forecast(one.bent(bend))["loss"].isel(time=-1).values
    return {"losses": loss.tolist(), "worst": float(loss.max()), "gap": float(loss.max() - loss.min())}


def _band(ahead: Trajectory, curve: str, times: list[float]) -> dict[str, Any] | None:
    """The limits that are drawn around a forecast, (evaluations, groups), and what they mean; None where there are
    none."""
    values = ahead[curve].sel(time=times)
    if values.sizes.get("seed", 1) < 2:
        return None
    low, high = (getattr(values, pick)("seed").transpose("time", "group").values.tolist() for pick in ("min", "max"))
    return {"lower": low, "upper": high, "text": f"from the lowest to the highest of {values.sizes['seed']} networks"}


def _ends(ahead: Trajectory, curve: str) -> str:
    """Where every group ends, for more than two of them."""
    last = ahead[curve].mean("seed") if "seed" in ahead[curve].dims else ahead[curve]
    values = last.isel(time=-1)
    said = [f"{group_name(group)} {float(values.sel(group=group)):.3g}" for group in values.coords["group"].values]
    return f"At the end: {curve} of {', '.join(said)}."


def _free(folder: Path, stem: str) -> str:
    taken = {path.name for path in folder.glob("*")}
    return next(f"{stem}-{number}" for number in range(1, len(taken) + 2) if f"{stem}-{number}" not in taken)
