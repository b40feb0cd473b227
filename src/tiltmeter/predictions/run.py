"""run: a table of predictions as a run, with the curves and points that a probe would have recorded."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from itertools import chain, groupby
from typing import Any

import numpy as np
import xarray as xr

from tiltmeter.arguments import checked_scalar
from tiltmeter.data.grouped import GroupedData
from tiltmeter.losses import Square
from tiltmeter.measures.default_curves import DEFAULTS
from tiltmeter.measures.from_scores import TableLoss, snapshot_of_scores, table_task
from tiltmeter.measures.point_keeper import PointKeeper
from tiltmeter.measures.task import Task
from tiltmeter.predictions.table import Evaluation, evaluations, named_table
from tiltmeter.question import Question
from tiltmeter.record import Origin, Recorder, Trajectory, stack
from tiltmeter.record.trajectory import Clock

#: How far rows of probabilities may be from summing to 1: those of a table are often rounded.
ROUNDING = 0.01


def run(
    frame: Any = None,
    *held_out: Any,
    label: Any = None,
    group: Any = None,
    score: Any = None,
    decision: Any = None,
    step: Any = None,
    weight: Any = None,
    seed: Any = None,
    point: Any = None,
    positive: Hashable | None = None,
    loss: TableLoss = None,
    question: Question | None = None,
    y_true: Any = None,
    y_score: Any = None,
    y_pred: Any = None,
) -> Trajectory:
    """A run from predictions of any model: who was predicted what, and when. Everything after a run works on it.

    >>> import pandas as pd, tiltmeter as tm
    >>> rng = np.random.default_rng(0)
    >>> table = pd.DataFrame({"approved": rng.integers(0, 2, 2000), "sex": ["F", "M"] * 1000})
    >>> noise = rng.normal(size=2000) * np.where(table.sex == "F", 1.2, 0.4)
    >>> table["score"] = 1 / (1 + np.exp(-(2 * table.approved - 1 + noise)))
    >>> print(tm.leaders(run(table, label="approved", group="sex"), "error").headline.claim)
    Group F has the higher error: 18 % against 1 %.

    A table may be of pandas, polars, Arrow or Hugging Face `datasets`. Every row is one prediction. `score` is the
    probability of the positive label, or several columns with the probability of each label in ascending order; by
    default the column named "score". `loss` says so if scores are something else: `tm.Logistic()` for log odds,
    `tm.losses.CrossEntropy()` for scores before a softmax, `tm.Square()` for predicted values. What scores are is never
    guessed from their values.

    `decision` holds what was decided, as labels or booleans. Without scores there are error and rates, but no loss and
    no thresholds; with scores, it takes the place of "above one half" or of the most probable label.

    Several evaluations stand below each other with a `step` (by default the column of that name), or beside each other
    with `score={step: column}`. They should hold the same points in the same order, or `point` names the column that
    identifies a point. Several `seed`s become one run with a dimension for seeds, as `tm.stack` joins them. Weighted
    points (`weight`) have curves and standard errors, but are not judged point by point.

    Any estimator of scikit-learn's kind is asked itself, about held-out data or `x, y, group`:
    `run(estimator, held_out)`. `y_true`, `y_score` and `y_pred` are the same as `label`, `score` and `decision`.

    The predictions should be made for points that the model was not trained on: nothing here can know.

    Args:
        frame: Table, path of a .csv, .parquet or .feather file, or dict of arrays; None: the others are arrays. Or an
            estimator.
        *held_out: Of an estimator: held-out data, or their inputs, labels and groups.
        label: Column of the true labels.
        group: Column of the groups, or several for intersections.
        score: Column of the probability of the positive label, or one per label; None: "score".
        decision: Column of what was decided; None: follows from the scores.
        step: Column of the evaluation; None: "step" if there is one.
        weight: Column of how much each point counts; None: all alike.
        seed: Column of the seed, for several runs; None: one run.
        point: Column that identifies a point; None: points are in the same order at every step.
        positive: Which of two labels is a yes; None: the larger.
        loss: What scores are, if not probabilities: `tm.Logistic()`, `tm.losses.CrossEntropy()` or `tm.Square()`.
        question: What a yes means to a person; None: the plain terms.
        y_true: The same as `label`.
        y_score: The same as `score`.
        y_pred: The same as `decision`.
    """
    checked_scalar("positive", positive)
    names = {"label": (label, "y_true", y_true), "score": (score, "y_score", y_score)}
    for ours, (value, theirs, other) in {**names, "decision": (decision, "y_pred", y_pred)}.items():
        if value is not None and other is not None:
            raise TypeError(f"`{ours}` and `{theirs}` are two names for the same. Found both.")
    label, score, decision = (
        theirs if ours is None else ours for ours, theirs in ((label, y_true), (score, y_score), (decision, y_pred))
    )
    if hasattr(frame, "predict"):
        asked = asked_estimator(frame, held_out, group)
        question = question or asked.pop("question")
        return run(**{"positive": positive, "loss": loss, "question": question, **asked})
    if held_out:
        raise TypeError(
            "Name the columns, as tm.predictions.run(table, label='label', group='group'), or ask an estimator, as "
            f"tm.predictions.run(estimator, held_out). Found {type(frame).__name__} and {len(held_out)} more."
        )
    for what, given in (("label", label), ("group", group)):
        if given is None:
            raise TypeError(
                f"`{what}` should name a column or hold one value per prediction, as "
                "tm.predictions.run(table, label='label', group='group'). Found None."
            )
    parts = {"label": label, "score": score, "decision": decision, "group": group, "step": step}
    table, columns = named_table(frame, {**parts, "weight": weight, "seed": seed, "point": point})
    data, readings = evaluations(table, columns, positive)
    settings = {"columns": {**_listed(columns.score, columns.decision), "group": list(map(str, columns.group))}}
    return run_of_evaluations(data.with_question(question), readings, loss, settings=settings)


def asked_estimator(estimator: Any, held_out: tuple[Any, ...], group: Any) -> dict[str, Any]:
    """What an estimator of scikit-learn's kind says about held-out data, or about inputs, labels and groups."""
    if len(held_out) == 1 and isinstance(held_out[0], GroupedData):
        data = held_out[0]
        x, y, group, question = data.x, data.y, [data.groups[code] for code in data.codes], data.question
    elif len(held_out) in (2, 3):
        x, y, question = held_out[0], held_out[1], None
        group = held_out[2] if len(held_out) == 3 else group
    else:
        raise TypeError(
            "An estimator is asked about held-out data, as tm.predictions.run(estimator, held_out), or "
            "tm.predictions.run(estimator, x, y, group)."
        )
    said: dict[str, Any] = {"label": np.asarray(y), "group": group, "question": question}
    classes = getattr(estimator, "classes_", None)
    if classes is not None and len(classes) == 2 and hasattr(estimator, "predict_proba"):
        return said | {"score": np.asarray(estimator.predict_proba(x))[:, 1], "positive": _plain(classes[1])}
    if classes is not None:
        return said | {"decision": np.asarray(estimator.predict(x))}
    return said | {"score": np.asarray(estimator.predict(x), dtype=float), "loss": Square()}


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def run_of_evaluations(
    data: GroupedData,
    readings: Iterable[Evaluation],
    loss: TableLoss = None,
    *,
    clock: Clock = "step",
    settings: dict[str, Any] | None = None,
) -> Trajectory:
    """Evaluations of the same points, in order of seed and step, recorded as a probe records them."""
    check_groups(data)
    runs: dict[Any, Trajectory] = {}
    for seed, parts in groupby(readings, key=lambda reading: reading.seed):
        runs[seed] = _recorded(data, parts, loss, clock, settings or {}, seed)
    if not runs:
        raise ValueError("There should be at least one evaluation. Found none.")
    if len(runs) == 1:
        return next(iter(runs.values()))
    return stack(list(runs.values()), "seed", [_label(seed) for seed in runs])


def check_groups(data: GroupedData) -> None:
    """Refuse predictions with a group that has no weight, or with one group only."""
    mass = np.bincount(data.codes, data.weights, len(data.groups))
    for name, total in zip(data.groups, mass, strict=True):
        if not total > 0:
            raise ValueError(f"Every group should have predictions. Found none in group {name!r}.")


def _recorded(
    data: GroupedData,
    readings: Iterator[Evaluation],
    loss: TableLoss,
    clock: Clock,
    settings: dict[str, Any],
    seed: Any,
) -> Trajectory:
    first = next(readings)
    task = _task(data, first, loss)
    number = _label(seed)
    origin = Origin(
        "predictions",
        problem={"held_out": data.to_json()},
        settings={**settings, "loss": _definition(loss, first)},
        seeds=(number,) if isinstance(number, int) else (),
    )
    keeper, blanks = PointKeeper(data), dict[str, xr.DataArray]()
    with Recorder(None, clock=clock, origin=origin) as recorder:
        for reading, last in _with_last(chain([first], readings)):
            if reading.score is not None and loss is None:
                check_probabilities(reading.score, reading.step)
            shown = snapshot_of_scores(data, task, loss, reading.score, reading.decision, reading.step, blanks)
            curves = {name: values for measure in DEFAULTS for name, values in measure(shown).items()}
            recorder.append(reading.step, curves, keeper(shown, reading.step, last))  # type: ignore[arg-type]
    return recorder.trajectory()


def _with_last(readings: Iterable[Evaluation]) -> Iterator[tuple[Evaluation, bool]]:
    """Every evaluation, and whether it is the last; no more than two are held at a time."""
    waiting: Evaluation | None = None
    for reading in readings:
        if waiting is not None:
            yield waiting, False
        waiting = reading
    if waiting is not None:
        yield waiting, True


def _task(data: GroupedData, first: Evaluation, loss: TableLoss) -> Task:
    if first.score is not None:
        outputs = 1 if first.score.ndim == 1 else first.score.shape[1]
        return table_task(data, outputs, loss, first.decision is not None)
    if loss is not None:
        raise ValueError("`loss` says what scores are. Found decisions without scores.")
    labels = tuple(float(label) for label in data.labels)
    if len(labels) > 2:
        return Task(len(labels), labels)
    return table_task(data, 1, None, True)


def check_probabilities(score: np.ndarray, step: float) -> None:
    """Refuse scores outside 0 and 1, and rows of several that do not sum to 1."""
    low, high = float(score.min()), float(score.max())
    if low < 0 or high > 1:
        bad = low if low < 0 else high
        way = "loss=tm.Logistic()" if score.ndim == 1 else "loss=tm.losses.CrossEntropy()"
        raise ValueError(
            f"`score` should hold probabilities, from 0 to 1. Found {bad:g} at step {step:g}: if they are scores "
            f"before a {'sigmoid' if score.ndim == 1 else 'softmax'}, say {way}."
        )
    if score.ndim == 2:
        away = np.abs(score.sum(1) - 1.0)
        if float(away.max()) > ROUNDING:
            row = int(away.argmax())
            raise ValueError(
                "`score` should hold one probability for each label, which sum to 1. Found a sum of "
                f"{score[row].sum():g} for point {row} at step {step:g}."
            )


def _definition(loss: TableLoss, first: Evaluation) -> str:
    if first.score is None:
        return "none: decisions only"
    return "of probabilities" if loss is None else loss.definition


def _label(seed: Any) -> Any:
    return seed.item() if isinstance(seed, np.generic) else seed


def _listed(score: Any, decision: Hashable | None) -> dict[str, Any]:
    names = {f"{step:g}": list(map(str, part)) for step, part in score.items()} if hasattr(score, "items") else None
    return {
        "score": list(map(str, score)) if names is None else names,
        "decision": None if decision is None else str(decision),
    }
