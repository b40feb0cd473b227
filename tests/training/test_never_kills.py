"""The observer never kills a training and never lies about what the outputs are."""

import copy
import random
import subprocess
import sys
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
        probe = tm.Probe(twin := copy.deepcopy(net), data, tm.Watch(when=tm.record.every(1), read=read), budget=None)
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
        probe = tm.Probe(net, data, budget=None)  # a warning would be an error here
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
    with tm.Probe(net, data, tm.Watch(when=tm.record.every(1)), tmp_path / "run", budget=None) as probe:
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

    probe = tm.Probe(nn.Linear(WIDTH, 1), data, tm.Watch(measures=(broken,)), budget=None)
    with pytest.warns(UserWarning, match="The measure 'broken' failed at step 0: KeyError"):
        probe(0)
    probe.close()
    assert "broken" not in probe.trajectory()
    assert probe.trajectory()["loss"].sizes["time"] == 1
    assert {failure.measure for failure in probe.failures} == {"broken"}


def test_steps_that_go_back_do_not_stop_the_second_epoch(data):
    with tm.Probe(net := nn.Linear(WIDTH, 1), data, tm.Watch(when=tm.record.every(1)), budget=None) as probe:
        probe(0)
        probe(1)
        with pytest.warns(UserWarning, match="`step` should count updates over the whole training"):
            probe(0)
        with torch.no_grad():
            net.weight.add_(1.0)
    assert probe.trajectory()["loss"].time.values.tolist() == [0, 1, 2]


def test_a_disk_that_is_gone(data, tmp_path):
    import shutil

    with tm.Probe(nn.Linear(WIDTH, 1), data, tm.Watch(when=tm.record.every(1)), tmp_path / "run", budget=None) as probe:
        probe(0)
        shutil.rmtree(tmp_path / "run")
        with pytest.warns(UserWarning, match="The evaluation failed at step 1"):
            probe(1)
    assert probe.failures


def test_strict_raises(data, tmp_path):
    net = Breaks()
    probe = tm.Probe(net, data, strict=True, budget=None)
    net.broken = True
    with pytest.raises(RuntimeError, match="out of memory"):
        probe(0)
    net.broken = False
    with (
        pytest.raises(RuntimeError, match="out of memory"),
        tm.Probe(net, data, to=tmp_path / "r", strict=True, budget=None),
    ):
        net.broken = True  # at the last evaluation
    assert tm.record.check(tmp_path / "r").state == "failed"


def test_what_is_no_exception_is_raised(data):
    def stopped(y_true, y_score):
        raise KeyboardInterrupt

    probe = tm.Probe(nn.Linear(WIDTH, 1), data, tm.Watch(measures=(stopped,)), budget=None)
    with pytest.raises(KeyboardInterrupt):
        probe(0)


def test_wrong_arguments_still_raise(data):
    net = Breaks()
    net.broken = True
    with pytest.raises(RuntimeError, match="out of memory"):
        tm.Probe(net, data, budget=None)


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


def watched_steps(data, tmp_path, name, steps=600, batch=16, **options):
    """The steps at which a loop is evaluated, and the probe."""
    net = nn.Linear(WIDTH, 1)
    optimiser = torch.optim.SGD(net.parameters(), lr=0.01)
    x = torch.as_tensor(data.x, dtype=torch.float32)
    with tm.Probe(net, data, tm.Watch(when=tm.record.every(5)), tmp_path / name, **options) as probe:
        for step in range(steps):
            probe(step)
            optimiser.zero_grad()
            net(x[:batch]).square().mean().backward()
            optimiser.step()
    return tm.load(tmp_path / name)["loss"].time.values.tolist(), probe


def test_by_default_evaluations_take_a_tenth_by_count(data, tmp_path):
    """90 points after batches of 16: 90 / 48 + 4 steps for one evaluation, so that the last comes in time as well."""
    steps, probe = watched_steps(data, tmp_path, "run")
    assert probe.plan.batch == 16
    assert probe.plan.cost == 90 / 48 + 4
    assert steps[0] == 0
    assert steps[-1] == 600
    taken = [0]
    for step in range(5, 600, 5):
        if (len(taken) + 2) * (90 / 48 + 4) <= 0.1 * step:
            taken.append(step)
    assert steps == [*taken, 600]
    report = tm.record.check(tmp_path / "run")
    assert report.left_out == 120 - len(taken)
    assert f"{report.left_out} planned ones were left out." in str(report)
    whole, _ = watched_steps(data, tmp_path, "whole", budget=None)
    assert whole == list(range(0, 601, 5))
    spread, _ = watched_steps(data, tmp_path, "spread", settings={"steps": 600})
    assert (spread[0], spread[-1], len(spread)) == (0, 600, int(60 / (90 / 48 + 4)))
    assert max(np.diff(spread)) < 1.5 * 600 / (len(spread) - 1)


def test_the_same_loop_is_evaluated_at_the_same_steps_on_a_busy_machine(data, tmp_path):
    alone, _ = watched_steps(data, tmp_path, "alone")
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        beside, _ = watched_steps(data, tmp_path, "beside")
    finally:
        busy.kill()
        busy.wait()
    assert alone == beside


def test_a_resumed_run_keeps_to_its_plan_and_misses_nothing_that_was_left_out(data, tmp_path):
    whole, _ = watched_steps(data, tmp_path, "whole", settings={"batch": 16})
    net = nn.Linear(WIDTH, 1)
    watch, options = tm.Watch(when=tm.record.every(5)), {"settings": {"batch": 16}}
    for start, end in ((0, 333), (333, 600)):
        probe = tm.Probe(net, data, watch, tmp_path / "parts", resume=start > 0, **options)
        for step in range(start, end):
            probe(step)
            with torch.no_grad():
                net.weight.add_(0.01)
        if end == 600:
            probe.close()
        del probe
    assert tm.load(tmp_path / "parts")["loss"].time.values.tolist() == whole
    with pytest.raises(ValueError, match=r"and \d+ evaluations, of steps [\d,]+ to [\d,]+, are missing"):
        tm.Probe(net, data, watch, tmp_path / "parts", resume=True, **options)(5000)


def test_what_exceeds_the_budget_anyway_is_said_once_at_the_end(data, tmp_path):
    with pytest.warns(
        UserWarning, match=r"The first and the last evaluation alone are about \S+ x the training"
    ) as said:
        steps, _ = watched_steps(data, tmp_path, "short", steps=20)
    assert steps == [0, 20]
    assert len(said) == 1
    assert "the other 3 that were planned were left out" in str(said[0].message)


def test_a_high_cost_is_said_once(data, monkeypatch):
    from tiltmeter.training import probe as module

    monkeypatch.setattr(module, "NOTICEABLE", 0.01)
    probe = tm.Probe(Slow(), data, tm.Watch(when=tm.record.every(1)), budget=None)
    probe(0)
    probe(1)
    with pytest.warns(
        UserWarning, match=r"x the time of the training itself.* Fewer held-out points or evaluations cost less"
    ):
        probe(2)
    probe(3)


def test_a_bad_budget_is_refused(data):
    with pytest.raises(ValueError, match=r"a positive share of the training\. Found budget = 0\."):
        tm.Probe(nn.Linear(WIDTH, 1), data, budget=0)


def test_planned_evaluations_are_counted_where_the_length_is_known(data):
    probe = tm.Probe(Slow(), data, tm.Watch(when=tm.record.every(10)), settings={"steps": 40}, budget=None)
    probe(0)
    for step in range(1, 11):
        probe(step)
    assert probe.cost.planned == 5
    assert "5 are planned: " in str(probe.cost)
    assert "planned" not in str(tm.Probe(Slow(), data, budget=None).cost)
