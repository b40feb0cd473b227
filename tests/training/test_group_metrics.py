"""Group metrics by a second route: fairlearn's MetricFrame on the final predictions."""

from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

import tiltmeter as tm
from tiltmeter.data.public.digits import digits

metrics = pytest.importorskip("fairlearn.metrics")
sklearn_metrics = pytest.importorskip("sklearn.metrics")


def final(run, name):
    return run[name].isel(time=-1)


@pytest.mark.parametrize("chunk", [7, 256])
@pytest.mark.parametrize("weighted", [False, True])
def test_two_labels(chunk, weighted):
    """Points come sorted by group, so that with small chunks most of them miss a group."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(500, 8)).astype(np.float32)
    y = (x[:, 0] + 0.5 * rng.normal(size=500) > 0).astype(int)
    group = np.sort(rng.choice(["a", "b", "c"], 500, p=[0.6, 0.3, 0.1]))
    weights = rng.uniform(0.1, 2.0, 500) if weighted else None
    data = tm.GroupedData(x, y, group, weights)
    torch.manual_seed(0)
    model = nn.Linear(8, 1)
    tm.train(model, data, data, tm.Recipe(lr=0.1, steps=30))
    with tm.Probe(model, data, chunk=chunk, budget=None) as probe:
        pass
    run = probe.trajectory()
    with torch.no_grad():
        decided = (model(torch.tensor(x))[:, 0] > 0).int().numpy()
    frame = metrics.MetricFrame(
        metrics={
            "error": lambda t, p, w=None: sklearn_metrics.zero_one_loss(t, p, sample_weight=w),
            "positive_rate": lambda t, p, w=None: metrics.selection_rate(t, p, sample_weight=w),
            "tpr": lambda t, p, w=None: metrics.true_positive_rate(t, p, sample_weight=w),
            "fpr": lambda t, p, w=None: metrics.false_positive_rate(t, p, sample_weight=w),
        },
        y_true=y,
        y_pred=decided,
        sensitive_features=group,
        sample_params=None
        if weights is None
        else {name: {"w": weights} for name in ("error", "positive_rate", "tpr", "fpr")},
    )
    for name in ("error", "positive_rate", "tpr", "fpr"):
        np.testing.assert_allclose(final(run, name), frame.by_group[name].to_numpy(float), rtol=1e-12, err_msg=name)


def test_ten_classes_of_digits_and_a_users_own_metric():
    train, held_out = digits()
    torch.manual_seed(0)
    model = nn.Linear(64, 10)

    def macro_f1(y_true, y_score):
        return sklearn_metrics.f1_score(y_true, y_score.argmax(1), average="macro")

    run = tm.train(model, train, held_out, tm.Recipe(lr=0.1, steps=100), watch=tm.Watch(measures=(macro_f1,)))
    with torch.no_grad():
        decided = model(held_out.tensors()[0]).argmax(1).numpy()
    groups = [held_out.groups[code] for code in held_out.codes]
    frame = metrics.MetricFrame(
        metrics={
            "error": sklearn_metrics.zero_one_loss,
            "macro_f1": partial(sklearn_metrics.f1_score, average="macro"),
        },
        y_true=held_out.y,
        y_pred=decided,
        sensitive_features=groups,
    )
    for name in ("error", "macro_f1"):
        np.testing.assert_allclose(final(run, name), frame.by_group[name].to_numpy(float), rtol=1e-12)
    crossed = metrics.MetricFrame(
        metrics=sklearn_metrics.accuracy_score,
        y_true=held_out.y,
        y_pred=decided,
        sensitive_features=groups,
        control_features=held_out.y,
    )
    for label in range(10):
        for group in held_out.groups:
            ours = final(run, "class_accuracy").sel(group=group, **{"class": label}).item()
            assert ours == pytest.approx(crossed.by_group[(label, group)], rel=1e-12)
