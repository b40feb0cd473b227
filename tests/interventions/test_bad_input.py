"""What goes wrong most often, in networks: one sentence each, before anything is trained or written."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

import tiltmeter as tm

lab = pytest.importorskip("tiltmeter_lab")

I = tm.interventions
RECIPE = tm.Recipe(lr=0.2, steps=6, batch=16, loss=tm.Logistic())


def points(count=200, rare=0.25, seed=0):
    rng = np.random.default_rng(seed)
    other, y = rng.random(count) < rare, rng.integers(0, 2, count)
    x = rng.normal(size=(count, 3)).astype("float32")
    x[:, 0] += 2 * y - 1
    return tm.GroupedData(x, y, np.where(other, "rare", "common"), groups=("common", "rare"))


def network():
    torch.manual_seed(0)
    return nn.Linear(3, 1)


def told(law, kind=ValueError, train=None, tmp_path=None, **more):
    """What `train` says; the model is as it was, and there is no directory."""
    data, model = points() if train is None else train, network()
    with pytest.raises(kind) as error:
        tm.train(model, data, points(), replace(RECIPE, interventions=(law,)), to=tmp_path / "run", **more)
    assert torch.equal(model.weight, network().weight)
    assert not (tmp_path / "run").exists()
    assert str(error.value).strip("'\"").count(". ") <= 2
    return str(error.value)


@pytest.mark.parametrize(
    ("law", "name"),
    [
        (I.DualAscent({"common": 0.3}), "bound"),
        (I.GroupDRO(adjust={"common": 0.3}), "adjust"),
        (I.PullSchedule({"common": 0.3}), "pulls"),
    ],
    ids=["bound", "adjust", "pulls"],
)
def test_a_group_in_the_data_that_the_law_does_not_name(law, name, tmp_path):
    said = told(law, KeyError, tmp_path=tmp_path)
    assert f"`{name}` of {type(law).__name__} should name every group; 'rare' is missing" in said


def test_an_attribute_that_does_not_name_every_group(tmp_path):
    law = I.GradientReversal(attribute={"common": 0, "other": 1})
    assert "`attribute` should name every group. Missing: 'rare'" in told(law, tmp_path=tmp_path)


def test_a_bound_that_cannot_be_met_is_told_by_the_theory_and_nears_the_smallest_worst_loss():
    sgd = tm.SGD(lr=0.2, interventions=(I.DualAscent(0.1, rate=5.0, by="draws"),))
    problem = tm.teacher_mixture(rho=0.75, variance=(0.5, 1.5), overlap=0.7)
    with pytest.warns(UserWarning, match="It may need more time, or the bound cannot be met"):
        loss = tm.predict(problem, sgd, [0.0, 200.0])["loss"].values[-1]
    assert 0.273 < loss.max() < 0.29  # group DRO ends at .273, plain training at .351


def test_one_class_in_a_group(tmp_path):
    data = points()
    one = data.take(np.flatnonzero((data.y == 1) | (data.codes == 0)))
    for law in (I.GroupTemperature(), I.GroupThreshold("tpr")):
        said = told(law, validation=one, tmp_path=tmp_path)
        assert "of both labels in every group. Found y = 1 alone in 'rare'." in said


def test_a_group_that_batches_would_miss(tmp_path):
    pytest.importorskip("fairret")
    said = told(I.FairnessPenalty(), train=points(600, rare=0.04), tmp_path=tmp_path)
    assert "of batches of 16 would hold no point of 'rare'" in said


def test_a_group_without_points(tmp_path):
    data = points()
    alone = data.take(np.flatnonzero(data.codes == 0))
    assert "needs training groups" in told(I.GroupDRO(), train=alone, tmp_path=tmp_path)


def test_no_held_out_groups(tmp_path):
    for law in (I.DFR(), I.Erasure(), I.GroupTemperature(), I.GroupThreshold()):
        assert f"{type(law).__name__} needs validation groups: give validation=" in told(law, tmp_path=tmp_path)


def test_a_law_in_a_function_that_cannot_apply_it():
    for law in (I.UPGrad(), I.LfF(), I.SelecMix(), I.JTT(), lab.interventions.Fish(), I.DFR(), I.GroupThreshold()):
        with pytest.raises(ValueError, match=rf"`ensemble` cannot apply {type(law).__name__}, .* Use `train`\."):
            tm.ensemble(network, points(), points(), replace(RECIPE, interventions=(law,)), seeds=2)
        with pytest.raises(ValueError, match=type(law).__name__):
            tm.predict(tm.teacher_mixture(), tm.SGD(lr=0.1, batch=4, interventions=(law,)), [1.0])
