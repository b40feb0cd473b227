"""`tiltmeter forecast`: forecast the group curves of a training run, from the file of `tiltmeter train`."""

from __future__ import annotations

import json as json_text
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from types import NoneType
from typing import Any

from tiltmeter.cli.band_json import band_to_json
from tiltmeter.cli.flags import Curve, Json, Save, To
from tiltmeter.cli.forecast_route import route_of
from tiltmeter.cli.pictures import save_pictures
from tiltmeter.cli.summary import Summary
from tiltmeter.cli.train_config import build_data, build_model, build_network, build_when, read_config
from tiltmeter.forecast.bands.band_horizon import horizon
from tiltmeter.forecast.bands.forecast_band import calibrated_band
from tiltmeter.forecast.horizon import noted_horizon
from tiltmeter.forecast.route import Kernel
from tiltmeter.recipe.recipe import Recipe
from tiltmeter.recipe.table import recipe_from_table
from tiltmeter.recipe.watch import Watch
from tiltmeter.record import Trajectory
from tiltmeter.record import save as save_run
from tiltmeter.record.directory.disk import holds_run

CRITERIA = ("worst", "worst-area", "gap", "gap-area")


def forecast(
    config: Path,
    *,
    to: To = None,
    route: str | None = None,
    sample: int | None = None,
    real_steps: int | None = None,
    seeds: int | None = None,
    best_weights: str | None = None,
    curve: Curve = "loss",
    save: Save = (),
    json: Json = False,
) -> None:
    """Forecast who will lead, and when that will change, before training: same file and same network as `train`.

    Parameters
    ----------
    config
        A TOML file with tables [data], [model], [training], [looks] and, optionally, [forecast].
    route
        kernel, coordinates or twin; by default the best that the recipe allows and that costs little.
    sample
        Number of training points whose kernel is computed (default 2500).
    real_steps
        Allow this many real steps on a copy, to see how fast the network leaves its linearisation.
    seeds
        Forecast this many initialisations of the network, not only that of the file's seed.
    best_weights
        Also find group weights: for the worst group's loss at the end (worst) or over training (worst-area), for the
        final gap (gap) or that over training (gap-area).
    """
    tables = read_config(config)
    if best_weights is not None and best_weights not in CRITERIA:
        raise KeyError(f"--best-weights: no {best_weights!r}. There are: {', '.join(CRITERIA)}.")
    if best_weights is not None and seeds is not None:
        raise ValueError("--best-weights finds weights for one network: leave out --seeds.")
    flags = {name: value for name, value in (("sample", sample), ("real_steps", real_steps)) if value is not None}
    taken = route_of(route, tables["forecast"], flags)
    if best_weights is not None and not isinstance(taken, (Kernel, NoneType)):
        raise ValueError(f"--best-weights needs the kernel: leave out route {type(taken).__name__}.")
    import torch  # noqa: F401  # said now rather than after the data are read

    if to is not None:
        holds_run(to, resume=False)  # an error now, not after the work
    data, look = build_data(tables["data"], config.parent, tables["problem"])
    recipe = recipe_from_table(tables["training"], data.groups)
    watch = Watch(when=build_when(tables))
    said: list[str] = []
    advice: Any = None
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always", UserWarning)
        if seeds is not None:
            from tiltmeter.forecast.forecast import forecast as look_ahead

            def make() -> Any:
                return build_model(tables["model"], data, recipe.loss)

            trajectory = look_ahead(make, data, look, recipe, watch=watch, route=taken, seeds=seeds)
        else:
            network = build_network(tables, data, recipe.loss)
            if taken is None:
                taken = Kernel() if best_weights is not None else _chosen(network, data, look, recipe)
            if isinstance(taken, Kernel):
                trajectory, kernels = _by_kernel(network, data, look, recipe, taken, watch)
                said.append(_why(kernels, trajectory, recipe))
                if best_weights is not None:
                    advice = _advice(kernels, best_weights, recipe)
                    said.append(str(advice))
            else:
                trajectory = _of_this_run(network, data, look, recipe, taken, watch, tables)
    for message in dict.fromkeys(str(one.message) for one in raised if one.category is UserWarning):
        print(message, file=sys.stderr)
    if to is not None:
        save_run(trajectory, to)
        print(f"Saved to {to}", file=sys.stderr)
    summary = Summary(trajectory, curve)
    save_pictures(summary, save)
    band = None if calibrated_band(trajectory, curve) is None else horizon(trajectory, curve=curve)
    trust = [str(found) for found in (band, noted_horizon(trajectory)) if found is not None]
    _tell(summary, [*trust, *said], trajectory, advice, json)


def _chosen(network: Any, data: Any, look: Any, recipe: Recipe) -> Any:
    """The route that suits the recipe, told with its cost."""
    from tiltmeter.forecast.choice import choose

    choice = choose(network, data, look, recipe)
    print(f"Route {choice}", file=sys.stderr)
    return choice.route


def _by_kernel(
    network: Any, data: Any, look: Any, recipe: Recipe, route: Kernel, watch: Watch
) -> tuple[Trajectory, Any]:
    """The forecast, and the kernels to ask more of."""
    from tiltmeter.forecast.inputs import checked_real_steps
    from tiltmeter.forecast.kernel.network_kernels import tangent
    from tiltmeter.forecast.kernel.question import check_before_work

    used = min(route.sample, len(data))
    print(f"Forecasting from {used} of {len(data)} points, for {len(look)} held-out points ...", file=sys.stderr)
    check_before_work(recipe, data)
    checked_real_steps(route.real_steps, recipe.total_steps(len(data)))
    kernels = tangent(network, data, look, sample=route.sample)
    return kernels.forecast(recipe, watch=watch, real_steps=route.real_steps), kernels


def _of_this_run(
    network: Any, data: Any, look: Any, recipe: Recipe, route: Any, watch: Watch, tables: Any
) -> Trajectory:
    """The forecast of the run that `train` would make of this file, whose seed orders its batches."""
    from tiltmeter.forecast.forecast import forecast as look_ahead

    seed = tables["training"].get("seed", 0)
    own = replace(recipe, order=seed) if recipe.order is None else recipe
    return look_ahead(network, data, look, own, watch=watch, route=route)


def _why(kernels: Any, trajectory: Trajectory, recipe: Recipe) -> str:
    """Which group's task is learned fast, at the first crossing or at the end."""
    from tiltmeter.analysis.crossings import crossings

    found = crossings(trajectory)
    steps: Any = trajectory.origin.settings["steps"]
    return str(kernels.why(recipe, step=max(1, round(found[0].time)) if found else int(steps)))


def _advice(kernels: Any, word: str, recipe: Recipe) -> Any:
    from tiltmeter.forecast.best_weights import best_weights
    from tiltmeter.population import criteria

    kinds = dict(zip(CRITERIA, ("WorstGroupLoss", "WorstGroupArea", "FinalGap", "GapArea"), strict=True))
    return best_weights(kernels, replace(recipe, weights=None), getattr(criteria, kinds[word])())


def _tell(summary: Summary, said: list[str], trajectory: Trajectory, advice: Any, as_json: bool) -> None:
    if not as_json:
        summary.print(as_json=False)
        for line in said:
            print(line)
        return
    found = summary.to_json()
    found["horizon"] = trajectory.origin.settings.get("horizon")
    found["band"] = band_to_json(trajectory, summary.curve)
    if advice is not None:
        found["best_weights"] = {str(group): weight for group, weight in advice.weights.items()}
    found["said"] = said
    print(json_text.dumps(found, indent=2, allow_nan=False))
