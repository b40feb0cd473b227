"""From scores: losses, decisions, margins and confidences of points from their scores alone, without a model."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from scipy.special import expit, logsumexp

from tiltmeter.data.grouped import GroupedData
from tiltmeter.losses import CrossEntropy, Logistic, Square
from tiltmeter.measures.snapshot import Snapshot
from tiltmeter.measures.task import Link, Task, task_of

#: What a loss says about the scores: nothing given, they are probabilities.
TableLoss = Logistic | CrossEntropy | Square | None
#: The loss of a probability of exactly 0 for what happened; torch's BCELoss ends there, too.
LARGEST = 100.0


def probability_loss(probability: np.ndarray, y: np.ndarray, positive: float) -> np.ndarray:
    """-log of the probability given to the right label: of the positive one (one column), or of the classes (several).

    >>> probability_loss(np.array([0.5, 0.9]), np.array([0, 1]), 1).round(3).tolist()
    [0.693, 0.105]
    >>> probability_loss(np.array([[0.2, 0.3, 0.5]]), np.array([2]), 2).round(3).tolist()
    [0.693]

    `Probe` and tables of predictions take this function, so that the same probabilities give the same numbers.
    """
    chance = probability.astype(np.float64)
    if chance.ndim == 2:
        given = np.take_along_axis(chance, y.astype(np.int64)[:, None], 1)[:, 0]
        with np.errstate(divide="ignore"):
            return np.asarray(np.minimum(-np.log(given), LARGEST))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.minimum(-np.where(y == positive, np.log(chance), np.log1p(-chance)), LARGEST))


def table_task(data: GroupedData, outputs: int, loss: TableLoss, decided: bool) -> Task:
    """The task of a table of scores; `loss` says what they are, and `decided` that the table holds decisions too.

    >>> data = GroupedData(np.zeros((60, 1)), [0, 1] * 30, ["a", "a", "b"] * 20)
    >>> table_task(data, 1, None, False)
    Task(outputs=1, labels=(0.0, 1.0), threshold=0.5, link='probability')
    """
    links: dict[type, Link] = {Square: "linear", Logistic: "sigmoid", CrossEntropy: "softmax"}
    if loss is None:
        link: Link = "probability" if outputs == 1 else "linear"
    elif type(loss) in links:
        link = links[type(loss)]
        if (outputs > 1 and link == "sigmoid") or (outputs == 1 and link == "softmax"):
            count = "several columns of scores" if outputs > 1 else "one column of scores"
            raise TypeError(f"{type(loss).__name__}() does not fit {count}.")
    else:
        raise TypeError(
            "`loss` should be None (scores are probabilities), Logistic() (log odds), CrossEntropy() (scores before a "
            f"softmax) or Square() (predicted values). Found {type(loss).__name__}."
        )
    return task_of(data.y, outputs, link, decided)


def snapshot_of_scores(
    data: GroupedData,
    task: Task,
    loss: TableLoss,
    score: np.ndarray | None,
    decision: np.ndarray | None,
    step: float,
    blanks: dict[str, xr.DataArray],
) -> Snapshot:
    """What a probe would know of a model that gives these scores to these points; `decision` overrides the threshold.

    >>> data = GroupedData(np.zeros((60, 1)), [0, 1] * 30, ["a", "a", "b"] * 20)
    >>> task = table_task(data, 1, None, False)
    >>> snapshot_of_scores(data, task, None, np.full(60, 0.8), None, 0, {}).decision[:2].tolist()
    [1.0, 1.0]
    """
    known: dict[str, Any] = {"data": data, "task": task, "step": step, "blanks": blanks}
    if score is None:
        return Snapshot(definition="", decision=decision, **known)
    losses, definition = _losses(data.y, task, loss, score)
    values: dict[str, Any] = {}
    if task.decides:
        values = _of_one(score, data.y, task) if score.ndim == 1 else _of_several(score, data.y, task)
        if decision is not None:
            values["decision"] = decision
    values = {name: array.astype(np.float64) for name, array in values.items()}
    return Snapshot(loss=losses, definition=definition, score=score, **values, **known)


def _losses(y: np.ndarray, task: Task, loss: TableLoss, score: np.ndarray) -> tuple[np.ndarray, str]:
    if loss is None:
        several = score.ndim == 2
        kind = CrossEntropy if several else Logistic
        return probability_loss(score, y, task.labels[-1]), kind.definition
    exact = score.astype(np.float64)
    if isinstance(loss, CrossEntropy):
        return loss.value(exact, y.astype(np.int64)), loss.definition
    if isinstance(loss, Logistic):
        return loss.value(exact, np.where(y == task.positive, 1.0, -1.0)), loss.definition
    if exact.ndim == 2:
        return loss.value(exact, np.eye(exact.shape[1])[y.astype(np.int64)]).sum(1), loss.definition
    return loss.value(exact, y), loss.definition


def _of_one(score: np.ndarray, y: np.ndarray, task: Task) -> dict[str, np.ndarray]:
    low, high = task.labels
    above = score - score.dtype.type(task.threshold or 0.0)
    values = {"decision": np.where(above > 0, high, low), "margin": np.where(y == high, above, -above)}
    if task.link == "sigmoid":
        values["confidence"] = expit(np.abs(above))
    else:
        chance = score if task.link == "probability" else (score - low) / (high - low)
        chance = np.clip(chance, 0.0, 1.0)
        values["confidence"] = np.maximum(chance, 1.0 - chance)
    return values


def _of_several(score: np.ndarray, y: np.ndarray, task: Task) -> dict[str, np.ndarray]:
    places = y.astype(np.int64)[:, None]
    best = score.max(1)
    others = score.copy()
    np.put_along_axis(others, places, -np.inf, 1)
    values = {
        "decision": score.argmax(1),
        "margin": np.take_along_axis(score, places, 1)[:, 0] - others.max(1),
    }
    if task.link == "softmax":
        values["confidence"] = np.exp(best - logsumexp(score, axis=1))
    else:
        values["confidence"] = np.clip(best, 0.0, 1.0)
    return values
