"""Checkpoints: nothing damaged is believed, a full disk is said, and every refusal is one sentence."""

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
    assert f"{NAME}: a checksum does not match" in str(damage)


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
