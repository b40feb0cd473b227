"""Interventions that change the data: JTT, USEFUL and the amplified bias."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

import tiltmeter as tm
from tiltmeter.modules.networks import mlp

lab = pytest.importorskip("tiltmeter_lab")

I = tm.interventions


def patched_digits(seed=0, aligned=0.95):
    """Digits of at least five, with four extra pixels that go along with the label in 95 % of points."""
    x, digit = load_digits(return_X_y=True)
    rng = np.random.default_rng(seed)
    chosen = rng.permutation(len(x))[:1100]
    y = (digit[chosen] >= 5).astype(int)
    patch = np.where(rng.random(len(y)) < aligned, y, 1 - y)
    inputs = np.concatenate([x[chosen] / 16.0, 1.5 * np.repeat(2 * patch[:, None] - 1, 4, axis=1)], axis=1)
    return tm.GroupedData(inputs.astype("float32"), y, np.where(patch == y, "aligned", "conflicting"))


def trained(law, seed=0, steps=20):
    data = patched_digits()
    torch.manual_seed(seed)
    model = mlp(68, (64,), 1)
    laws = () if law is None else (law,)
    recipe = tm.Recipe(lr=0.05, steps=steps, batch=64, loss=tm.Logistic(), interventions=laws)
    run = tm.train(model, data, data, recipe, watch=tm.Watch(when=tm.record.at([0, steps])), seed=seed)
    return model, run


@pytest.mark.parametrize("scout", [25, 75, 300])
def test_the_errors_of_a_scout_are_the_conflicting_points(scout):
    _, run = trained(I.JTT(times=20, scout=scout))
    (account,) = run.origin.settings["data_interventions"]
    assert account["picked"] == 61
    assert dict(account["precision"])["conflicting"] == 1.0
    assert dict(account["recall"])["conflicting"] == 1.0


def test_repeating_errors_once_is_plain_training():
    one, _ = trained(I.JTT(times=1, scout=5))
    plain, _ = trained(None)
    for a, b in zip(one.parameters(), plain.parameters(), strict=True):
        assert torch.equal(a, b)


def test_errors_are_repeated_and_the_rest_is_not():
    data = tm.GroupedData(np.arange(4.0)[:, None], [0, 1, 0, 1], ["a", "a", "b", "b"])
    snapshot = SimpleNamespace(decision=np.array([0, 0, 0, 1]))
    assert I.JTT(times=3).data(data, snapshot).x[:, 0].tolist() == [0, 1, 1, 1, 2, 3]


def test_the_lossier_cluster_of_every_class_is_repeated():
    data = tm.GroupedData(np.arange(8.0)[:, None], [0] * 4 + [1] * 4, ["a", "b"] * 4)
    score = np.array([-2.0, -2.1, 1.0, 1.1, 2.0, 2.1, -1.0, -1.1])
    loss = np.log1p(np.exp(np.where(data.y == 1, -score, score)))
    snapshot = SimpleNamespace(loss=loss, score=score)
    found = lab.interventions.USEFUL(times=2).data(data, snapshot).x[:, 0].tolist()
    assert found == [0, 1, 2, 2, 3, 3, 4, 5, 6, 6, 7, 7]
    assert lab.interventions.USEFUL(times=2).account(data, None, snapshot)["picked"] == 4


def test_a_class_with_one_output_value_is_left_alone():
    data = tm.GroupedData(np.zeros((4, 1)), [0, 0, 1, 1], ["a", "b"] * 2)
    snapshot = SimpleNamespace(loss=np.ones(4), score=np.zeros(4))
    assert len(lab.interventions.USEFUL().data(data, snapshot)) == 4


def test_amplified_keeps_the_largest_group_whole():
    data = tm.GroupedData(np.zeros((131, 1)), np.zeros(131), ["a"] * 100 + ["b"] * 30 + ["c"])
    assert lab.interventions.Amplified(0.2).data(data, None).sizes == {"a": 100, "b": 6, "c": 1}
    assert lab.interventions.Amplified(1.0).data(data, None).sizes == data.sizes  # negative control: everything stays


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: I.JTT(times=0), "`times` should be a positive whole number"),
        (lambda: I.JTT(scout=0), "at least one step"),
        (lambda: lab.interventions.USEFUL(times=0), "`times` should be a positive whole number"),
        (lambda: lab.interventions.USEFUL(scout=0), "at least one step"),
        (lambda: lab.interventions.Amplified(0.0), "`keep` should lie above 0"),
        (lambda: lab.interventions.Amplified(scout=3), "it asks no model"),
    ],
)
def test_bad_input(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()


def test_easy_points_are_pruned_and_counted_by_group():
    """Losses 0 to 9: the five below the mean are easy; one of five stays, alone or five times."""
    data = tm.GroupedData(np.arange(10.0)[:, None], [0, 1] * 5, ["a"] * 5 + ["b"] * 5)
    snapshot = SimpleNamespace(loss=np.arange(10.0))
    law = lab.interventions.PrunedEasy(keep_one_of=5)
    kept = law.data(data, snapshot).x[:, 0]
    easy = kept[kept < 4.5]
    assert (len(kept), len(easy), len(set(easy))) == (10, 5, 1)
    assert len(lab.interventions.PrunedEasy(keep_one_of=5, rescale=False).data(data, snapshot)) == 6
    assert law.account(data, None, snapshot)["recall"] == [["a", 0.8], ["b", 0.0]]
    assert lab.interventions.PrunedEasy(keep_one_of=1).data(data, snapshot).x.tolist() == data.x.tolist()  # the control
    with pytest.raises(ValueError, match="`keep_one_of` should be a positive whole number"):
        lab.interventions.PrunedEasy(keep_one_of=0)
    with pytest.raises(ValueError, match="at least one step"):
        lab.interventions.PrunedEasy(scout=0)
    with pytest.raises(ValueError, match="needs the loss of every point"):
        law.data(data, SimpleNamespace(loss=None))


def test_rescaled_pruning_keeps_the_mean_loss_over_draws():
    """The mean over draws of the pruned and rescaled loss is that of all points; without rescaling it is larger."""
    losses = np.random.default_rng(0).exponential(size=400)
    data = tm.GroupedData(losses[:, None], np.arange(400) % 2, ["a", "b"] * 200)
    means = {
        rescale: np.array(
            [
                lab.interventions.PrunedEasy(keep_one_of=2, rescale=rescale, seed=seed)
                .data(data, SimpleNamespace(loss=losses))
                .x.mean()
                for seed in range(60)
            ]
        )
        for rescale in (True, False)
    }
    assert abs(means[True].mean() - losses.mean()) < 4 * means[True].std() / 60**0.5 + 2e-3  # odd counts round up
    assert means[False].mean() > losses.mean() + 0.1
