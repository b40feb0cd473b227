"""Schedules: numbers that change during training, as values. A schedule is any object called with a time."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeAlias

import numpy as np

from tiltmeter.record.labelled import JSON

__all__ = ["Cosine", "PowerDecay", "Steps", "Then", "Warmup", "in_turn"]


Schedule: TypeAlias = Callable[[float], float]


@dataclass(frozen=True)
class PowerDecay:
    """initial / (1 + t / scale)^power: the classical decay of a learning rate.

    >>> PowerDecay(initial=0.5, scale=4.0)(4.0)
    0.25

    Args:
        initial: Value at t = 0.
        scale: Time after which the decay sets in.
        power: Exponent of the decay.
    """

    initial: float
    scale: float
    power: float = 1.0

    def __post_init__(self) -> None:
        _positive(self, "initial", "scale")
        if not self.power >= 0:
            raise ValueError(f"`power` should not be negative. Found power = {self.power}.")

    def __call__(self, t: float) -> float:
        return float(self.initial * (1.0 + t / self.scale) ** -self.power)


@dataclass(frozen=True)
class Cosine:
    """Half a cosine from `initial` at t = 0 to `final` at `duration`, then constant.

    >>> Cosine(initial=0.4, duration=10.0)(5.0)
    0.2

    Args:
        initial: Value at t = 0.
        duration: Time of the fall.
        final: Value from then on.
    """

    initial: float
    duration: float
    final: float = 0.0

    def __post_init__(self) -> None:
        _positive(self, "initial", "duration")
        if not self.final >= 0:
            raise ValueError(f"`final` should not be negative. Found final = {self.final}.")

    @property
    def breaks(self) -> tuple[float, ...]:
        return (self.duration,)

    def __call__(self, t: float) -> float:
        phase = min(t / self.duration, 1.0)
        return float(self.final + (self.initial - self.final) * 0.5 * (1.0 + np.cos(np.pi * phase)))


@dataclass(frozen=True)
class Warmup:
    """Linear rise from zero to `peak` over `duration`, then constant.

    >>> Warmup(peak=0.4, duration=10.0)(5.0)
    0.2

    Args:
        peak: Value after the rise.
        duration: Time of the rise.
    """

    peak: float
    duration: float

    def __post_init__(self) -> None:
        _positive(self, "peak", "duration")

    @property
    def breaks(self) -> tuple[float, ...]:
        return (self.duration,)

    def __call__(self, t: float) -> float:
        return float(self.peak * min(t / self.duration, 1.0))


@dataclass(frozen=True)
class Steps:
    """Piecewise constant: `values[i]` from `starts[i]` on; the first start is 0.

    >>> drop = Steps(starts=(0.0, 10.0), values=(0.4, 0.1))
    >>> drop(9.99), drop(10.0)
    (0.4, 0.1)

    Args:
        starts: Times at which values change; the first is 0.
        values: Value from each of these times on.
    """

    starts: tuple[float, ...]
    values: tuple[float, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "starts", tuple(float(s) for s in self.starts))
        object.__setattr__(self, "values", tuple(float(v) for v in self.values))
        if len(self.starts) != len(self.values) or not self.starts:
            raise ValueError(
                f"`starts` and `values` should have one entry per step. "
                f"Found {len(self.starts)} starts and {len(self.values)} values."
            )
        if self.starts[0] != 0.0 or any(b <= a for a, b in zip(self.starts, self.starts[1:], strict=False)):
            raise ValueError(f"`starts` should begin at 0 and increase. Found starts = {self.starts}.")
        if any(not v >= 0 for v in self.values):
            raise ValueError(f"`values` should not be negative. Found values = {self.values}.")

    @property
    def breaks(self) -> tuple[float, ...]:
        return self.starts[1:]

    def __call__(self, t: float) -> float:
        return self.values[int(np.searchsorted(self.starts, t, side="right")) - 1]


def in_turn(durations: Mapping[Hashable, float]) -> dict[Hashable, Steps]:
    """Proportions that draw one group at a time, in this order and for these times; the last group to the end.

    >>> order = in_turn({"+": 10.0, "-": 5.0})
    >>> [order[group](4.0) for group in "+-"], [order[group](12.0) for group in "+-"]
    ([1.0, 0.0], [0.0, 1.0])

    Args:
        durations: How long each group is drawn alone, in this order; the last one to the end.
    """
    if not isinstance(durations, Mapping) or len(durations) < 2:
        raise ValueError(f"`durations` should map two groups or more to times, in order. Found {durations!r}.")
    for group, duration in durations.items():
        if not (np.isscalar(duration) and 0 < duration < np.inf):  # type: ignore[operator]
            raise ValueError(f"`durations[{group!r}]` should be a positive number. Found {duration}.")
    starts = np.concatenate([[0.0], np.cumsum(list(durations.values()))[:-1]])
    return {group: Steps(tuple(starts), tuple(float(other == group) for other in durations)) for group in durations}


#: Our own schedules by name.
@dataclass(frozen=True)
class Then:
    """`first` up to the time `at`, `rest` from there on, with its own time starting at 0: a warm-up and a cosine.

    >>> warm = Then(Warmup(peak=0.4, duration=10.0), at=10.0, rest=Cosine(initial=0.4, duration=100.0))
    >>> warm(5.0), warm(10.0), warm(60.0)
    (0.2, 0.4, 0.2)

    Args:
        first: Schedule up to the time `at`.
        at: When the second schedule takes over.
        rest: Schedule from there on, with its time starting at 0.
    """

    first: Schedule
    at: float
    rest: Schedule

    def __post_init__(self) -> None:
        _positive(self, "at")
        for name in ("first", "rest"):
            if not callable(getattr(self, name)):
                found = type(getattr(self, name)).__name__
                raise TypeError(f"`{name}` should be a schedule, as Warmup(0.1, 100). Found {found}.")

    @property
    def breaks(self) -> tuple[float, ...]:
        before = tuple(time for time in breaks_of(self.first) if time < self.at)
        return (*before, self.at, *(self.at + time for time in breaks_of(self.rest)))

    def __call__(self, t: float) -> float:
        return float(self.first(t) if t < self.at else self.rest(t - self.at))


SCHEDULES: dict[str, Callable[..., Schedule]] = {
    kind.__name__: kind for kind in (PowerDecay, Cosine, Warmup, Steps, Then)
}


def breaks_of(schedule: object) -> tuple[float, ...]:
    """Times at which a schedule is not smooth, so that an integrator can stop and start again there."""
    return tuple(getattr(schedule, "breaks", ()))


def value_at(schedule: Schedule, time: float, name: str, clock: str = "t") -> float:
    """What a schedule gives at a time, which has to be a number that is not negative.

    >>> value_at(lambda t: 1.0 - t, 3.0, "lr")
    Traceback (most recent call last):
    ...
    ValueError: The schedule of `lr` should give non-negative numbers. Found -2.0 at t = 3.
    """
    value = schedule(time)
    if not (np.isfinite(value) and value >= 0):
        raise ValueError(
            f"The schedule of `{name}` should give non-negative numbers. Found {value} at {clock} = {time:.4g}."
        )
    return float(value)


def schedule_to_json(schedule: object) -> JSON:
    """Our own schedules by name and fields; a user's callable by its repr, which cannot be rebuilt."""
    if type(schedule) in SCHEDULES.values():
        values = {one.name: getattr(schedule, one.name) for one in fields(schedule)}  # type: ignore[arg-type]
        return {"schedule": type(schedule).__name__, **{name: _field_to_json(value) for name, value in values.items()}}
    return {"schedule": "callable", "repr": getattr(schedule, "__qualname__", repr(schedule))}


def _field_to_json(value: Any) -> JSON:
    if isinstance(value, tuple):
        return list(value)
    return schedule_to_json(value) if callable(value) else value


def schedule_from_json(value: Mapping[str, Any]) -> Schedule:
    """The schedule that `schedule_to_json` wrote.

    >>> warm = Then(Warmup(0.4, 10.0), 10.0, Cosine(0.4, 100.0))
    >>> schedule_from_json(schedule_to_json(warm)) == warm
    True
    """
    given = dict(value)
    kind = given.pop("schedule")
    if kind not in SCHEDULES:
        raise ValueError(f"The schedule {given.get('repr', kind)} was a function and cannot be rebuilt from a file.")
    return SCHEDULES[kind](**{name: _field_from_json(part) for name, part in given.items()})


def _field_from_json(value: Any) -> Any:
    if isinstance(value, Mapping):
        return schedule_from_json(value)
    return tuple(value) if isinstance(value, list) else value


def schedule_from_table(given: Mapping[str, Any], where: str) -> Schedule:
    """Read the one form of a schedule in a TOML file: its class name as `schedule`, and its fields.

    >>> schedule_from_table({"schedule": "Cosine", "initial": 0.1, "duration": 1000}, "[training] lr")
    Cosine(initial=0.1, duration=1000, final=0.0)
    """
    kind = given.get("schedule")
    if kind is None and "kind" in given:
        raise KeyError(
            f"{where}: write {{schedule = {given['kind']!r}, ...}} instead of {{kind = {given['kind']!r}, ...}}."
        )
    if not isinstance(kind, str) or kind not in SCHEDULES:
        raise KeyError(f"{where}: no schedule {kind!r}. There are: {', '.join(SCHEDULES)}.")
    wanted = ", ".join(SCHEDULES[kind].__dataclass_fields__)  # type: ignore[attr-defined]
    for key in given:
        if key != "schedule" and key not in SCHEDULES[kind].__dataclass_fields__:  # type: ignore[attr-defined]
            raise KeyError(f"{where}, schedule {kind}: unknown key {key!r}. There are: {wanted}.")
    try:
        return schedule_from_json(given)
    except TypeError:
        raise TypeError(f"{where}: the schedule {kind} takes numbers for {wanted}.") from None


def _positive(schedule: object, *names: str) -> None:
    for name in names:
        value = getattr(schedule, name)
        if not (np.isscalar(value) and value > 0 and np.isfinite(value)):  # type: ignore[operator]
            raise ValueError(f"`{name}` should be a positive number. Found {name} = {value}.")
