"""Two hundred kills over train, ensembles and distributed training: nothing that was recorded is lost.

With those of tests/record/test_kills.py there are five hundred.
"""

import multiprocessing
import time
import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

import tiltmeter as tm  # noqa: E402

FORK = multiprocessing.get_context("fork")


def data():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(160, 4)).astype("float32")
    return tm.GroupedData(x, (x[:, 0] > 0).astype(int), np.where(np.arange(160) % 4 == 0, "b", "a")).split(0.5)


def network():
    return nn.Sequential(nn.Linear(4, 3), nn.Dropout(0.2), nn.Tanh(), nn.Linear(3, 1))


WATCH = tm.Watch(when=tm.record.every(5))


def train_alone(path, steps, resume=True):
    torch.manual_seed(0)
    recipe = tm.Recipe(lr=0.05, momentum=0.9, steps=steps, batch=8, loss=tm.Logistic())
    return tm.train(network(), *data(), recipe, watch=WATCH, to=path, checkpoint=tm.record.every(12), resume=resume)


def train_many(path, steps, resume=True):
    recipe = tm.Recipe(lr=0.05, momentum=0.9, steps=steps, batch=8, loss=tm.Logistic())
    settings = {"seeds": 2, "watch": WATCH, "to": path, "checkpoint": tm.record.every(12), "resume": resume}
    return tm.ensemble(network, *data(), recipe, **settings)


def train_two(rank, path, tries, steps):
    """One of two processes: rank 0 keeps a checkpoint of the weights; both held_out, each at its half."""
    import torch.distributed as dist

    warnings.simplefilter("ignore")
    meeting = f"file://{path.parent}/meeting{tries}"
    dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=2)
    _, held_out = data()
    half = held_out.take(np.arange(rank, len(held_out), 2))
    torch.manual_seed(0)
    model = nn.Linear(4, 1)
    saved, start = path.parent / "weights.pt", 0
    if saved.exists():
        state = torch.load(saved, weights_only=True)
        model.load_state_dict(state["model"])
        start = state["step"]
    ddp = nn.parallel.DistributedDataParallel(model)
    optimiser = torch.optim.SGD(ddp.parameters(), lr=0.01)
    x = torch.as_tensor(held_out.x)
    watch = tm.Watch(when=tm.record.every(2), sharded=True)
    with tm.Probe(ddp, half, watch, path, resume=(path / "run.json").exists(), budget=None) as probe:
        for step in range(start, steps):
            probe(step)
            optimiser.zero_grad()
            (ddp(x[rank::2]) ** 2).mean().backward()
            optimiser.step()
            if rank == 0 and step % 4 == 3:
                torch.save({"model": model.state_dict(), "step": step + 1}, saved.with_suffix(".aside"))
                saved.with_suffix(".aside").replace(saved)


def killed(*works, path, random):
    """Start these and kill all: mostly a moment after the run has grown, else at any moment of their start."""
    started = [FORK.Process(target=work, args=arguments, daemon=True) for work, arguments in works]
    before, end = size(path), time.monotonic() + 20.0
    for one in started:
        one.start()
    while random.random() > 1e-3 and size(path) <= before and time.monotonic() < end:
        time.sleep(0.01)
    time.sleep(random.uniform(0, 0.1))
    for one in started:
        one.kill()
    for one in started:
        one.join()


def size(path):
    file = path / "curves.jsonl"
    return file.stat().st_size if file.exists() else 0


def evaluations(path):
    if not (path / "run.json").exists():
        return {}
    report = tm.record.check(path)
    assert report.ok, report
    run = tm.load(path)
    if "loss" not in run:
        return {}
    return {int(t): values.tolist() for t, values in zip(run["loss"].time.values, run["loss"].values, strict=True)}


@pytest.mark.slow
@pytest.mark.timeout(1500)
@pytest.mark.parametrize(("work", "kills"), [(train_alone, 90), (train_many, 60)])
def test_a_training_goes_on_after_every_kill(tmp_path, work, kills):
    random = np.random.default_rng(kills)
    work(tmp_path / "first", 5, resume=False)  # what is imported here need not be imported after every kill
    path, seen, grew = tmp_path / "run", {}, 0
    for _ in range(kills):
        killed((work, (path, 100_000)), path=path, random=random)
        now = evaluations(path)
        assert {step: now.get(step) for step in seen} == seen, "evaluations that were there are there, unchanged"
        grew += len(now) > len(seen)
        seen = now
    assert grew > kills / 4
    last = max(seen)
    whole = work(tmp_path / "whole", last, resume=False)
    expected = {int(t): v.tolist() for t, v in zip(whole["loss"].time.values, whole["loss"].values, strict=True)}
    assert {step: expected[step] for step in seen} == seen, "as if nothing had happened, bit by bit"
    print(f"{work.__name__}: {kills} kills, {grew} with new evaluations, {len(seen)} evaluations")


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_fifty_kills_of_two_processes(tmp_path):
    random = np.random.default_rng(50)
    path, most, grew = tmp_path / "run", 0, 0
    for tries in range(50):
        works = [(train_two, (rank, path, tries, 100_000)) for rank in (0, 1)]
        killed(*works, path=path, random=random)
        now = evaluations(path)
        if now:
            # What came after the last checkpoint belongs to a training that is lost, and goes when it is resumed.
            assert sorted(now) == list(range(0, 2 * len(now), 2))
            assert len(now) >= most - 3
            grew += len(now) > most
            most = max(most, len(now))
    assert grew > 10
    print(f"two processes: 50 kills, {grew} with new evaluations, {most} evaluations")
