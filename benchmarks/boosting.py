"""Boosting and partly fitted models on census incomes, round by round: who leads when, with the model unchanged.

For every model: seconds to fit and watch it, whether it is bit-identical to one that nobody watched, who is better off,
and the threshold that would give women the true positive rate of men. Models of packages that are not installed are
left out. Needs the data set adult (`tiltmeter data get adult`, or TILTMETER_DATA).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
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


def main() -> None:
    train, held_out = tm.data.adult("sex")
    for name, (make, rounds) in models().items():
        watched = make()
        start = time.perf_counter()
        run = tm.predictions.boosting(watched, held_out, train, rounds=rounds)
        seconds = time.perf_counter() - start
        alone = fitted(make(), train, rounds)
        same = np.array_equal(alone.predict_proba(held_out.x), watched.predict_proba(held_out.x))
        print(f"{name}: {seconds:.1f} s, {'bit-identical' if same else 'CHANGED'}")
        for curve in ("tpr", "error"):
            print(f"  {tm.leaders(run, curve).headline.claim}")
        moved = own_threshold(run, "tpr", "Female", "Male")
        if moved is not None:
            print(
                f"  Threshold {moved.threshold:.2f} for women: true positive rate {moved.before:.3f} -> "
                f"{moved.rate:.3f}, their error {moved.error_before:.3f} -> {moved.error:.3f}"
            )


if __name__ == "__main__":
    main()
