"""Boosting and partly fitted models round by round: who leads when, where to stop, what thresholds cost.

For every model: whether it is bit-identical to one that nobody watched, who is better off, the round to stop at, and
the threshold that gives the worse-off group the true positive rate of the other, beside Fairlearn's ThresholdOptimizer
(both chosen on one half of the held-out points and judged on the other). Error rates of groups are compared with
Fairlearn's MetricFrame, so fairlearn is needed. Models of other packages that are not installed are left out. The
tables: census incomes (adult: `tiltmeter data get adult`, or TILTMETER_DATA), and 200,000 generated people with 6 % of
positives, as in the census file of the KDD archive. `python benchmarks/boosting.py` prints a table in Markdown.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import SGDClassifier
from sklearn.neural_network import MLPClassifier

import tiltmeter as tm
from tiltmeter.fairness.thresholds import own_threshold

ROUNDS = 100


def models() -> dict[str, tuple[Callable[[], Any], int | None]]:
    """Functions that make a model, and the rounds of those that have none of their own."""
    found: dict[str, tuple[Callable[[], Any], int | None]] = {
        "HistGradientBoosting": (lambda: HistGradientBoostingClassifier(max_iter=ROUNDS, random_state=0), None),
        "SGDClassifier": (lambda: SGDClassifier(loss="log_loss", alpha=1e-3, random_state=0), 20),
        "MLPClassifier": (lambda: MLPClassifier((32,), random_state=0), 10),
    }
    if find_spec("xgboost"):
        from xgboost import XGBClassifier

        found["XGBoost"] = (lambda: XGBClassifier(n_estimators=ROUNDS, n_jobs=1, random_state=0), None)
    if find_spec("lightgbm"):
        from lightgbm import LGBMClassifier

        found["LightGBM"] = (lambda: LGBMClassifier(n_estimators=ROUNDS, verbose=-1, n_jobs=1, random_state=0), None)
    if find_spec("catboost"):
        from catboost import CatBoostClassifier

        plain = {"verbose": False, "allow_writing_files": False, "thread_count": 1, "random_seed": 0}
        found["CatBoost"] = (lambda: CatBoostClassifier(iterations=ROUNDS, **plain), None)
    return found


def fitted(model: Any, train: tm.GroupedData, rounds: int | None) -> Any:
    """The model as its user fits it, without watching."""
    if rounds is None:
        return model.fit(train.x, train.y)
    for number in range(rounds):
        model.partial_fit(train.x, train.y, **({} if number else {"classes": train.labels}))
    return model


def census(count: int = 200_000, seed: int = 0) -> tuple[tm.GroupedData, tm.GroupedData]:
    """People with ages, schooling, weeks worked and one of twelve occupations; 6 % earn much, women less often."""
    rng = np.random.default_rng(seed)
    female = rng.random(count) < 0.52
    age, school = rng.gamma(4.0, 10.0, count), rng.normal(12.0, 3.0, count)
    weeks = np.clip(rng.normal(np.where(female, 30.0, 38.0), 18.0), 0, 52)
    work = rng.integers(12, size=count)
    pay = rng.normal(size=12)[work] + 0.3 * (school - 12) + 0.06 * weeks + 0.02 * np.minimum(age, 55) - 0.7 * female
    pay *= 3.0
    # What decides about women is seen less well.
    noise = rng.logistic(size=count) * np.where(female, 1.6, 1.0)
    label = (pay + noise > np.quantile(pay + noise, 0.938)).astype(int)
    x = np.column_stack([age, school, weeks, np.eye(12)[work]])
    x = ((x - x.mean(0)) / x.std(0)).astype(np.float32)
    return tm.GroupedData(x, label, np.where(female, "Female", "Male")).split(held_out=0.3, seed=seed)


def metric_difference(run: tm.Trajectory, decided: np.ndarray, data: tm.GroupedData) -> float:
    """The largest difference between our last rates and those of MetricFrame."""
    from fairlearn.metrics import MetricFrame, false_positive_rate, selection_rate, true_positive_rate

    functions = {"tpr": true_positive_rate, "fpr": false_positive_rate, "positive_rate": selection_rate}
    functions["error"] = lambda y, d: float((y != d).mean())
    names = np.asarray(data.groups)[data.codes]
    theirs = MetricFrame(metrics=functions, y_true=data.y, y_pred=decided, sensitive_features=names).by_group
    ours = {name: run[name].isel(time=-1) for name in functions}
    return max(abs(float(ours[n].sel(group=g)) - theirs.loc[g, n]) for n in functions for g in data.groups)


def judged(data: tm.GroupedData, decided: np.ndarray) -> tuple[float, float]:
    """The difference in true positive rates (women minus men), and the error of all."""
    rates = [decided[(data.codes == code) & (data.y == 1)].mean() for code in range(2)]
    women = data.groups.index("Female")
    return float(rates[women] - rates[1 - women]), float((decided != data.y).mean())


class Doubled(BaseEstimator):
    """The model with probabilities in double precision, which ThresholdOptimizer needs."""

    def __init__(self, model: Any) -> None:
        self.model, self.classes_ = model, np.array([0, 1])

    def fit(self, x: Any, y: Any) -> Any:
        raise NotImplementedError  # it is fitted already

    def predict_proba(self, x: Any) -> np.ndarray:
        return np.asarray(self.model.predict_proba(x), dtype=float)


def thresholds(model: Any, run: tm.Trajectory, tune: tm.GroupedData, test: tm.GroupedData) -> list[tuple[float, float]]:
    """Gap and error on `test`: as it is, with our threshold for women, and with ThresholdOptimizer."""
    from fairlearn.postprocessing import ThresholdOptimizer

    chance = model.predict_proba(test.x)[:, 1]
    found = [judged(test, chance > 0.5)]
    moved = own_threshold(run, "tpr", "Female", "Male")
    assert moved is not None
    women = test.codes == test.groups.index("Female")
    found.append(judged(test, chance > np.where(women, moved.threshold, 0.5)))
    names = [np.asarray(part.groups)[part.codes] for part in (tune, test)]
    kind = {"constraints": "true_positive_rate_parity", "objective": "accuracy_score", "prefit": True}
    other = ThresholdOptimizer(estimator=Doubled(model), predict_method="predict_proba", **kind)
    other.fit(tune.x, tune.y, sensitive_features=names[0])
    found.append(judged(test, other.predict(test.x, sensitive_features=names[1], random_state=0)))
    return found


def main() -> None:
    head = ["data", "model", "true positive rate", "error", "stop at round", "gap, error", "own threshold"]
    head += ["ThresholdOptimizer"]
    changed, furthest = [], 0.0
    print("| " + " | ".join(head) + " |\n" + "|---" * len(head) + "|")
    for data, (train, held_out) in {"adult": tm.data.adult("sex"), "generated census": census()}.items():
        tune, test = held_out.split(held_out=0.5)
        for name, (make, rounds) in models().items():
            watched, alone = make(), make()
            start = time.perf_counter()
            run = tm.predictions.boosting(watched, tune, train, rounds=rounds)
            seconds = time.perf_counter() - start
            fitted(alone, train, rounds)
            same = np.array_equal(alone.predict_proba(test.x), watched.predict_proba(test.x))
            claims = [tm.leaders(run, curve).headline.claim for curve in ("tpr", "error")]
            stop = tm.fairness.stopping(run).best_worst.time
            away = metric_difference(run, watched.predict(tune.x), tune)
            pairs = [f"{gap:+.3f}, {error:.4f}" for gap, error in thresholds(watched, run, tune, test)]
            changed += [] if same else [f"{name} on {data}"]
            furthest = max(furthest, away)
            print("| " + " | ".join([data, name, *claims, f"{stop:g}", *pairs]) + " |", flush=True)
            print(f"{name} on {data}: {seconds:.1f} s", file=sys.stderr)
    print(f"Changed by watching: {', '.join(changed) or 'none'}. Largest difference to MetricFrame: {furthest:.0e}.")


if __name__ == "__main__":
    main()
