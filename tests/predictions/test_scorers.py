"""Scorers for model selection: against MetricFrame, with limits, in a grid search."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.tree import DecisionTreeClassifier

import tiltmeter as tm

SCORERS = tm.predictions.scorers


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"age": rng.normal(size=900), "sex": rng.integers(0, 2, 900)})
    label = (table.age + np.where(table.sex == 1, 0.1, 1.0) * rng.normal(size=900) > 0).astype(int)
    return table, label


def test_values_are_those_of_fairlearn(people):
    metrics = pytest.importorskip("fairlearn.metrics")
    table, label = people
    model = LogisticRegression().fit(table, label)
    decided = model.predict(table)
    given = {"sensitive_features": table.sex, "y_true": label, "y_pred": decided}
    frame = metrics.MetricFrame(metrics=lambda y_true, y_pred: (y_true != y_pred).mean(), **given)
    assert abs(-SCORERS.worst_group_error("sex")(model, table, label) - frame.group_max()) < 1e-12
    assert abs(-SCORERS.error_gap("sex")(model, table, label) - frame.difference()) < 1e-12
    for scorer, metric in (
        (SCORERS.tpr_gap, metrics.true_positive_rate),
        (SCORERS.fpr_gap, metrics.false_positive_rate),
        (SCORERS.selection_gap, metrics.selection_rate),
    ):
        expected = metrics.MetricFrame(metrics=metric, **given).difference()
        assert abs(-scorer("sex")(model, table, label) - expected) < 1e-12


def test_limits_are_those_of_exact_binomial_intervals(people):
    table, label = people
    model = LogisticRegression().fit(table, label)
    wrong = model.predict(table) != label
    highs, lows = [], []
    for value in (0, 1):
        own = wrong[table.sex == value]
        interval = binomtest(int(own.sum()), len(own)).proportion_ci(1 - 0.05 / 2, "exact")
        highs.append(interval.high)
        lows.append(interval.low)
    assert abs(-SCORERS.worst_group_error("sex", level=0.05)(model, table, label) - max(highs)) < 1e-9
    gap = max(highs[0] - lows[1], highs[1] - lows[0])
    assert abs(-SCORERS.error_gap("sex", level=0.05)(model, table, label) - gap) < 1e-9


def test_in_a_grid_search(people):
    table, label = people
    grid = {"max_depth": [1, 3, 12]}
    search = GridSearchCV(DecisionTreeClassifier(random_state=0), grid, scoring=SCORERS.worst_group_error("sex"), cv=3)
    scores = [
        cross_val_score(
            DecisionTreeClassifier(max_depth=depth, random_state=0), table, label, cv=3, scoring=search.scoring
        )
        for depth in grid["max_depth"]
    ]
    search.fit(table, label)
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], np.mean(scores, axis=1))
    array = table.to_numpy()
    model = DecisionTreeClassifier(random_state=0).fit(array, label)
    assert SCORERS.worst_group_error(1)(model, array, label) == 0.0


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda x: SCORERS.worst_group_error("race"), KeyError, "`group`: no column 'race'. There are: 'age', 'sex'."),
        (lambda x: SCORERS.worst_group_error("age"), ValueError, "needs a group with at least 20 points that count"),
        (
            lambda x: SCORERS.worst_group_error("sex", level=2),
            ValueError,
            "`level` should lie strictly between 0 and 1",
        ),
    ],
)
def test_sentences(make, error, words, people):
    table, label = people
    model = LogisticRegression().fit(table, label)
    with pytest.raises(error) as raised:
        make(table)(model, table, label)
    assert words in str(raised.value)
    with pytest.raises(TypeError, match="the number of a column, since the points are an array"):
        SCORERS.worst_group_error("sex")(LogisticRegression().fit(table.to_numpy(), label), table.to_numpy(), label)
