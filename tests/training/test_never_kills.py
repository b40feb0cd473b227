"""The observer never kills a training and never lies about what the outputs are."""

import copy
import random
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import tiltmeter as tm
from random_modules import WIDTH, random_module
from tiltmeter.measures.output_kind import gives_probabilities


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(90, WIDTH)).astype(np.float32)
    return tm.GroupedData(x, (x[:, 0] > 0).astype(int), np.where(np.arange(90) % 3, "a", "b"))


def trained(net, data, read, probe=None, steps=4):
    """A few steps of the user's own loop, and everything they left behind."""
    torch.manual_seed(7)
    np.random.seed(7)  # noqa: NPY002
    random.seed(7)
    optimiser = torch.optim.Adam(net.parameters(), lr=0.05)
    x, y = data.tensors()
    for step in range(steps):
        if probe is not None:
            probe(step)
        part = slice(16 * step, 16 * step + 16)
        output = net(x[part])
        score = output if read is None else read(output)
        target = torch.nn.functional.one_hot(y[part], 2).float() if score.ndim == 2 and score.shape[1] == 2 else y[part]
        loss = ((score.reshape(target.shape) - target) ** 2).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    if probe is not None:
        probe.close()
    drawn = [torch.rand(1).item(), np.random.random(), random.random()]  # noqa: NPY002
    return net.state_dict(), net.training, drawn


def check_module(number, seed, data):
    net, read, probabilities = random_module(number, seed)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*outputs are probabilities")
        probe = tm.Probe(twin := copy.deepcopy(net), data, tm.Watch(when=tm.record.every(1), read=read))
        seen = trained(twin, data, read, probe)
    assert probe.failures == ()
    assert sorted(probe.trajectory()["loss"].time.values.tolist()) == [0, 1, 2, 3, 4]
    alone = trained(net, data, read)
    for name, value in alone[0].items():
        assert torch.equal(value, seen[0][name]), name
    assert seen[1:] == alone[1:]
    with torch.no_grad():
        assert gives_probabilities(net.eval(), data.tensors()[0][:8], read) is probabilities


@pytest.mark.parametrize("number", range(24))
def test_random_modules(number, data):
    check_module(number, 0, data)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_two_hundred_random_modules(seed, data):
    for number in range(200):
        check_module(number, seed, data)


def test_a_norm_before_the_scores_is_no_sigmoid(data):
    """LayerNorm undoes any stretch of the inputs, so values between 0 and 1 stay there; the module says otherwise."""
    for seed in range(30):
        torch.manual_seed(seed)
        net = nn.Sequential(nn.Linear(WIDTH, 8), nn.LayerNorm(8), nn.ReLU(), nn.Linear(8, 1))
        with torch.no_grad():
            net[-1].weight.mul_(0.05)
            net[-1].bias.fill_(0.5)
        probe = tm.Probe(net, data)  # a warning would be an error here
        assert probe._answers.loss.definition == "logistic loss"
        assert not probe._answers.loss.of_probabilities


class Breaks(nn.Module):
    """Works until it is told to break."""

    def __init__(self):
        super().__init__()
        self.inner, self.broken = nn.Linear(WIDTH, 1), False

    def forward(self, x):
        if self.broken:
            raise RuntimeError("out of memory, perhaps")
        return self.inner(x)


def test_a_forward_that_fails_is_kept_and_said_once(data, tmp_path):
    net = Breaks()
    with tm.Probe(net, data, tm.Watch(when=tm.record.every(1)), tmp_path / "run") as probe:
        probe(0)
        net.broken = True
        with pytest.warns(UserWarning, match=r"failed at step 1: RuntimeError: out of memory, perhaps\. The") as said:
            probe(1)
        assert Path(said[0].filename) == Path(__file__)
        probe(2)  # nothing more is said
        net.broken = False
        probe(3)
    assert [failure.step for failure in probe.failures] == [1, 2]
    assert tm.load(tmp_path / "run")["loss"].time.values.tolist() == [0, 3]
    check = tm.record.check(tmp_path / "run")
    assert check.state == "finished"
    assert check.reason == "2 evaluations failed, the first at step 1: RuntimeError: out of memory, perhaps"


def test_a_measure_that_fails_takes_nothing_else_with_it(data):
    def broken(y_true, y_score):
        raise KeyError("no such thing")

    probe = tm.Probe(nn.Linear(WIDTH, 1), data, tm.Watch(measures=(broken,)))
    with pytest.warns(UserWarning, match="The measure 'broken' failed at step 0: KeyError"):
        probe(0)
    probe.close()
    assert "broken" not in probe.trajectory()
    assert probe.trajectory()["loss"].sizes["time"] == 1
    assert {failure.measure for failure in probe.failures} == {"broken"}


def test_steps_that_go_back_do_not_stop_the_second_epoch(data):
    with tm.Probe(net := nn.Linear(WIDTH, 1), data, tm.Watch(when=tm.record.every(1))) as probe:
        probe(0)
        probe(1)
        with pytest.warns(UserWarning, match="`step` should count updates over the whole training"):
            probe(0)
        with torch.no_grad():
            net.weight.add_(1.0)
    assert probe.trajectory()["loss"].time.values.tolist() == [0, 1, 2]


def test_a_disk_that_is_gone(data, tmp_path):
    import shutil

    with tm.Probe(nn.Linear(WIDTH, 1), data, tm.Watch(when=tm.record.every(1)), tmp_path / "run") as probe:
        probe(0)
        shutil.rmtree(tmp_path / "run")
        with pytest.warns(UserWarning, match="The evaluation failed at step 1"):
            probe(1)
    assert probe.failures


def test_strict_raises(data, tmp_path):
    net = Breaks()
    probe = tm.Probe(net, data, strict=True)
    net.broken = True
    with pytest.raises(RuntimeError, match="out of memory"):
        probe(0)
    net.broken = False
    with pytest.raises(RuntimeError, match="out of memory"), tm.Probe(net, data, to=tmp_path / "r", strict=True):
        net.broken = True  # at the last evaluation
    assert tm.record.check(tmp_path / "r").state == "failed"


def test_what_is_no_exception_is_raised(data):
    def stopped(y_true, y_score):
        raise KeyboardInterrupt

    probe = tm.Probe(nn.Linear(WIDTH, 1), data, tm.Watch(measures=(stopped,)))
    with pytest.raises(KeyboardInterrupt):
        probe(0)


def test_wrong_arguments_still_raise(data):
    net = Breaks()
    net.broken = True
    with pytest.raises(RuntimeError, match="out of memory"):
        tm.Probe(net, data)


def test_a_module_can_say_what_it_gives(data):
    scripted = nn.Linear(WIDTH, 1)
    scripted.gives_probabilities = True
    assert gives_probabilities(scripted, data.tensors()[0][:8], None)


class Slow(nn.Module):
    """Takes a moment in evaluation mode."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(WIDTH, 1)

    def forward(self, x):
        if not self.training:
            time.sleep(0.005)
        return self.inner(x)


def test_a_budget_leaves_evaluations_out(data):
    runs = []
    for budget in (None, 0.3):
        net = Slow()
        with tm.Probe(net, data, tm.Watch(when=tm.record.every(1)), budget=budget) as probe:
            for step in range(60):
                probe(step)
                time.sleep(0.001)
                with torch.no_grad():
                    net.inner.weight.add_(0.01)
        runs.append(probe)
    assert runs[0].cost.evaluations == 61
    assert 2 <= runs[1].cost.evaluations < 40
    assert runs[1].trajectory()["loss"].time.values[[0, -1]].tolist() == [0, 60]
    assert f"a forward pass over {len(data)} points" in str(runs[1].cost)


def test_a_budget_looks_at_fewer_points_where_all_take_long(data, tmp_path, monkeypatch):
    from tiltmeter.training import probe as module

    monkeypatch.setattr(module, "FEWER", 45)
    monkeypatch.setattr(module, "SMALLEST", 12)
    assert len(tm.Probe(nn.Linear(WIDTH, 1), data, budget=0.1)._answers.data) == 90  # nothing takes a second here
    monkeypatch.setattr(module, "LONG", 1e-9)
    net = nn.Linear(WIDTH, 1)
    with tm.Probe(net, data, tm.Watch(when=tm.record.every(1)), tmp_path / "run", budget=0.5) as probe:
        probe(0)
        assert probe.cost.points == 45
    kept = probe.trajectory().points["loss"]
    assert kept.sizes["point"] == 45
    assert sorted(np.unique(kept.group.values, return_counts=True)[1].tolist()) == [15, 30]  # of 30 and 60
    monkeypatch.setattr(module, "LONG", 1.0)
    resumed = tm.Probe(net, data, tm.Watch(when=tm.record.every(1)), tmp_path / "run", budget=0.5, resume=True)
    assert resumed.cost.points == 45
    resumed.close()
    monkeypatch.setattr(module, "LONG", 1e-9)
    monkeypatch.setattr(module, "SMALLEST", 500)
    assert tm.Probe(net, data, budget=0.1).cost.points == 90  # the smallest group is small already


def test_a_high_cost_is_said_once(data, monkeypatch):
    from tiltmeter.training import probe as module

    monkeypatch.setattr(module, "NOTICEABLE", 0.01)
    probe = tm.Probe(Slow(), data, tm.Watch(when=tm.record.every(1)))
    probe(0)
    probe(1)
    with pytest.warns(UserWarning, match=r"x the time of the training itself.* Probe\(\.\.\., budget=0\.1\)"):
        probe(2)
    probe(3)


def test_a_bad_budget_is_refused(data):
    with pytest.raises(ValueError, match=r"a positive share of the training's time\. Found budget = 0\."):
        tm.Probe(nn.Linear(WIDTH, 1), data, budget=0)


def test_planned_evaluations_are_counted_where_the_length_is_known(data):
    probe = tm.Probe(Slow(), data, tm.Watch(when=tm.record.every(10)), settings={"steps": 40})
    probe(0)
    for step in range(1, 11):
        probe(step)
    assert probe.cost.planned == 5
    assert "5 are planned: " in str(probe.cost)
    assert "planned" not in str(tm.Probe(Slow(), data).cost)
