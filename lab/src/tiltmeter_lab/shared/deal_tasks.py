"""Tasks for random deals: small networks trained on real data; the loss and decision of every point are kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import tiltmeter as tm
import tiltmeter_lab as lab


def _digits() -> tuple[tm.GroupedData, tm.GroupedData]:

    train, held_out = tm.data.plain_digits()
    x, y = (np.concatenate([train.x, held_out.x]), np.concatenate([train.y, held_out.y]))
    return _two_labels(x, y % 2)


def _mnist() -> tuple[tm.GroupedData, tm.GroupedData]:

    images = lab.data.mnist("test")
    return _two_labels(images.x, images.y % 2)


def _fashion() -> tuple[tm.GroupedData, tm.GroupedData]:

    images = lab.data.fashion_mnist("train")
    # Worn above the waist; groups are lighter and darker pictures.
    light = np.asarray(images.x, dtype=float).reshape(len(images.x), -1).mean(1)
    return _two_labels(images.x, np.isin(images.y, (0, 2, 4, 6)), light > np.quantile(light, 0.7))


def _adult() -> tuple[tm.GroupedData, tm.GroupedData]:

    return tm.data.adult("sex")


def _compas() -> tuple[tm.GroupedData, tm.GroupedData]:

    return tm.data.compas()


#: Data set -> points to train on and points to look at.
TASKS: dict[str, Callable[[], tuple[tm.GroupedData, tm.GroupedData]]] = {
    "digits": _digits,
    "Adult": _adult,
    "COMPAS": _compas,
    "MNIST": _mnist,
    "Fashion-MNIST": _fashion,
}


def _two_labels(
    pixels: np.ndarray, positive: np.ndarray, group: np.ndarray | None = None
) -> tuple[tm.GroupedData, tm.GroupedData]:
    x = np.asarray(pixels, dtype=np.float32).reshape(len(pixels), -1)
    x = (x - x.mean(0)) / max(float(x.std()), 1e-9)
    dealt = np.arange(len(x)) % 2 if group is None else group.astype(np.int64)
    return tm.GroupedData(x, positive.astype(np.int64), dealt).split(held_out=0.5)


@dataclass(frozen=True, eq=False)
class Trained:
    """Losses and decisions of several networks on the same points, (seeds, evaluations, points)."""

    times: np.ndarray
    loss: np.ndarray
    decided: np.ndarray
    positive: np.ndarray
    codes: np.ndarray


def trained(task: str, seeds: range, hidden: int, steps: int, per_decade: int, pool: int) -> Trained:
    """Train networks of these seeds on one data set and look at up to `pool` of its points."""
    train, held_out = TASKS[task]()
    rng = np.random.default_rng(0)
    if len(held_out) > pool:
        held_out = held_out.take(np.sort(rng.permutation(len(held_out))[:pool]))
    if len(train) > 5000:
        train = train.take(np.sort(rng.permutation(len(train))[:5000]))
    run = tm.ensemble(
        partial(tm.modules.mlp, int(np.prod(train.x.shape[1:])), (hidden,), 1),
        train,
        held_out,
        tm.Recipe(lr=0.05, steps=steps, batch=16, loss=tm.Logistic()),
        seeds=list(seeds),
        watch=tm.Watch(when=tm.record.log_spaced(per_decade)),
    )
    loss, decided = (run.points[name].transpose("seed", "time", "point") for name in ("loss", "decided_positive"))
    positive = np.asarray(loss.coords["positive"].values, dtype=bool)
    return Trained(loss.coords["time"].values, loss.values, decided.values, positive, held_out.codes)


def trained_for(setting: Any, task: str, seeds: range, pool: int) -> Trained:
    """Train networks as a setting of `false-alarms` says."""
    return trained(task, seeds, setting.hidden, setting.steps, setting.per_decade, pool)
