"""Checkpoints: nothing damaged is believed, a full disk is said, and every refusal is one sentence."""

import shutil

import numpy as np
import pytest
import torch
from torch import nn

import tiltmeter as tm
from tiltmeter.training.checkpoint import NAME

RECIPE = tm.Recipe(lr=0.05, momentum=0.9, steps=20, batch=8)


def data():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(120, 6))
    return tm.GroupedData(x, np.sign(x[:, 0]), rng.choice(["a", "b"], 120)).split(0.5)


def train(path, resume=False):
    torch.manual_seed(0)
    model = nn.Linear(6, 1)
    options = {
        "watch": tm.Watch(when=tm.record.every(10)),
        "to": path,
        "checkpoint": tm.record.every(10),
        "resume": resume,
    }
    tm.train(model, *data(), RECIPE, **options)
    return model.state_dict()


def ensemble(path, resume=False):
    options = {
        "watch": tm.Watch(when=tm.record.every(10)),
        "to": path,
        "checkpoint": tm.record.every(10),
        "resume": resume,
    }
    return tm.ensemble(lambda: nn.Linear(6, 1), *data(), RECIPE, seeds=2, **options)


def same(one, other):
    return one == other if isinstance(one, tm.Trajectory) else all(torch.equal(one[k], other[k]) for k in one)


def flipped(whole, place):
    return whole[:place] + bytes([whole[place] ^ 1 << place % 8]) + whole[place + 1 :]


def tried(make, path, damaged, wanted):
    """Resume from this file: the right weights or one sentence, never other weights."""
    (path / NAME).write_bytes(damaged)
    sentence = ""
    try:
        assert same(make(path, resume=True), wanted), "a damaged checkpoint was believed"
    except ValueError as error:
        sentence = str(error)
    assert not sentence or (NAME in sentence and "\n" not in sentence)
    return bool(sentence)


@pytest.mark.parametrize("make", [train, ensemble])
@pytest.mark.parametrize("count", [12, pytest.param(200, marks=pytest.mark.slow)])
def test_a_flipped_bit_is_never_believed(tmp_path, make, count):
    path = tmp_path / "run"
    wanted = make(path)
    whole = (path / NAME).read_bytes()
    rng = np.random.default_rng(0)
    refused = sum(tried(make, path, flipped(whole, int(place)), wanted) for place in rng.integers(0, len(whole), count))
    assert refused >= count // 6  # the rest fell into padding


@pytest.mark.parametrize("make", [train, ensemble])
def test_every_bit_of_the_numbers_counts(tmp_path, make):
    path = tmp_path / "run"
    wanted = make(path)
    whole = (path / NAME).read_bytes()
    numbers = (
        wanted["weight"].numpy().tobytes() if make is train else torch.load(path / NAME)["torch"].numpy().tobytes()
    )
    place = whole.index(numbers[:16])
    assert tried(make, path, flipped(whole, place + 3), wanted)
    damage = tm.record.check(path)
    assert not damage.ok
    assert f"{NAME}: its checksum does not match" in str(damage)


@pytest.mark.parametrize("make", [train, ensemble])
@pytest.mark.parametrize("kind", ["empty", "torn", "text", "a list", "pickle"])
def test_what_is_no_checkpoint_is_refused_in_a_sentence(tmp_path, make, kind):
    path = tmp_path / "run"
    wanted = make(path)
    whole = (path / NAME).read_bytes()
    if kind in ("a list", "pickle"):
        torch.save([1, 2], path / NAME, _use_new_zipfile_serialization=kind == "a list")
    held = {"empty": b"", "torn": whole[: len(whole) // 2], "text": b"step: 20\n"}
    assert tried(make, path, held.get(kind, (path / NAME).read_bytes()), wanted)


def test_a_full_disk_is_said_and_leaves_nothing_aside(tmp_path):
    resource = pytest.importorskip("resource")
    path = tmp_path / "run"
    train(path)
    before = (path / NAME).read_bytes()
    (path / "end.json").unlink()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    from tiltmeter.training.checkpoint import _write

    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    try:
        with pytest.raises(
            OSError, match=r"The checkpoint could not be written to .*: File too large\. The one before"
        ):
            _write(path, {"step": 1, "model": {"weight": torch.zeros(10_000)}})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (path / NAME).read_bytes() == before
    assert not list(path.glob("*.aside"))


@pytest.mark.parametrize("make", [train, ensemble])
def test_a_checkpoint_ahead_of_the_evaluations_is_said_with_the_choice(tmp_path, make):
    """As a copy of a running training leaves it, or a power cut: evaluations before the checkpoint are lost."""
    make(tmp_path / "whole")
    whole = tm.load(tmp_path / "whole")
    for name in ("accepted", "deleted"):
        copy = tmp_path / name
        shutil.copytree(tmp_path / "whole", copy)
        (copy / "end.json").unlink()
        lines = (copy / "curves.jsonl").read_bytes().splitlines(keepends=True)
        (copy / "curves.jsonl").write_bytes(lines[0])
        with pytest.raises(ValueError, match=r"stands at step 20, and the evaluation of step 10 is missing") as caught:
            make(copy, resume=True)
        assert f"Delete {copy / NAME} to train from the first step again" in str(caught.value)
    tm.record.accept_missing(tmp_path / "accepted", until=20)
    make(tmp_path / "accepted", resume=True)
    assert tm.load(tmp_path / "accepted")["loss"].time.values.tolist() == [0, 20]
    assert "Evaluations before 20 were lost." in str(tm.record.check(tmp_path / "accepted"))
    (tmp_path / "deleted" / NAME).unlink()
    make(tmp_path / "deleted", resume=True)
    assert tm.load(tmp_path / "deleted") == whole


def test_a_probe_asks_before_it_leaves_a_hole(tmp_path):
    held_out, model = data()[1], nn.Linear(6, 1)
    watch, path = tm.Watch(when=tm.record.every(5)), tmp_path / "run"
    with tm.Probe(model, held_out, watch, path, budget=None) as probe:
        for step in range(12):
            probe(step)
    with pytest.raises(ValueError, match=r"goes on at step 30, and 3 evaluations, of steps 15 to 25, are missing"):
        tm.Probe(model, held_out, watch, path, resume=True, budget=None)(30)
    with tm.Probe(model, held_out, watch, path, resume=True, budget=None) as probe:
        probe(14)
    tm.record.accept_missing(path, until=30)
    with tm.Probe(model, held_out, watch, path, resume=True, budget=None) as probe:
        probe(30)
    assert tm.load(path)["loss"].time.values.tolist() == [0, 5, 10, 15, 30]


def test_check_says_of_a_checkpoint_what_resuming_says(tmp_path):
    train(tmp_path / "run")
    torch.save({"no": "step"}, tmp_path / "run" / NAME)
    assert f"{NAME}: it is no checkpoint of tiltmeter" in tm.record.check(tmp_path / "run").problems
    with pytest.raises(ValueError, match="it is no checkpoint of tiltmeter"):
        train(tmp_path / "run", resume=True)
