"""track: send a run to an experiment tracker, through one small interface."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tiltmeter.export.scalars import check_whole_steps, plain_name, scalars
from tiltmeter.record import Trajectory


@dataclass(frozen=True)
class Tracker:
    """Where numbers go: `log` takes all values of a step by name. `safe` turns names into those that the program takes.

    >>> seen = []
    >>> Tracker("a list", lambda values, step: seen.append((step, dict(values)))).log({"loss/a": 0.5}, 3)
    >>> seen
    [(3, {'loss/a': 0.5})]

    Make one with `mlflow_tracker`, `wandb_tracker`, `trackio_tracker`, `aim_tracker` or `tensorboard_tracker`, or of a
    function of your own.
    """

    name: str
    log: Callable[[Mapping[str, float], int], Any]
    safe: Callable[[str], str] = str


def track(run: Trajectory, tracker: Tracker, *, after: int | None = None) -> int | None:
    """Send every value of a run, step by step, and return the last step sent (None: nothing was new).

    >>> from tiltmeter import every, predict, teacher_mixture, SGD
    >>> steps = predict(teacher_mixture(rho=0.8), SGD(lr=0.1), [1.0, 2.0], curves=("loss",)).on_clock("step", d=100)
    >>> track(steps, Tracker("the screen", lambda values, step: print(step, sorted(values))))
    100 ['loss/+', 'loss/-']
    200 ['loss/+', 'loss/-']
    200

    `after` leaves out the steps up to this one, so that a training can send what is new now and then: `sent =
    track(probe.trajectory(), tracker, after=sent)`. Trackers keep numbers, not their origin or the records of points:
    keep the run directory. Missing values are left out.
    """
    if not isinstance(run, Trajectory):
        raise TypeError(f"`run` should be a Trajectory, for example from `load`. Found {type(run).__name__}.")
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
    """Weights & Biases: `run` is what `wandb.init(mode="offline")` returns, online or not."""
    _check(run, "log", "what `wandb.init` returns")
    return Tracker("Weights & Biases", lambda values, step: run.log(dict(values), step=step))


def trackio_tracker(run: Any) -> Tracker:
    """Trackio: `run` is what `trackio.init` returns."""
    _check(run, "log", "what `trackio.init` returns")
    return Tracker("Trackio", lambda values, step: run.log(dict(values), step=step))


def mlflow_tracker(client: Any, run_id: str) -> Tracker:
    """MLflow: an `MlflowClient` and the id of a run (`run.info.run_id`). Signs that it refuses become `_`."""
    _check(client, "log_metric", "an `MlflowClient`")

    def log(values: Mapping[str, float], step: int) -> None:
        for name, value in values.items():
            client.log_metric(run_id, name, value, step=step)

    return Tracker("MLflow", log, plain_name)


def aim_tracker(run: Any) -> Tracker:
    """Aim: `run` is an `aim.Run`."""
    _check(run, "track", "an `aim.Run`")

    def log(values: Mapping[str, float], step: int) -> None:
        for name, value in values.items():
            run.track(value, name=name, step=step)

    return Tracker("Aim", log)


def tensorboard_tracker(writer: Any) -> Tracker:
    """TensorBoard: a writer with `add_scalar`, of torch, tensorboardX or tensorboard itself.

    Every line has its own chart; `to_tensorboard` puts the groups of a curve on one.
    """
    _check(writer, "add_scalar", "a SummaryWriter")

    def log(values: Mapping[str, float], step: int) -> None:
        for name, value in values.items():
            writer.add_scalar(name, value, step)

    return Tracker("TensorBoard", log, plain_name)


def _check(target: Any, method: str, what: str) -> None:
    if not callable(getattr(target, method, None)):
        raise TypeError(f"A tracker needs {what}. Found {type(target).__name__}, which has no `{method}`.")
