"""train: what is drawn, what is weighed, and how it goes on after a kill."""

import os
import random
import subprocess
import sys
import time
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

import tiltmeter as tm
from tiltmeter.data.example_weights import example_weights
from tiltmeter.modules.untouched import streams
from tiltmeter.recipe.sampling import Draws, Epochs
from tiltmeter.training.checkpoint import NAME

SGD = partial(torch.optim.SGD, lr=0.1)


def parts(flat):
    return flat.split(0.5)


class TestSampling:
    def test_an_epoch_has_every_point_once(self, flat):
        for epoch in range(3):
            seen = [Epochs().batch(flat, 32, 0, 7 * epoch + step) for step in range(7)]
            assert [len(part) for part in seen] == [32] * 6 + [8]
            assert sorted(np.concatenate(seen)) == list(range(200))
        assert not np.array_equal(Epochs().batch(flat, 32, 0, 0), Epochs().batch(flat, 32, 0, 7))
        assert not np.array_equal(Epochs().batch(flat, 32, 0, 0), Epochs().batch(flat, 32, 1, 0))

    def test_draws_follow_the_proportions(self, flat):
        drawn = np.concatenate([Draws({"a": 1.0, "b": 3.0}).batch(flat, 50, 0, step) for step in range(80)])
        share = np.mean(flat.codes[drawn] == 1)
        assert abs(share - 0.75) < 4 * np.sqrt(0.75 * 0.25 / 4000)
        assert set(drawn) == set(range(200))

    def test_draws_are_as_in_the_data_by_default(self, flat):
        drawn = np.concatenate([Draws().batch(flat, 50, 0, step) for step in range(80)])
        assert abs(np.mean(flat.codes[drawn] == 1) - 0.2) < 4 * np.sqrt(0.2 * 0.8 / 4000)

    def test_nothing_is_remembered(self, flat):
        np.testing.assert_array_equal(Draws().batch(flat, 5, 3, 1000), Draws().batch(flat, 5, 3, 1000))


class TestWeights:
    def test_groups_cells_and_the_datas_own_multiply(self, flat):
        data = tm.GroupedData(flat.x, flat.y, [flat.groups[c] for c in flat.codes], np.full(200, 0.5))
        found = example_weights(data, {"b": 2.0, ("a", 1): 3.0})
        expected = 0.5 * np.where(flat.codes == 1, 2.0, np.where(flat.y == 1, 3.0, 1.0))
        np.testing.assert_array_equal(found, expected)

    def test_a_group_may_itself_be_a_pair(self, flat):
        data = tm.GroupedData(flat.x, flat.y, [("a", 1) if c else ("b", 0) for c in flat.codes])
        np.testing.assert_array_equal(example_weights(data, {("a", 1): 2.0}), np.where(flat.codes == 1, 2.0, 1.0))

    def test_a_weight_of_zero_is_a_group_left_out(self, flat):
        """The second route: training without these points, with the learning rate of the smaller batch."""
        train, held_out = parts(flat)
        only = train.take(train.of_group("a"))
        finals = []
        for data, weights, lr in ((train, {"b": 0.0}, 0.1), (only, None, 0.1 * len(only) / len(train))):
            torch.manual_seed(0)
            model = nn.Linear(6, 1)
            tm.train(model, data, held_out, tm.Recipe(lr=lr, steps=20, batch=len(data), weights=weights))
            finals.append(model.weight.detach())
        torch.testing.assert_close(*finals, rtol=1e-4, atol=1e-6)

    def test_the_loss_must_tell_points_apart(self, images):
        train, held_out = images.split(0.5)
        loss = nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0, 3.0, 4.0]))
        model = nn.Sequential(nn.Flatten(), nn.Linear(64, 4))
        with pytest.raises(ValueError, match="Weights multiply the loss of each point, but CrossEntropyLoss"):
            tm.train(model, train, held_out, tm.Recipe(SGD, steps=3, weights={"b": 2.0}, loss=loss))


class TestTrain:
    def test_it_is_a_plain_loop_with_a_probe(self, flat):
        """Second route: the same loop written out."""
        train, held_out = parts(flat)
        torch.manual_seed(0)
        model = nn.Linear(6, 1)
        mine = nn.Linear(6, 1)
        mine.load_state_dict(model.state_dict())
        run = tm.train(model, train, held_out, tm.Recipe(SGD, steps=30, batch=16, loss=tm.Logistic()), seed=5)
        optimizer = SGD(mine.parameters())
        x, y = train.tensors()
        for step in range(30):
            chosen = Epochs().batch(train, 16, 5, step)
            optimizer.zero_grad()
            nn.functional.softplus(-(2.0 * y[chosen] - 1.0) * mine(x[chosen])[:, 0]).mean().backward()
            optimizer.step()
        torch.testing.assert_close(model.weight, mine.weight, rtol=0, atol=0)
        assert run["loss"].time.values[-1] == 30
        assert run.origin.seeds == (5,)
        assert run.origin.settings["recipe"]["optimiser"] == {"class": "SGD", "lr": 0.1}
        assert run.origin.settings["train"]["sizes"] == [["a", 80], ["b", 20]]

    def test_streams_of_the_caller_are_left_alone_and_decide_nothing(self, flat):
        train, held_out = parts(flat)
        finals = []
        for seed in (1, 2):
            torch.manual_seed(0)
            model = nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.5), nn.Linear(8, 1))
            torch.manual_seed(seed)
            random.seed(seed)
            before = streams()
            tm.train(model, train, held_out, tm.Recipe(SGD, steps=10), seed=7)
            after = streams()
            assert torch.equal(before["torch"], after["torch"])
            assert before["python"] == after["python"]
            finals.append(model[0].weight.detach())
        assert torch.equal(*finals)

    def test_epochs_count_batches(self, flat):
        train, held_out = parts(flat)
        run = tm.train(nn.Linear(6, 1), train, held_out, tm.Recipe(SGD, epochs=3, batch=32))
        assert run["loss"].time.values[-1] == 3 * 4

    def test_proportions_change_who_is_seen(self):
        """Group b has the opposite rule: whoever is drawn more is served better."""
        rng = np.random.default_rng(0)
        x = rng.normal(size=(600, 4))
        group = np.where(np.arange(600) % 2 == 0, "a", "b")
        data = tm.GroupedData(x, np.where((x[:, 0] > 0) ^ (group == "b"), 1, 0), group)
        train, held_out = data.split(0.5)
        for favoured in "ab":
            torch.manual_seed(0)
            run = tm.train(
                nn.Linear(4, 1),
                train,
                held_out,
                tm.Recipe(SGD, steps=300, proportions={favoured: 0.95, "ab".replace(favoured, ""): 0.05}),
            )
            assert tm.theory.leader_on_grid(run, "error").values[-1] == favoured

    def test_a_diverged_run_ends(self, flat, tmp_path):
        train, held_out = parts(flat)
        recipe = tm.Recipe(lr=1e6, steps=5000, loss=tm.Square())
        with pytest.warns(UserWarning, match="`lr` should stay below"):
            run = tm.train(nn.Linear(6, 1), train, held_out, recipe, to=tmp_path / "run")
        assert run.diverged.item() < 5000
        assert run["loss"].time.values[-1] == run.diverged.item()

    @pytest.mark.parametrize(
        ("options", "kind", "sentence"),
        [
            ({}, ValueError, "Say how long to train with either steps= or epochs=."),
            ({"steps": 5, "epochs": 1}, ValueError, "Say how long to train with either steps= or epochs=."),
            ({"steps": 0}, ValueError, "`steps` should be a positive integer. Found steps = 0."),
            ({"steps": 5, "batch": 2.5}, ValueError, "`batch` should be a positive integer. Found batch = 2.5."),
            ({"epochs": 1, "proportions": {"a": 1.0}}, ValueError, "`epochs` needs finite data"),
            ({"steps": 5, "proportions": {"c": 1.0}}, KeyError, "`proportions`: no group 'c'. There are: 'a', 'b'."),
            ({"steps": 5, "proportions": {"a": 1.0}, "sampling": Epochs()}, ValueError, "`proportions` is short for `sampling=Draws(proportions)`: give one"),
            ({"steps": 5, "sampling": "online"}, TypeError, "`sampling` should be Epochs() or Draws(). Found str."),
            ({"steps": 5, "weights": {"c": 1.0}}, KeyError, "`weights` names 'c'; it should name a group ('a', 'b') or (group, label)."),
            ({"steps": 5, "weights": {"a": -1.0}}, ValueError, "`weights` should be finite and not negative. Found -1.0 for 'a'."),
            ({"steps": 5, "resume": True}, ValueError, "`resume` continues a run directory: with `to=None` there is none"),
            ({"steps": 5, "optimiser": lambda p: 3}, TypeError, "`optimiser` should make a torch optimiser, as partial(torch.optim.AdamW, lr=3e-4). Found that it makes int."),
            ({"steps": 5, "train": 3}, TypeError, "`train` should be GroupedData. Found int."),
        ],
    )  # fmt: skip
    def test_sentences(self, flat, options, kind, sentence):
        train, held_out = parts(flat)
        options = {"train": train, "optimiser": SGD, **options}
        data, rest = options.pop("train"), {name: options.pop(name) for name in ("resume",) if name in options}
        with pytest.raises(kind) as error:
            tm.train(nn.Linear(6, 1), data, held_out, tm.Recipe(**options), **rest)
        assert sentence in str(error.value)


CHILD = """
import sys, time, numpy as np, torch, tiltmeter as tm
from functools import partial
from torch import nn
torch.set_num_threads(1)
folder, resume, pause = sys.argv[1], sys.argv[2] == "resume", float(sys.argv[3])
rng = np.random.default_rng(1)
x = rng.normal(size=(400, 6)).astype("float32")
data = tm.GroupedData(x, (x[:, 0] > 0).astype(int), np.where(np.arange(400) % 5 == 0, "b", "a"))
torch.manual_seed(0)
class Slow(nn.Module):
    def forward(self, x):
        if self.training: time.sleep(pause)
        return x
model = nn.Sequential(Slow(), nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 1))
train, held_out = data.split(0.5)
print("ready", flush=True)
recipe = tm.Recipe(partial(torch.optim.Adam, lr=1e-2), steps=400, batch=8, proportions={"a": 1, "b": 1})
run = tm.train(model, train, held_out, recipe, to=folder, checkpoint=tm.record.every(50), watch=tm.Watch(when=tm.record.every(20)),
               resume=resume)
torch.save({"model": model.state_dict(), "loss": torch.tensor(run["loss"].values)}, folder + ".final")
"""


def child(folder, mode, pause):
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, str(folder), mode, str(pause)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def recorded(folder):
    """Evaluations that are on the disk."""
    lines = folder / "curves.jsonl"
    return lines.read_bytes().count(b"\n") if lines.exists() else 0


@pytest.mark.filterwarnings("ignore")
@pytest.mark.slow
def test_killed_at_random_it_goes_on_to_the_same_weights(tmp_path):
    whole = child(tmp_path / "whole", "new", 0)
    killed = child(tmp_path / "killed", "new", 0.01)
    assert killed.stdout.readline() == "ready\n"
    rng = random.Random(0)
    in_the_middle = 0
    # By what is on the disk rather than by the clock: a busy machine must not turn this into a kill before the start.
    for evaluations in (rng.randint(0, 3), rng.randint(5, 8), rng.randint(9, 14)):
        while killed.poll() is None and recorded(tmp_path / "killed") < evaluations:
            time.sleep(0.005)
        time.sleep(rng.uniform(0.0, 0.1))
        killed.kill()
        killed.wait()
        in_the_middle += (tmp_path / "killed" / NAME).exists()
        if (tmp_path / "killed" / "run.json").exists():
            assert tm.record.check(tmp_path / "killed").ok
            assert tm.record.check(tmp_path / "killed").state == "died"
        killed = child(tmp_path / "killed", "resume", 0.01)
        assert killed.stdout.readline() == "ready\n", killed.stderr.read()
    assert killed.wait(timeout=120) == 0, killed.stderr.read()
    assert whole.wait(timeout=120) == 0, whole.stderr.read()
    assert in_the_middle >= 2, "kills came before the first checkpoint"
    ends = [torch.load(tmp_path / f"{name}.final", weights_only=True) for name in ("whole", "killed")]
    for name in ends[0]["model"]:
        assert torch.equal(ends[0]["model"][name], ends[1]["model"][name]), name
    assert torch.equal(ends[0]["loss"], ends[1]["loss"])
    assert tm.load(tmp_path / "killed")["loss"].time.values.tolist() == list(range(0, 401, 20))


class TestCheckpoint:
    RECIPE = tm.Recipe(SGD, steps=40, batch=8)

    def options(self, tmp_path):
        watch = tm.Watch(when=tm.record.every(10))
        return {"to": tmp_path / "run", "checkpoint": tm.record.every(10), "watch": watch}

    def test_a_finished_run_resumes_to_its_end(self, flat, tmp_path):
        train, held_out = parts(flat)
        first, second = nn.Linear(6, 1), nn.Linear(6, 1)
        a = tm.train(first, train, held_out, self.RECIPE, **self.options(tmp_path))
        b = tm.train(second, train, held_out, self.RECIPE, **self.options(tmp_path), resume=True)
        assert torch.equal(first.weight, second.weight)
        assert a == b

    def test_another_model_does_not_fit(self, flat, tmp_path):
        train, held_out = parts(flat)
        tm.train(nn.Linear(6, 1), train, held_out, self.RECIPE, **self.options(tmp_path))
        other = nn.Sequential(nn.Linear(6, 1))
        with pytest.raises(ValueError, match=r"has another origin: `settings\.model\.\S+` was"):
            tm.train(other, train, held_out, self.RECIPE, **self.options(tmp_path), resume=True)

    def test_a_damaged_checkpoint_is_named(self, flat, tmp_path):
        train, held_out = parts(flat)
        tm.train(nn.Linear(6, 1), train, held_out, self.RECIPE, **self.options(tmp_path))
        torch.save({"step": 3, "model": {}, "optimizer": {}}, tmp_path / "run" / NAME)
        with pytest.raises(ValueError, match="does not fit this model and optimiser"):
            tm.train(nn.Linear(6, 1), train, held_out, self.RECIPE, **self.options(tmp_path), resume=True)

    def test_nothing_is_unpickled(self, flat, tmp_path):
        """A checkpoint that would run code on loading is refused and runs nothing."""
        import pickle

        class Evil:
            def __reduce__(self):
                return (os.mkdir, (str(tmp_path / "harm"),))

        train, held_out = parts(flat)
        tm.train(nn.Linear(6, 1), train, held_out, self.RECIPE, **self.options(tmp_path))
        torch.save({"step": Evil()}, tmp_path / "run" / NAME)
        with pytest.raises((ValueError, pickle.UnpicklingError)):
            tm.train(nn.Linear(6, 1), train, held_out, self.RECIPE, **self.options(tmp_path), resume=True)
        assert not (tmp_path / "harm").exists()
