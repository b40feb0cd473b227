"""`tiltmeter forecast`: the preview of a table at once, or a rehearsal of its training, from the file of `train`."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping
from contextlib import redirect_stderr
from dataclasses import fields, replace
from io import StringIO
from pathlib import Path
from typing import Any

from tiltmeter.cli.kept_forecast import keep_forecast
from tiltmeter.cli.show import Summary, save_pictures
from tiltmeter.cli.table_file import Guesses, Task, previewed, read_task
from tiltmeter.cli.terminal import AskedCurve, Output, Switch, print_json, print_result
from tiltmeter.cli.train_config import TrainingFile, build_model
from tiltmeter.forecast.methods import Kernel, Linear, Preview, Rehearsal, Twin
from tiltmeter.progress import spell
from tiltmeter.recipe.recipe import Recipe
from tiltmeter.record import Trajectory

#: The words and the settings that belong to each.
METHODS: dict[str, type[Any]] = {
    "rehearsal": Rehearsal,
    "twin": Twin,
    "linear": Linear,
    "preview": Preview,
    "kernel": Kernel,
}
CRITERIA = ("worst", "worst-area", "gap", "gap-area")


def method_of(word: str | None, table: Mapping[str, Any]) -> Any:
    """The method, or None where it is to be chosen; a setting of the table names its method.

    >>> method_of(None, {"sample": 500})
    Kernel(sample=500, seed=0)
    >>> method_of("twin", {"share": 0.25}), method_of(None, {}) is None
    (Twin(share=0.25, count=1, seed=0), True)
    """
    word = word or table.get("method")
    given = {key: value for key, value in table.items() if key not in ("method", "budget")}
    if word is None and not given:
        return None
    if word is None:
        word = next((name for name in METHODS if set(given) <= set(_settings(name))), None)
    if word is None or word not in METHODS:
        what = f"no {word!r}" if word is not None else f"none has {' and '.join(given)} together"
        raise KeyError(f"--method: {what}. There are: {', '.join(METHODS)}.")
    strange = [key for key in given if key not in _settings(word)]
    if strange:
        known = ", ".join(_settings(word))
        raise ValueError(f"[forecast] {strange[0]} does not belong to {word!r}, which has {known}.")
    return METHODS[word](**given)


def _settings(method: str) -> list[str]:
    return [field.name for field in fields(METHODS[method])]


def forecast(
    config: Path,
    *,
    rehearse: Switch = False,
    copies: int | None = None,
    budget: float | None = None,
    method: str | None = None,
    seeds: int | None = None,
    best_weights: str | None = None,
    curve: AskedCurve = None,
    guesses: Guesses = Guesses(),
    output: Output = Output(),
) -> None:
    """Forecast who will be worse off, before training: a table at once by its preview, or by rehearsals.

    Parameters
    ----------
    config
        A table (.csv, .parquet, .feather), or a TOML file with tables [data], [model], [training], [evaluations] and,
        optionally, [forecast].
    rehearse
        Train copies of the network, as many as the budget pays for.
    copies
        Train this many copies (1 and more); says --rehearse.
    budget
        CPU seconds that the rehearsal may take (default: a minute, or 0.6 of the training where that is more).
    method
        rehearsal, twin, linear, preview or kernel; by default what the budget buys. Says --rehearse.
    seeds
        Rehearse this many initialisations of the network, not only that of the file's seed.
    best_weights
        Also find group weights: for the worst group's loss at the end (worst) or over training (worst-area), for the
        final gap (gap) or that over training (gap-area).
    """
    task = read_task(config, guesses)
    tables = task.tables
    if best_weights is not None and best_weights not in CRITERIA:
        raise KeyError(f"--best-weights: no {best_weights!r}. There are: {', '.join(CRITERIA)}.")
    if best_weights is not None and seeds is not None:
        raise ValueError("--best-weights finds weights for one network: leave out --seeds.")
    given = dict(tables["forecast"])
    if copies is not None:
        given = {"method": "rehearsal", "copies": copies}
    asked = (budget, method, seeds, best_weights, copies)
    if rehearse or given or any(one is not None for one in asked):
        _rehearse(task, given, budget, method, seeds, best_weights, curve, output)
    else:
        _preview(task, curve, output)


def _preview(task: Task, curve: str | None, output: Output) -> None:
    """Print the preview at once, and then what a rehearsal would cost."""
    from tiltmeter.record import save

    view = previewed(task)
    keep_forecast(Path(task.name), task.tables, view.run)
    if output.to is not None:
        save(view.run, output.to)
    output.say_saved()
    summary = Summary(view.run, curve)
    save_pictures(summary, output.save)
    if output.json:
        print_json(
            {
                **summary.to_json(),
                "claim": view.claim,
                "promise": view.run.origin.settings["promise"],
                "method": view.run.origin.settings["method"],
                "calculation": view.run.origin.settings["calculation"],
                "guessed": task.guessed,
            }
        )
        return
    print_result(str(view))
    for line in filter(None, (task.guessed,)):
        print(line)
    sys.stdout.flush()
    print(f"Next: tiltmeter forecast {task.name} --rehearse   trains copies of your network{_price(task)}")
    print(f"      tiltmeter why {task.name}   which property of the data makes the gap")
    print(f"      tiltmeter train {task.name} --to runs/first")


def _price(task: Task) -> str:
    """What one rehearsal costs, timed on a copy; nothing where torch is not installed or the network is refused."""
    try:
        from tiltmeter.forecast.task import forecast_task

        with redirect_stderr(StringIO()):  # how the table was read is said once
            file = TrainingFile.of(task.tables, task.folder)
        ahead = forecast_task(file.network(), file.data, file.held_out, file.ordered, file.watch)
        return f", about {spell(ahead.price.training)} each"
    except (ImportError, ValueError, TypeError, KeyError, MemoryError):
        return ""


def _rehearse(
    task: Task,
    given: Mapping[str, Any],
    budget: float | None,
    method: str | None,
    seeds: int | None,
    best_weights: str | None,
    curve: str | None,
    output: Output,
) -> None:
    """Train copies of the network, or whatever the budget buys, and print what they say."""
    tables = task.tables
    taken, to = method_of(method, given), output.to
    import torch  # noqa: F401  # said now rather than after the data are read

    if to is not None:
        from tiltmeter.forecast.rehearsal import check_folder

        check_folder(to)  # an error now, not after the work
    from tiltmeter.forecast.forecast import forecast as forecast_of

    file = TrainingFile.of(tables, task.folder)
    data, held_out, watch = file.data, file.held_out, file.watch
    budget = given.get("budget") if budget is None else budget
    lines: list[str] = []
    advice: Any = None
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always", UserWarning)
        if seeds is not None:

            def make() -> Any:
                return build_model(tables["model"], data, file.recipe.loss)

            trajectory = forecast_of(make, data, held_out, file.recipe, budget, taken, watch=watch, seeds=seeds, to=to)
        else:
            # The seed of the file orders the batches: the forecast is of the run that `train` would make of it.
            network = file.network()
            recipe = file.recipe if isinstance(taken, Rehearsal) and taken.copies > 1 else file.ordered
            trajectory = forecast_of(network, data, held_out, recipe, budget, taken, watch=watch, to=to)
            if best_weights is not None:
                advice = _advice(network, data, held_out, best_weights, file.recipe)
                lines.append(str(advice))
    for message in dict.fromkeys(str(one.message) for one in raised if one.category is UserWarning):
        print(message, file=sys.stderr)
    if seeds is None:
        keep_forecast(Path(task.name), tables, trajectory)
    output.say_saved()
    summary = Summary(trajectory, curve)
    save_pictures(summary, output.save)
    _tell(summary, [promise_line(trajectory), *lines], trajectory, advice, output.json)
    if not output.json:
        if task.guessed:
            print(task.guessed)
        print(f"Next: tiltmeter train {task.name} --to runs/first")


def promise_line(trajectory: Trajectory) -> str:
    """What the forecast promises; where it promises nothing, what would buy a promise."""
    settings: Mapping[str, Any] = trajectory.origin.settings
    promise = settings.get("promise")
    if isinstance(promise, Mapping):
        until = f"{promise['reliable_until']:,.0f}"
        return f"{promise['sentence']}; reliable up to step {until}."
    choice = settings.get("choice")
    why = f" {choice['why']}" if isinstance(choice, Mapping) and choice.get("why") else ""
    return f"Nothing is promised about the end.{why}"


def _advice(network: Any, data: Any, held_out: Any, word: str, recipe: Recipe) -> Any:
    from tiltmeter import criteria
    from tiltmeter.forecast.kernel.best_weights import best_weights
    from tiltmeter.forecast.kernel.network_kernels import tangent

    kinds = dict(zip(CRITERIA, ("WorstGroupLoss", "WorstGroupArea", "FinalGap", "GapArea"), strict=True))
    kernels = tangent(network, data, held_out)
    return best_weights(kernels, replace(recipe, weights=None), getattr(criteria, kinds[word])())


def _tell(summary: Summary, lines: list[str], trajectory: Trajectory, advice: Any, as_json: bool) -> None:
    nothing = trajectory.origin.settings.get("promise") is None
    if not as_json:
        if nothing:
            print(lines[0])
        summary.print(as_json=False)
        for line in lines[1:]:  # the promise is the second line of the headline
            print(line)
        return
    told = summary.to_json()
    for name in ("promise", "method", "choice"):
        told[name] = trajectory.origin.settings.get(name)
    if advice is not None:
        told["best_weights"] = {str(group): weight for group, weight in advice.weights.items()}
    told["said"] = lines
    print_json(told)
