"""`tiltmeter forecast`: the group curves of a training that is still to come, from the file of `tiltmeter train`."""

from __future__ import annotations

import json as json_text
import sys
import warnings
from pathlib import Path
from typing import Any

from tiltmeter.cli.flags import Curve, Json, Save, To
from tiltmeter.cli.pictures import save_pictures
from tiltmeter.cli.summary import Summary
from tiltmeter.cli.train_config import build_data, build_loss, build_model, options, read_config
from tiltmeter.forecast.horizon import noted_horizon
from tiltmeter.record import Trajectory
from tiltmeter.record import save as save_run
from tiltmeter.record.directory.disk import holds_run

CRITERIA = ("worst", "worst-area", "gap", "gap-area")


def forecast(
    config: Path,
    *,
    to: To = None,
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
        A TOML file with tables [data], [model], [training], [looks] and, if wanted, [forecast].
    sample
        Points of the training data whose kernel is computed; 2500 if not said.
    real_steps
        Allow so many real steps on a copy, to see how fast the network leaves its linearisation.
    seeds
        Forecast so many initialisations of the network, not only that of the file's seed.
    best_weights
        Also find group weights: for the worst group's loss at the end (worst) or over training (worst-area), for the
        final gap (gap) or that over training (gap-area).
    """
    tables = read_config(config)
    if best_weights is not None and best_weights not in CRITERIA:
        raise KeyError(f"--best-weights: no {best_weights!r}. There are: {', '.join(CRITERIA)}.")
    if best_weights is not None and seeds is not None:
        raise ValueError("--best-weights finds weights for one network: leave out --seeds.")

    from tiltmeter.forecast.forecast import check_question
    from tiltmeter.forecast.forecast import forecast as look_ahead
    from tiltmeter.forecast.network_kernels import tangent

    if to is not None:
        holds_run(to, resume=False)  # refused now rather than after the work
    data, look = build_data(tables["data"], config.parent)
    model, chosen = _network(tables, data), _chosen(tables, data)
    given = tables["forecast"]
    points = given.get("sample", 2500) if sample is None else sample
    real = given.get("real_steps", 0) if real_steps is None else real_steps
    used = min(points, len(data)) if isinstance(points, int) else points
    print(f"Forecasting from {used} of {len(data)} points, looking at {len(look)} ...", file=sys.stderr)
    said: list[str] = []
    advice: Any = None
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always", UserWarning)
        if seeds is not None:

            def make() -> Any:
                return _made(tables, data)

            trajectory = look_ahead(make, data, look, sample=points, real_steps=real, seeds=seeds, **chosen)
        else:
            check_question(data, real_steps=real, **chosen)
            kernels = tangent(model, data, look, sample=points)
            trajectory = kernels.forecast(real_steps=real, **chosen)
            said.append(_why(kernels, trajectory, chosen))
            if best_weights is not None:
                advice = _advice(kernels, best_weights, chosen)
                said.append(str(advice))
    for message in dict.fromkeys(str(one.message) for one in raised if one.category is UserWarning):
        print(message, file=sys.stderr)
    if to is not None:
        save_run(trajectory, to)
        print(f"Saved to {to}", file=sys.stderr)
    summary = Summary(trajectory, curve)
    save_pictures(summary, save)
    _tell(summary, [str(noted_horizon(trajectory)), *said], trajectory, advice, json)


def _network(tables: dict[str, dict[str, Any]], data: Any) -> Any:
    import torch

    torch.manual_seed(tables["training"].get("seed", 0))
    return _made(tables, data)


def _made(tables: dict[str, dict[str, Any]], data: Any) -> Any:
    return build_model(tables["model"], data, build_loss(tables["training"]))


def _chosen(tables: dict[str, dict[str, Any]], data: Any) -> dict[str, Any]:
    """What the forecast takes, as `train` would take it from the same file."""
    from tiltmeter.losses import CrossEntropy, Logistic, Square
    from tiltmeter.training.run_settings import chosen_sampling, total_steps

    given = tables["training"]
    word = given.get("optimizer", "sgd")
    if word != "sgd":
        raise ValueError(f"A forecast knows SGD, with momentum and weight decay. Found optimizer = {word!r}.")
    if "lr" not in given:
        raise KeyError("[training] needs `lr`, the learning rate.")
    found = options(tables, data)
    batch = found.get("batch", 32)
    sampling = chosen_sampling(None, found.get("proportions"))
    loss = build_loss(given)
    if loss is None:
        several = data.y.dtype.kind in "iub" and len(data.labels) > 2
        loss = CrossEntropy() if several else Logistic() if len(data.labels) <= 2 else Square()
    return {
        "lr": given["lr"],
        "steps": total_steps(found.get("steps"), found.get("epochs"), sampling, data, batch),
        "batch": batch,
        "loss": loss,
        "when": found["when"],
        **{name: found[name] for name in ("weights", "proportions") if name in found},
        **{name: given[name] for name in ("momentum", "weight_decay") if name in given},
    }


def _why(kernels: Any, trajectory: Trajectory, chosen: dict[str, Any]) -> str:
    """Whose task is learned fast, at the first crossing or at the end."""
    from tiltmeter.analysis.crossings import crossings

    found = crossings(trajectory)
    step = max(1, round(found[0].time)) if found else chosen["steps"]
    names = ("lr", "weights", "proportions", "momentum")
    return str(kernels.why(step=step, **{name: chosen[name] for name in names if name in chosen}))


def _advice(kernels: Any, word: str, chosen: dict[str, Any]) -> Any:
    from tiltmeter.forecast.best_weights import best_weights
    from tiltmeter.population import criteria

    kinds = dict(zip(CRITERIA, ("WorstGroupLoss", "WorstGroupArea", "FinalGap", "GapArea"), strict=True))
    names = ("lr", "steps", "loss", "proportions", "momentum", "weight_decay")
    return best_weights(
        kernels,
        criterion=getattr(criteria, kinds[word])(),
        **{name: chosen[name] for name in names if name in chosen},
    )


def _tell(summary: Summary, said: list[str], trajectory: Trajectory, advice: Any, as_json: bool) -> None:
    if not as_json:
        summary.print(as_json=False)
        for line in said:
            print(line)
        return
    found = summary.to_json()
    found["horizon"] = trajectory.origin.settings.get("horizon")
    if advice is not None:
        found["best_weights"] = {str(group): weight for group, weight in advice.weights.items()}
    found["said"] = said
    print(json_text.dumps(found, indent=2, allow_nan=False))
