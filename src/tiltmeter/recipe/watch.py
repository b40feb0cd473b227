"""Watch: what is looked at during a training, and when. It never changes the training."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from tiltmeter.record import When, log_spaced


@dataclass(frozen=True)
class Watch:
    """What a probe reads and when; `Probe`, `train`, `ensemble` and `forecast` share it.

    >>> from tiltmeter.record import every
    >>> Watch(when=every(100)).when
    every(100)

    Without points, `leaders` uses standard errors, and its limits are wider. Of two labels the entropy follows from the
    loss.

    Args:
        when: Steps of the evaluations, such as `tm.record.every(100)`.
        measures: Further curves: functions f(y_true, y_score), `GroupMetric`s, or functions of a `Snapshot`.
        decide: Turns scores into decisions; None: the positive label above its midpoint, or the largest output.
        read: Finds the scores in what the model returns; None: the model returns scores.
        points: Whether loss and decision of every point are kept, at up to 256 evaluations, for the tests of `leaders`.
        sharded: Whether the ranks of a distributed training look at different parts of the held-out points.
        entropy: Whether the entropy of the prediction is kept too where there are several classes, for `discover`.
    """

    when: When = log_spaced(20)
    measures: tuple[Callable[..., Any], ...] = ()
    decide: Callable[[Any], Any] | None = None
    read: Callable[[Any], Any] | None = None
    points: bool = True
    sharded: bool = False
    entropy: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.when, When):
            raise TypeError(
                f"`when` should choose steps, as log_spaced(20) or every(100). Found {type(self.when).__name__}."
            )
        for name in ("points", "sharded", "entropy"):
            if not isinstance(getattr(self, name), bool):
                raise TypeError(f"`{name}` should be True or False. Found {name} = {getattr(self, name)!r}.")
        given: object = self.measures
        if isinstance(given, str) or not isinstance(given, Iterable) or getattr(given, "ndim", 1) == 0:
            raise TypeError(f"`measures` should be a tuple of measures. Found {type(self.measures).__name__}.")
        object.__setattr__(self, "measures", tuple(self.measures))
        for name in ("decide", "read"):
            value = getattr(self, name)
            if value is not None and not callable(value):
                raise TypeError(f"`{name}` should be a function. Found {type(value).__name__}.")


def checked_watch(watch: object, sharded: bool = False) -> Watch:
    """Return the watch, or raise an error that shows what one looks like; `sharded` says who can evaluate in parts."""
    if isinstance(watch, Watch):
        if watch.sharded and not sharded:
            raise ValueError(
                "`watch` should have sharded=False here: only a Probe in your own loop evaluates in parts."
            )
        return watch
    hint = f": pass tm.Watch(when={watch!r})" if isinstance(watch, When) else ""
    raise TypeError(
        f"`watch` should be a Watch, as tm.Watch(when=tm.record.every(100)). Found {type(watch).__name__}{hint}."
    )
