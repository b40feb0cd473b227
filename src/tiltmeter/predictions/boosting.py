"""boosting: who leads at which round of a boosted, partially fitted or warm-started model; the model is not changed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from tiltmeter.data.example_weights import example_weights
from tiltmeter.data.group_shares import share_of
from tiltmeter.data.grouped import GroupedData, check_labels_known
from tiltmeter.interventions.group_intervention import GroupIntervention
from tiltmeter.predictions.run import run_of_evaluations
from tiltmeter.predictions.table import Evaluation
from tiltmeter.recipe.lowered import constant_pull
from tiltmeter.record import Trajectory, When, log_spaced
from tiltmeter.shown_text import shortened

#: Objectives of raw boosters whose predictions are probabilities.
PROBABILITIES = ("binary:logistic", "multi:softprob", "binary", "multiclass", "cross_entropy")
#: What counts rounds of a model that goes on from where it was.
COUNTS = ("n_estimators", "max_iter")


def boosting(
    model: Any,
    held_out: GroupedData,
    train: GroupedData | None = None,
    *,
    rounds: int | None = None,
    when: When = log_spaced(20),
    weights: Any = None,
    x: Any = None,
    train_x: Any = None,
    seed: int | None = None,
) -> Trajectory:
    """A run over the rounds of a model: boosting rounds, passes of `partial_fit`, or warm starts. Its clock is "round".

    >>> import tiltmeter as tm
    >>> from sklearn.ensemble import HistGradientBoostingClassifier
    >>> rng = np.random.default_rng(0)
    >>> points = rng.normal(size=(4000, 3))
    >>> group = np.where(rng.random(4000) < 0.2, "few", "many")
    >>> rule = np.where(group == "few", points[:, 1], points[:, 0])  # the few have a rule of their own
    >>> data = GroupedData(points, (points[:, 2] + rule > 0).astype(int), group)
    >>> train, held_out = data.split(held_out=0.5)
    >>> model = HistGradientBoostingClassifier(max_iter=60, random_state=0).fit(train.x, train.y)
    >>> run = boosting(model, held_out)
    >>> run.clock, run["error"].time.values[-1].item()
    ('round', 60)
    >>> print(tm.leaders(run, "error").headline.claim)
    Group few has the higher error: 32 % against 5 %.

    `model` is fitted already: a boosting model of scikit-learn, XGBoost, LightGBM or CatBoost (classifiers, or boosters
    with an objective of probabilities). Its staged predictions are evaluated at the rounds that `when` chooses and at
    the last. Or give `train`, and the model is fitted on it exactly as without watching: boosting models at once,
    others by one call of `partial_fit` per round or by a warm start with one more estimator, up to `rounds`.

    `seed` is noted in the Origin; runs of several seeds are joined by `tm.stack`.

    Args:
        model: Fitted model of scikit-learn, XGBoost, LightGBM or CatBoost; or, with `train`, one to fit.
        held_out: Points that judge the model and are never trained on.
        train: Points to fit the model on; None: it is fitted already.
        rounds: Rounds of `partial_fit` or warm starts; None: a boosting model has its own number.
        when: Rounds that are evaluated, beside the last.
        weights: Factor on each group or (group, label), or an intervention of groups; they become `sample_weight`.
        x: Held-out points as the model takes them, row for row; None: the array in `held_out`.
        train_x: Training points as the model takes them; None: the array in `train`.
        seed: Seed that is noted in the Origin.
    """
    if not isinstance(held_out, GroupedData):
        raise TypeError(f"`held_out` should be GroupedData. Found {type(held_out).__name__}.")
    points = held_out.x if x is None else x
    if len(points) != len(held_out):
        raise ValueError(f"`x` should have a row for each held-out point. Found {len(points)} for {len(held_out)}.")
    if train is None:
        for name, value in (("rounds", rounds), ("weights", weights), ("train_x", train_x)):
            if value is not None:
                raise ValueError(f"`{name}` is for a model that is fitted here: give `train`, too.")
        stages = _staged(model, points)
    else:
        check_labels_known(train, held_out)
        fit = {} if weights is None else {"sample_weight": sample_weight(train, weights)}
        stages = _fitted(model, train, train.x if train_x is None else train_x, points, rounds, fit)
    told = {"class": type(model).__name__, "text": shortened(repr(model), 2000)}
    readings = _chosen(stages, when, held_out, model, seed)
    return run_of_evaluations(held_out, readings, clock="round", settings={"model": told, "when": when.to_json()})


def sample_weight(train: GroupedData, weights: Mapping[Any, float] | GroupIntervention) -> np.ndarray:
    """One weight per training point, for the `sample_weight` of any estimator.

    >>> from tiltmeter.interventions import Balanced
    >>> data = GroupedData(np.zeros((100, 1)), [0, 1] * 50, ["a"] * 80 + ["b"] * 20)
    >>> sample_weight(data, Balanced())[[0, 99]].tolist(), sample_weight(data, {("a", 1): 3.0})[:2].tolist()
    ([0.625, 2.5], [1.0, 3.0])

    Interventions that change during training need the losses of the steps before: they are for networks.

    Args:
        train: Points to train on, with their groups.
        weights: Factor on each group or (group, label); or an intervention of groups that is constant in training.
    """
    if isinstance(weights, GroupIntervention):
        if not weights.constant or weights.by != "weights":
            raise TypeError(
                "`weights` should be an intervention with constant weights, as Balanced(). Found "
                f"{type(weights).__name__}, which {'draws points' if weights.constant else 'follows the losses'}."
            )
        shares = share_of(train, None)
        pulls = constant_pull(weights, train, shares)
        weights = dict(zip(train.groups, (pulls / shares).tolist(), strict=True))
    factors = example_weights(train, weights)
    return np.ones(len(train)) if factors is None else factors


def _chosen(
    stages: Iterable[tuple[int, bool, Any]], when: When, held_out: GroupedData, model: Any, seed: int | None
) -> Iterator[Evaluation]:
    """The evaluations to keep, of (round, whether it is the last, predictions), with columns in the order of labels."""
    places: list[int] | None = None
    for number, last, answer in stages:
        if not (last or when(number)):
            continue
        answer = answer() if callable(answer) else answer
        if isinstance(answer, _Decided):
            yield Evaluation(seed, number, None, answer.labels)
            continue
        chance = np.asarray(answer)
        chance = np.stack([1.0 - chance, chance], 1) if chance.ndim == 1 else chance
        places = _order(model, chance.shape[1], held_out) if places is None else places
        chance = chance[:, places]
        yield Evaluation(seed, number, chance[:, 1] if len(places) == 2 else chance, None)


class _Decided:
    """Decisions of a model that gives no probabilities."""

    def __init__(self, labels: Any) -> None:
        self.labels = np.asarray(labels, dtype=float)


def _order(model: Any, count: int, held_out: GroupedData) -> list[int]:
    """The places of the labels 0, 1, 2, ... of the data (in ascending order) among the columns of the model."""
    given = getattr(model, "classes_", None)
    labels = held_out.labels.tolist()
    if given is None:
        if len(labels) > count:
            raise ValueError(f"`held_out` should have at most {count} labels, as the model. Found {len(labels)}.")
        return list(range(count))
    classes = [value.item() if isinstance(value, np.generic) else value for value in given]
    words = () if held_out.reading is None else held_out.reading.labels
    if words and all(isinstance(name, str) for name in classes):
        if set(classes) != set(words):
            listed = ", ".join(map(repr, classes))
            raise ValueError(f"`held_out` should have the labels of the model ({listed}). Found {', '.join(words)}.")
        return [classes.index(word) for word in words]
    unknown = [label for label in labels if label not in classes]
    if unknown and not all(isinstance(name, str) for name in classes):
        listed = ", ".join(map(str, classes))
        raise ValueError(f"`held_out` should have the labels of the model ({listed}). Found {unknown[0]:g}.")
    return list(range(count))


def _package(model: Any) -> str:
    """The package that a model, or the class it inherits from, comes from."""
    for kind in type(model).__mro__:
        name = kind.__module__.split(".")[0]
        if name in ("xgboost", "lightgbm", "catboost"):
            return name
    return "staged" if hasattr(model, "staged_predict_proba") else ""


def _staged(model: Any, x: Any) -> Iterator[tuple[int, bool, Any]]:
    """Round, whether it is the last, and the probabilities after it or a function that gives them."""
    package = _package(model)
    if package == "xgboost":
        return _of_xgboost(model, x)
    if package == "lightgbm":
        return _of_lightgbm(model, x)
    if package in ("catboost", "staged"):
        return _numbered(model.staged_predict_proba(x))
    ways = [name for name in ("partial_fit", "warm_start") if hasattr(model, name)]
    hint = f": it has {ways[0]}, so give `train` and `rounds`, too" if ways else ""
    raise TypeError(
        "`model` should give its predictions round by round, as boosting models of scikit-learn, XGBoost, LightGBM and "
        f"CatBoost do. Found {type(model).__name__}{hint}."
    )


def _numbered(stages: Iterable[Any]) -> Iterator[tuple[int, bool, Any]]:
    waiting: Any = None
    for number, chance in enumerate(stages):
        if number:
            yield number, False, waiting
        waiting, count = np.array(chance), number + 1  # CatBoost gives the same array again
    if waiting is None:
        raise ValueError("`model` should have been trained for at least one round. Found none.")
    yield count, True, waiting


def _of_xgboost(model: Any, x: Any) -> Iterator[tuple[int, bool, Any]]:
    raw = not hasattr(model, "get_booster")
    booster = model if raw else model.get_booster()
    total = booster.num_boosted_rounds()
    if raw:
        import xgboost

        objective = json.loads(booster.save_config())["learner"]["objective"]["name"]
        _check_objective(objective)
        x = x if isinstance(x, xgboost.DMatrix) else xgboost.DMatrix(x)
    for number in range(1, total + 1):
        if raw:
            yield number, number == total, lambda end=number: booster.predict(x, iteration_range=(0, end))
        else:
            yield number, number == total, lambda end=number: model.predict_proba(x, iteration_range=(0, end))


def _of_lightgbm(model: Any, x: Any) -> Iterator[tuple[int, bool, Any]]:
    raw = not hasattr(model, "booster_")
    booster = model if raw else model.booster_
    total = booster.current_iteration()
    if raw:
        text = booster.model_to_string(num_iteration=1)
        lines = [line.removeprefix("objective=") for line in text.splitlines() if line.startswith("objective=")]
        _check_objective(lines[0].split()[0] if lines else "none")
    predict = booster.predict if raw else model.predict_proba
    for number in range(1, total + 1):
        yield number, number == total, lambda end=number: predict(x, num_iteration=end)


def _check_objective(objective: str) -> None:
    if objective not in PROBABILITIES:
        raise ValueError(
            f"`model` should have an objective of probabilities ({', '.join(PROBABILITIES)}). Found {objective}."
        )


def _fitted(
    model: Any, train: GroupedData, train_x: Any, x: Any, rounds: int | None, fit: dict[str, Any]
) -> Iterator[tuple[int, bool, Any]]:
    """Fit the model as its own documentation says, and give its predictions after every round."""
    if _package(model):
        if rounds is not None:
            raise ValueError("`rounds` is for `partial_fit` and warm starts: a boosting model has its own number.")
        model.fit(train_x, train.y, **fit)
        yield from _staged(model, x)
        return
    if isinstance(rounds, bool) or not isinstance(rounds, int) or rounds < 1:
        raise ValueError(f"`rounds` should be a positive number of rounds. Found rounds = {rounds!r}.")
    partly = hasattr(model, "partial_fit")
    counts = [name for name in COUNTS if hasattr(model, name)]
    if not partly and not (getattr(model, "warm_start", False) is True and counts):
        raise TypeError(
            "`model` should have `partial_fit`, or be made with warm_start=True and a number of rounds "
            f"({' or '.join(COUNTS)}). Found {type(model).__name__}."
        )
    for number in range(1, rounds + 1):
        if partly:
            first = {"classes": train.labels} if number == 1 else {}
            model.partial_fit(train_x, train.y, **first, **fit)
        else:
            model.set_params(**{counts[0]: number}).fit(train_x, train.y, **fit)
        yield number, number == rounds, lambda: _answer(model, x)


def _answer(model: Any, x: Any) -> Any:
    return model.predict_proba(x) if hasattr(model, "predict_proba") else _Decided(model.predict(x))
