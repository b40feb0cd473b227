"""Trackers: a run as TensorBoard events, or sent to an experiment tracker through one small interface."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from tiltmeter.arguments import A_RUN, checked_kind
from tiltmeter.export.tables import plain_label
from tiltmeter.record import Trajectory


def lines_over_time(curve: xr.DataArray) -> Iterator[tuple[tuple[str, ...], xr.DataArray]]:
    """Every line over time of a curve, with a word for its place in each other dimension.

    Groups have their own names; other dimensions include the name of the dimension: ("a", "seed=3").
    """
    others = [dim for dim in curve.dims if dim != "time"]
    for place in np.ndindex(*(curve.sizes[dim] for dim in others)):
        where = dict(zip(others, place, strict=True))
        labels = {
            dim: plain_label(curve.coords[dim].values[i]) if dim in curve.coords else i for dim, i in where.items()
        }
        words = [str(label) if dim in ("group", "pair") else f"{dim}={label}" for dim, label in labels.items()]
        yield tuple(words), curve.isel(where)


def check_whole_steps(run: Trajectory, who: str) -> None:
    """Refuse fractional times, which trackers would round."""
    for name, curve in run.items():
        times = curve.coords["time"].values
        if not np.array_equal(times, np.round(times)):
            raise ValueError(
                f"{who} counts whole steps. Found fractions in the times of {name!r} on clock {run.clock!r}: "
                'convert with `on_clock("step", ...)`, or export to CSV or Parquet.'
            )


def scalars(run: Trajectory, safe: Callable[[str], str] = str) -> Iterator[tuple[int, dict[str, float]]]:
    """All finite values of each step by name, in the order of steps.

    >>> from tiltmeter.record import Origin
    >>> loss = xr.DataArray([[1.0, 2.0]], dims=("time", "group"), coords={"time": [5], "group": ["a", "b"]})
    >>> list(scalars(Trajectory({"loss": loss}, "step", Origin("example"))))
    [(5, {'loss/a': 1.0, 'loss/b': 2.0})]

    Names that `safe` makes equal get a number, so that no two lines are mixed.
    """
    taken: set[str] = set()
    found: dict[int, dict[str, float]] = {}
    for curve_name, curve in run.items():
        for words, line in lines_over_time(curve):
            name = unlike(safe("/".join([curve_name, *(word.replace("/", "_") for word in words)])), taken)
            for time, value in zip(line.coords["time"].values, line.values, strict=True):
                if np.isfinite(value):
                    found.setdefault(int(time), {})[name] = float(value)
    yield from sorted(found.items())


def unlike(name: str, taken: set[str]) -> str:
    """The name, or one with a number if it is taken already.

    >>> taken = {"a"}
    >>> unlike("a", taken), unlike("a", taken), unlike("b", taken)
    ('a_2', 'a_3', 'b')
    """
    found, number = name, 2
    while found in taken:
        found, number = f"{name}_{number}", number + 1
    taken.add(found)
    return found


def plain_name(name: str) -> str:
    """Letters, digits, space and . - _ / only, which every tracker takes."""
    return re.sub(r"[^\w\-. /]", "_", name, flags=re.ASCII)[:250]


def to_tensorboard(run: Trajectory, folder: str | os.PathLike[str]) -> Path:
    """Write one TensorBoard run per group (and seed, or any other dimension), with one scalar per curve.

    TensorBoard draws equal names of several runs on one chart, so `loss` shows all groups together. Missing values are
    left out. TensorBoard counts whole steps; a run with fractional times raises an error.

    Args:
        run: Run whose curves are written.
        folder: Folder to write.
    """
    checked_kind("run", run, Trajectory, A_RUN)
    place = Path(folder)
    if place.exists() and (not place.is_dir() or any(place.iterdir())):
        raise FileExistsError(f"{place} already exists and is never overwritten. Choose a new name.")
    check_whole_steps(run, "TensorBoard")
    try:
        from tensorboard.summary import Writer
    except ImportError:
        raise ImportError("`to_tensorboard` needs tensorboard: pip install 'tiltmeter[export]'.") from None
    writers: dict[tuple[str, ...], Writer] = {}
    taken: set[str] = set()
    try:
        for name, curve in run.items():
            for label, line in lines_over_time(curve):
                if label not in writers:
                    folder_name = unlike("/".join(map(_folder_name, label)) or "all", taken)
                    writers[label] = Writer(str(place / folder_name))
                for step, value in zip(line.coords["time"].values, line.values, strict=True):
                    if np.isfinite(value):
                        writers[label].add_scalar(name, float(value), int(step))
    finally:
        for writer in writers.values():
            writer.close()
    return place


def _folder_name(word: str) -> str:
    """A word that is a valid folder name on every system."""
    safe = re.sub(r'[\x00-\x1f<>:"/\\|?*]', "_", word).rstrip(" .")
    return safe or "_"


@dataclass(frozen=True)
class Tracker:
    """Where numbers go: `log` takes all values of a step by name. `safe` turns names into those that the program takes.

    >>> seen = []
    >>> Tracker("a list", lambda values, step: seen.append((step, dict(values)))).log({"loss/a": 0.5}, 3)
    >>> seen
    [(3, {'loss/a': 0.5})]

    Make one with `mlflow_tracker`, `wandb_tracker`, `trackio_tracker`, `aim_tracker` or `tensorboard_tracker`, or of a
    function of your own.

    Args:
        name: Name of the program, for messages.
        log: Takes all values of a step by name, and the step.
        safe: Turns a name into one that the program takes.
    """

    name: str
    log: Callable[[Mapping[str, float], int], Any]
    safe: Callable[[str], str] = str


def track(run: Trajectory, tracker: Tracker, *, after: int | None = None) -> int | None:
    """Send every value of a run, step by step, and return the last step sent (None: nothing was new).

    >>> from tiltmeter import predict, teacher_mixture, SGD

    >>> from tiltmeter.record import every
    >>> steps = predict(teacher_mixture(rho=0.8), SGD(lr=0.1), [1.0, 2.0], curves=("loss",)).on_clock("step", d=100)
    >>> track(steps, Tracker("the screen", lambda values, step: print(step, sorted(values))))
    100 ['loss/+', 'loss/-']
    200 ['loss/+', 'loss/-']
    200

    A training can send what is new now and then: `sent = track(probe.trajectory(), tracker, after=sent)`. Trackers keep
    numbers, not their origin or the records of points: keep the run directory. Missing values are left out.

    Args:
        run: Run whose values are sent.
        tracker: Where they are sent.
        after: Leaves out the steps up to this one; None: sends all.
    """
    checked_kind("run", run, Trajectory, A_RUN)
    if not isinstance(tracker, Tracker):
        raise TypeError(f"`tracker` should be a Tracker, as export.wandb_tracker(run). Found {type(tracker).__name__}.")
    check_whole_steps(run, tracker.name)
    last = None
    for step, values in scalars(run, tracker.safe):
        if after is None or step > after:
            tracker.log(values, step)
            last = step
    return last


def wandb_tracker(run: Any) -> Tracker:
    """Weights & Biases: `run` is what `wandb.init(mode="offline")` returns, online or not.

    Args:
        run: What `wandb.init(mode="offline")` returns, online or not.
    """
    _check(run, "log", "what `wandb.init` returns")
    return Tracker("Weights & Biases", lambda values, step: run.log(dict(values), step=step))


def trackio_tracker(run: Any) -> Tracker:
    """Trackio: `run` is what `trackio.init` returns.

    Args:
        run: What `trackio.init` returns.
    """
    _check(run, "log", "what `trackio.init` returns")
    return Tracker("Trackio", lambda values, step: run.log(dict(values), step=step))


def mlflow_tracker(client: Any, run_id: str) -> Tracker:
    """MLflow: an `MlflowClient` and the id of a run (`run.info.run_id`). Signs that it refuses become `_`.

    Args:
        client: An `MlflowClient`.
        run_id: Id of a run of it, `run.info.run_id`.
    """
    _check(client, "log_metric", "an `MlflowClient`")

    def log(values: Mapping[str, float], step: int) -> None:
        for name, value in values.items():
            client.log_metric(run_id, name, value, step=step)

    return Tracker("MLflow", log, plain_name)


def aim_tracker(run: Any) -> Tracker:
    """Aim: `run` is an `aim.Run`.

    Args:
        run: An `aim.Run`.
    """
    _check(run, "track", "an `aim.Run`")

    def log(values: Mapping[str, float], step: int) -> None:
        for name, value in values.items():
            run.track(value, name=name, step=step)

    return Tracker("Aim", log)


def tensorboard_tracker(writer: Any) -> Tracker:
    """TensorBoard: a writer with `add_scalar`, of torch, tensorboardX or tensorboard itself.

    Every line has its own chart; `to_tensorboard` puts the groups of a curve on one.

    Args:
        writer: Has a method `add_scalar`: of torch, tensorboardX or tensorboard itself.
    """
    _check(writer, "add_scalar", "a SummaryWriter")

    def log(values: Mapping[str, float], step: int) -> None:
        for name, value in values.items():
            writer.add_scalar(name, value, step)

    return Tracker("TensorBoard", log, plain_name)


def _check(target: Any, method: str, what: str) -> None:
    if not callable(getattr(target, method, None)):
        raise TypeError(f"A tracker needs {what}. Found {type(target).__name__}, which has no `{method}`.")
