"""What a probe keeps of every point: which evaluations, how much, resumed, switched off, and that leaders come from
it."""

import warnings

import numpy as np
import pytest
import torch
from torch import nn

import tiltmeter as tm
from tiltmeter.measures.point_keeper import kept_evaluation


def data(count=400, seed=0, classes=2):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, 5)).astype(np.float32)
    y = (x[:, 0] > 0).astype(int) if classes == 2 else rng.integers(0, classes, count)
    return tm.GroupedData(x, y, np.where(np.arange(count) % 4 == 0, "b", "a"))


def model(outputs=1):
    torch.manual_seed(0)
    return nn.Linear(5, outputs)


def trained(**watch):
    return tm.train(model(), *data().split(0.5), tm.Recipe(lr=0.1, steps=40), watch=tm.Watch(**watch))


def test_means_of_what_is_kept_are_the_curves():
    run = trained()
    loss, decided = run.points["loss"], run.points["decided_positive"]
    assert (loss.dtype, decided.dtype) == (np.float32, bool)
    for name in ("a", "b"):
        own = loss.coords["group"].values == name
        curve = run["loss"].sel(group=name)
        np.testing.assert_allclose(loss.values[:, own].mean(1), curve.sel(time=loss.time), rtol=1e-5)
        positive = loss.coords["positive"].values
        np.testing.assert_allclose(
            decided.values[:, own & positive].mean(1), run["tpr"].sel(group=name, time=loss.time)
        )


def test_the_probabilities_of_the_last_look_are_those_of_the_logistic_loss():
    run = trained()
    probability, loss = run.points["probability"], run.points["loss"].isel(time=-1)
    assert probability.time.values.tolist() == [40]
    right = np.where(loss.coords["positive"].values, probability.values[0], 1 - probability.values[0])
    np.testing.assert_allclose(right, np.exp(-loss.values), atol=1e-6)
    many = tm.ensemble(lambda: nn.Linear(5, 1), *data().split(0.5), tm.Recipe(lr=0.1, steps=40), seeds=2)
    assert many.points["probability"].dims == ("time", "point", "seed")
    ours = many.points["probability"].isel(time=-1).values > 0.5
    assert (ours == many.points["decided_positive"].isel(time=-1).values).all()


def test_several_classes_keep_whether_a_point_is_wrong():
    run = tm.train(model(3), *data(classes=3).split(0.5), tm.Recipe(lr=0.1, steps=5))
    assert set(run.points) == {"loss", "wrong", "confidence"}
    assert run.points["confidence"].time.values.tolist() == [run.points["loss"].time.values[-1]]
    assert tm.leaders(run).differences


def test_at_most_256_looks_of_a_billion_steps():
    kept, last = 0, None
    for step in np.unique(np.r_[0:2000, np.geomspace(2000, 1e9, 20_000).astype(np.int64)]):
        if kept_evaluation(int(step), last):
            kept, last = kept + 1, int(step)
    assert 200 < kept < 256


def test_the_last_look_is_always_kept():
    run = trained(when=tm.record.every(1))
    assert run.points["loss"].time.values[-1] == 40
    assert run.points["loss"].sizes["time"] < run["loss"].sizes["time"]


def test_switched_off():
    run = trained(points=False)
    assert len(run.points) == 0
    assert tm.leaders(run).basis == "standard errors"
    with pytest.raises(TypeError, match="points = 1"):
        tm.Watch(points=1)


def test_weighted_points_are_not_kept_and_not_judged():
    whole = data()
    held_out = tm.GroupedData(whole.x, whole.y, np.array(whole.groups)[whole.codes], weights=np.ones(len(whole)))
    with tm.Probe(model(), held_out, budget=None) as probe:
        pass
    assert len(probe.trajectory().points) == 0
    assert "weighted" in str(tm.leaders(probe.trajectory()))


def test_a_run_on_disk_and_in_memory_keeps_the_same(tmp_path):
    recipe = tm.Recipe(lr=0.1, steps=30)
    disk = tm.train(model(), *data().split(0.5), recipe, to=tmp_path / "run")
    memory = tm.train(model(), *data().split(0.5), recipe)
    assert tm.load(tmp_path / "run").points == memory.points
    assert str(tm.leaders(disk)) == str(tm.leaders(memory))


def test_an_ensemble_keeps_every_seed():
    runs = tm.ensemble(model, *data().split(0.5), tm.Recipe(lr=0.1, steps=20), seeds=6)
    assert runs.points["loss"].dims == ("time", "point", "seed")
    own = runs.points["loss"].coords["group"].values == "b"
    mean = runs.points["loss"].values[:, own].mean(1)
    np.testing.assert_allclose(mean, runs["loss"].sel(group="b", time=runs.points["loss"].time), rtol=1e-5)
    assert tm.leaders(runs).scope == "trainings"


def test_a_run_taken_up_at_an_earlier_step_drops_the_lost_looks(tmp_path):
    net, points = model(), data()
    with tm.Probe(net, points, tm.Watch(when=tm.record.every(10)), tmp_path / "run", budget=None) as probe:
        for step in range(31):
            probe(step)
    with tm.Probe(net, points, tm.Watch(when=tm.record.every(10)), tmp_path / "run", resume=True, budget=None) as probe:
        with pytest.warns(
            UserWarning, match="goes on at step 20, before its last evaluation at step 30: evaluations after step 20"
        ):
            probe(20)
        with torch.no_grad():
            net.weight += 1.0
        for step in range(21, 31):
            probe(step)
    again = tm.load(tmp_path / "run")
    assert again["loss"].time.values.tolist() == [0, 10, 20, 30]
    assert again.points["loss"].time.values.tolist() == [0, 10, 20, 30]
    losses = again["loss"].values
    assert np.allclose(losses[2], losses[0])
    assert not np.allclose(losses[3], losses[2])


class TestMisread:
    def probe(self, net, points, **options):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            probe = tm.Probe(net, points, **options, budget=None)
        return probe, [str(one.message) for one in said]

    @pytest.mark.parametrize("hidden", [True, False])
    def test_a_sigmoid_at_the_end_is_recognised_and_said(self, hidden):
        inner = model()

        class Hidden(nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = inner

            def forward(self, x):
                return torch.sigmoid(self.inner(x))

        net = Hidden() if hidden else nn.Sequential(inner, nn.Sigmoid())
        probe, said = self.probe(net, data())
        assert any("outputs are probabilities" in one and "logistic loss of probabilities" in one for one in said)
        probe.evaluate(0)
        plain, quiet = self.probe(inner, data())
        assert quiet == []
        plain.evaluate(0)
        for name in ("error", "tpr", "loss"):
            np.testing.assert_allclose(probe.trajectory()[name], plain.trajectory()[name], rtol=1e-4)

    def test_a_softmax_at_the_end_gives_the_same_curves(self):
        inner = model(3)
        probe, said = self.probe(nn.Sequential(inner, nn.Softmax(1)), data(classes=3))
        assert any("outputs are probabilities" in one for one in said)
        plain, _ = self.probe(inner, data(classes=3))
        for one in (probe, plain):
            one.evaluate(0)
        for name in ("loss", "error", "confidence"):
            np.testing.assert_allclose(probe.trajectory()[name], plain.trajectory()[name], rtol=1e-4)

    def test_a_loss_that_takes_scores_is_warned_about(self):
        net = nn.Sequential(model(), nn.Sigmoid())
        _, said = self.probe(net, data(), loss=nn.BCEWithLogitsLoss())
        assert any("takes scores before it" in one for one in said)

    def test_scores_that_happen_to_lie_between_0_and_1_are_not_probabilities(self):
        net = model()
        with torch.no_grad():
            net.weight.mul_(0.01)
            net.bias.fill_(0.5)
        assert self.probe(net, data())[1] == []

    def test_training_uses_the_loss_that_is_recorded(self):
        train, held_out = data().split(0.5)
        inner, net = model(), nn.Sequential(model(), nn.Sigmoid())
        recipe = tm.Recipe(lr=0.1, steps=20)
        plain = tm.train(inner, train, held_out, recipe)
        with pytest.warns(UserWarning, match="outputs are probabilities"):
            run = tm.train(net, train, held_out, recipe)
        np.testing.assert_allclose(run["loss"], plain["loss"], rtol=1e-3)

    def test_three_classes_with_one_output_are_refused(self):
        with pytest.raises(ValueError, match=r"decides between two labels\. Found 3 different ones: give it 3 outputs"):
            tm.Probe(model(), data(classes=3), budget=None)
        tm.Probe(model(), data(classes=3), loss=tm.Square(), budget=None)

    def test_labels_that_were_never_trained_on_are_refused(self):
        train, held_out = data(classes=2), data(classes=4)
        with pytest.raises(
            ValueError, match=r"`held_out` should have labels that `train` has too\. Found 2, 3 in `held_out` only"
        ):
            tm.train(model(4), train, held_out, tm.Recipe(lr=0.1, steps=2))
        with pytest.raises(ValueError, match="Found 2, 3 in `held_out` only"):
            tm.ensemble(lambda: model(4), train, held_out, tm.Recipe(lr=0.1, steps=2), seeds=2)

    def test_classes_that_were_never_trained_on_are_refused_before_training_too(self):
        train, held_out = data(classes=3), data(classes=4)
        with pytest.raises(ValueError, match="Found 3 in `held_out` only"):
            tm.tangent(model(4), train, held_out, sample=50)

    @pytest.mark.filterwarnings("ignore")
    def test_a_learning_rate_of_fifty_names_no_leader(self):
        train, held_out = data().split(0.5)
        run = tm.train(model(), train, held_out, tm.Recipe(lr=50.0, steps=300, loss=tm.Square()))
        assert run.diverged is not None
        judged = tm.leaders(run)
        assert "so nobody is named" in str(judged)
        assert (judged.phases, judged.changes, judged.last) == ((), (), "")

    def test_points_of_the_wrong_width_are_refused_in_a_sentence(self):
        with pytest.raises(
            ValueError, match=r"Found points of shape \(5,\), which it cannot. Its first linear layer takes 6"
        ):
            tm.Probe(nn.Linear(6, 1), data(), budget=None)


def test_the_third_part_of_a_split_is_for_the_judgement():
    parts = data(1000).split(held_out=0.2, judge=0.3)
    assert [len(part) for part in parts] == [500, 200, 300]
    rows = [tuple(row) for part in parts for row in part.x]
    assert len(set(rows)) == 1000
    with pytest.raises(ValueError, match=r"should leave points to train on. Found 0.5 \+ 0.5 of all"):
        data().split(held_out=0.5, judge=0.5)
    with pytest.raises(ValueError, match=r"`judge` should be a share strictly between 0 and 1\. Found judge = 0"):
        data().split(judge=0)
