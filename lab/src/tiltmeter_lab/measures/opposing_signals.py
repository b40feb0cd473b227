"""opposing-signals: the few points whose losses change most between observations, some rising while others fall."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import xarray as xr

from tiltmeter.measures.snapshot import Snapshot

SIDES = np.array(["falling", "rising"], dtype=object)


@dataclass(frozen=True)
class OpposingSignals:
    """The `points` points whose loss changed most since the last observation (Rosenfeld and Risteski, 2023).

    >>> import tiltmeter as tm, torch
    >>> import tiltmeter_lab as lab
    >>> measure, model = OpposingSignals(points=60), torch.nn.Linear(1, 1, bias=False)
    >>> data = tm.GroupedData([[1.0]] * 60, [1, -1] * 30, ["all"] * 60)  # one feature, opposite labels
    >>> for weight in (-0.1, 0.1):
    ...     model.weight.data = torch.full((1, 1), weight)
    ...     found = lab.measure(measure, model, data, tm.Square())
    >>> round(float(found["opposing_balance"]), 6)  # what half of the points gain the other half loses
    1.0

    - `opposing_concentration`: their share of all absolute changes; null value: their share of the points. They always
      exceed it, because they were chosen so: compare two moments or two runs;
    - `opposing_balance`: 1 if falls and rises among them cancel, 0 if all change in the same direction; null value: the
      same for all points;
    - `opposing_change` and `opposing_loss`: mean change and present loss of each side (NaN if it is empty);
    - `opposing_share`: the share of each group among the points of a side; null value: its share of all points.

    This measure has a memory: the object keeps the losses of its last observation and nothing else. So use a separate
    object for each training run. The first observation has no change to show and gives NaN; so does an observation of
    other points. Observe every step to see the effect of a single step.

    What it does not mean: opposite changes alone are no sign of instability. Two sets of points that share a strong
    feature and differ in label have opposite changes by algebra, even if nothing oscillates.

    Args:
        points: Number of points with the largest changes.
        memory: Losses of the last observation; leave it out.
    """

    points: int = 20
    memory: dict[str, np.ndarray] = field(default_factory=dict, repr=False, compare=False)

    title: ClassVar[str] = "Points whose losses change most between observations, falling against rising"
    takes: ClassVar[str] = "a loss of each point, and two observations"
    exact: ClassVar[str] = "always, between the two observations"
    absent: ClassVar[str] = "a smooth descent in which all losses fall together: balance near 0"

    def __post_init__(self) -> None:
        if self.points < 1:
            raise ValueError(f"`points` should be at least 1. Found points = {self.points}.")

    def __call__(self, snapshot: Snapshot) -> dict[str, xr.DataArray]:
        if snapshot.loss is None:
            raise ValueError(
                f"Opposing signals need the loss of each point, which {snapshot.definition} does not tell."
            )
        now, before = snapshot.loss, self.memory.get("loss")
        self.memory["loss"] = now.copy()
        known = before is not None and len(before) == len(now)
        change = now - before if known and before is not None else np.full(len(now), np.nan)
        count = min(self.points, len(now))
        top = np.argsort(-np.abs(change), kind="stable")[:count]
        sides = [top[change[top] < 0], top[change[top] > 0]]
        groups = len(snapshot.data.groups)
        shares = np.stack([_parts(snapshot.data.codes[side], groups) for side in sides])
        size = np.abs(change)
        concentration = _divided(size[top].sum(), size.sum())
        readings = {
            "opposing_concentration": (concentration, "share of all changes in loss"),
            "opposing_concentration_null": (count / len(now), "share of the points chosen"),
            "opposing_balance": (_balance(change[top]), "how much falls and rises cancel"),
            "opposing_balance_null": (_balance(change), "how much falls and rises cancel among all points"),
        }
        found = {
            name: snapshot.reading(name, np.asarray(value), {}, long_name=meaning, better="neither")
            for name, (value, meaning) in readings.items()
        }
        for name, values, meaning in (
            ("opposing_change", change, "mean change in loss of a side"),
            ("opposing_loss", now, "mean loss of a side"),
        ):
            means = np.array([values[side].mean() if len(side) else np.nan for side in sides])
            null = np.array([values.mean()] * 2)
            for key, array in ((name, means), (f"{name}_null", null)):
                found[key] = snapshot.reading(key, array, {"side": SIDES}, long_name=meaning, better="neither")
        coords = {"side": SIDES, "group": snapshot.data.group_labels}
        base = np.tile(_parts(snapshot.data.codes, groups), (2, 1))
        for key, array in (("opposing_share", shares), ("opposing_share_null", base)):
            text = "share of a group among the points of a side"
            found[key] = snapshot.reading(key, array, coords, long_name=text, better="neither")
        return found


def _balance(change: np.ndarray) -> float:
    return 1.0 - _divided(abs(change.sum()), np.abs(change).sum())


def _divided(a: float, b: float) -> float:
    return float(a / b) if b > 0 else float("nan")


def _parts(codes: np.ndarray, groups: int) -> np.ndarray:
    return np.bincount(codes, minlength=groups) / len(codes) if len(codes) else np.full(groups, np.nan)
