"""Trackers: a run as TensorBoard events, or sent to an experiment tracker through one small interface."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from tiltmeter.arguments import A_RUN, checked_kind
from tiltmeter.export.tables import needed, plain_label
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


def to_tensorboard(run: Trajectory, place: Path) -> None:
    """One TensorBoard run per group (and seed, or any other dimension), with one scalar per curve.

    TensorBoard draws equal names of several runs on one chart. Missing values are left out.
    """
    if place.exists() and (not place.is_dir() or any(place.iterdir())):
        raise FileExistsError(f"{place} already exists and is never overwritten. Choose a new name.")
    check_whole_steps(run, "TensorBoard")
    sentence = "TensorBoard events need tensorboard: pip install 'tiltmeter[export]'."
    summary = needed("tensorboard.summary", sentence)
    writers: dict[tuple[str, ...], Any] = {}
    taken: set[str] = set()
    try:
        for name, curve in run.items():
            for label, line in lines_over_time(curve):
                if label not in writers:
                    folder_name = unlike("/".join(map(_folder_name, label)) or "all", taken)
                    writers[label] = summary.Writer(str(place / folder_name))
                for step, value in zip(line.coords["time"].values, line.values, strict=True):
                    if np.isfinite(value):
                        writers[label].add_scalar(name, float(value), int(step))
    finally:
        for writer in writers.values():
            writer.close()


def _folder_name(word: str) -> str:
    """A word that is a valid folder name on every system."""
    safe = re.sub(r'[\x00-\x1f<>:"/\\|?*]', "_", word).rstrip(" .")
    return safe or "_"


#: Takes all values of a step by name, and the step.
Log = Callable[[Mapping[str, float], int], Any]


def track(run: Trajectory, to: Any, *, after: int | None = None) -> int | None:
    """Send every value of a run to an experiment tracker, step by step; return the last step sent (None: none).

    >>> from tiltmeter import predict, teacher_mixture, SGD
    >>> steps = predict(teacher_mixture(rho=0.8), SGD(lr=0.1), [1.0, 2.0], curves=("loss",)).on_clock("step", d=100)
    >>> track(steps, lambda values, step: print(step, sorted(values)))
    100 ['loss/+', 'loss/-']
    200 ['loss/+', 'loss/-']
    200

    A training can send what is new now and then: `sent = track(probe.trajectory(), to, after=sent)`. Trackers keep
    numbers, not their origin or the records of points: keep the run directory. Missing values are left out. Signs in
    names that MLflow or TensorBoard refuse become `_`.

    Args:
        run: Run whose values are sent.
        to: What `wandb.init` or `trackio.init` returns, an `aim.Run`, a `SummaryWriter`, a pair `(MlflowClient(),
            run_id)`, or a function of the values by name and the step.
        after: Leaves out the steps up to this one; None: sends all.
    """
    checked_kind("run", run, Trajectory, A_RUN)
    name, log, safe = _tracker(to)
    check_whole_steps(run, name)
    last = None
    for step, values in scalars(run, safe):
        if after is None or step > after:
            log(values, step)
            last = step
    return last


def _tracker(to: Any) -> tuple[str, Log, Callable[[str], str]]:
    """The name of a tracker, how it takes the values of a step, and how names become those that it takes."""
    if isinstance(to, tuple) and len(to) == 2 and _has(to[0], "log_metric"):
        client, run_id = to
        return "MLflow", _each(lambda name, value, step: client.log_metric(run_id, name, value, step=step)), plain_name
    if _has(to, "track"):
        return "Aim", _each(lambda name, value, step: to.track(value, name=name, step=step)), str
    if _has(to, "add_scalar"):
        return "TensorBoard", _each(to.add_scalar), plain_name
    if _has(to, "log"):
        program = type(to).__module__.partition(".")[0]
        return program, lambda values, step: to.log(dict(values), step=step), str
    if callable(to) and not isinstance(to, type):
        return "A tracker", to, str
    raise TypeError(
        "`to` should be what wandb.init or trackio.init returns, an aim.Run, a SummaryWriter, (MlflowClient(), run_id) "
        f"or a function of values and step. Found {type(to).__name__}."
    )


def _has(target: Any, method: str) -> bool:
    return callable(getattr(target, method, None))


def _each(send: Callable[[str, float, int], Any]) -> Log:
    """Send the values of a step one after another."""

    def log(values: Mapping[str, float], step: int) -> None:
        for name, value in values.items():
            send(name, value, step)

    return log
