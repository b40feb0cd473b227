"""Power cuts while trainings, probes, ensembles and recorders write: nothing short or wrong is believed afterwards, no
run gets a hole without a word, and nearly all go on to the very result that they would have had."""

import os
import warnings

import numpy as np
import pytest
import xarray as xr

import power_cuts

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

import tiltmeter as tm  # noqa: E402

WATCH = tm.Watch(when=tm.record.every(3))
STEPS = 45


def data():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(160, 4)).astype("float32")
    return tm.GroupedData(x, (x[:, 0] > 0).astype(int), np.where(np.arange(160) % 4 == 0, "b", "a")).split(0.5)


def network():
    return nn.Sequential(nn.Linear(4, 3), nn.Dropout(0.2), nn.Tanh(), nn.Linear(3, 1))


RECIPE = tm.Recipe(lr=0.05, momentum=0.9, steps=STEPS, batch=8, loss=tm.Logistic())


def train(folder):
    torch.manual_seed(0)
    settings = {"watch": WATCH, "to": folder / "run", "checkpoint": tm.record.every(6), "resume": True}
    return tm.train(network(), *data(), RECIPE, **settings)


def ensemble(folder):
    settings = {"watch": WATCH, "to": folder / "run", "checkpoint": tm.record.every(6), "resume": True}
    return tm.ensemble(network, *data(), RECIPE, seeds=2, **settings)


def keep_safely(state, path):
    """What a careful user does: written aside, synced, renamed."""
    aside = path.with_suffix(".aside")
    descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)

    class File:
        def write(self, data):
            return os.write(descriptor, data)

        def flush(self):
            pass

    torch.save(state, File())
    os.fsync(descriptor)
    os.close(descriptor)
    os.replace(aside, path)
    folder = os.open(path.parent, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)


def probe(folder):
    """A loop of the user's own, with checkpoints of its own."""
    torch.manual_seed(0)
    points, held_out = data()
    x, y = points.tensors()
    model = network()
    optimiser = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    saved, start = folder / "weights.pt", 0
    if saved.exists():
        state = torch.load(saved, weights_only=True)
        model.load_state_dict(state["model"])
        optimiser.load_state_dict(state["optimiser"])
        torch.set_rng_state(state["torch"])
        start = state["step"]
    going_on = (folder / "run" / "run.json").exists()
    with tm.Probe(model, held_out, WATCH, folder / "run", resume=going_on, budget=None) as probe:
        for step in range(start, STEPS):
            probe(step)
            if step % 5 == 0:
                state = {"model": model.state_dict(), "optimiser": optimiser.state_dict(), "step": step}
                keep_safely({**state, "torch": torch.get_rng_state()}, saved)
            batch = [(7 * step + k) % len(x) for k in range(8)]
            optimiser.zero_grad()
            nn.functional.binary_cross_entropy_with_logits(model(x[batch])[:, 0], y[batch].float()).backward()
            optimiser.step()
    return probe.trajectory()


def record(folder):
    """A recorder alone, with large arrays and points, continued after its last evaluation."""
    path = folder / "run"
    with tm.record.Recorder(path, clock="step", origin=tm.record.Origin("x"), resume=True) as recorder:
        for step in range(0 if recorder.last_time is None else recorder.last_time + 1, 12):
            values = {"norm": step / 3, "kernel": xr.DataArray(np.full(1500, step / 7), dims="k")}
            recorder.append(step, values, {"loss": xr.DataArray(np.full(40, step, "float32"), dims="point")})
            if step % 4 == 0:
                recorder.sync()
        return recorder.trajectory()


_RUN = []


def save(folder):
    if not _RUN:
        steps = np.arange(40)
        curve = xr.DataArray(np.ones((40, 200)), dims=("time", "k"), coords={"time": steps})
        points = xr.DataArray(np.ones((40, 500), "float32"), dims=("time", "point"), coords={"time": steps})
        _RUN.append(tm.Trajectory({"x": curve, "y": curve}, "step", tm.record.Origin("x"), points={"loss": points}))
    if not (folder / "run").exists():
        tm.save(_RUN[0], folder / "run")
    return tm.load(folder / "run")


def same(one, other):
    return one == other and one.points == other.points


def believed(path, whole):
    """What is wrong about what the library says of these files, or None."""
    if not (path / "run.json").exists():
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = tm.load(path)
        except (ValueError, OSError):
            return None
    state = tm.record.check(path).state
    if state == "finished":
        return None if same(found, whole) else "finished, and short or wrong"
    for name, curve in found.items():
        times = curve.time.values
        if not curve.identical(whole[name].sel(time=times)) or (times != whole[name].time.values[: len(times)]).any():
            return f"{name} is wrong or has a hole"
    return None


def judged(work, folder, whole):
    """How the work goes on from this folder: "identical", "refused" with its sentence, or what is wrong."""
    wrong = believed(folder / "run", whole)
    if wrong:
        return wrong, ""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = work(folder)
        except (ValueError, OSError) as error:
            return "refused", str(error)
        loaded = tm.load(folder / "run")
    if not same(found, loaded):
        return "what is returned is not what is stored", ""
    return ("identical", "") if same(found, whole) else ("a hole or another result", str(found))


def cut(work, tmp_path, count, seed):
    """So many power cuts, at calls drawn at random; how they ended."""
    folder = tmp_path / "recorded"
    folder.mkdir()
    work_of = tmp_path / "first"
    work_of.mkdir()
    whole = work(work_of)  # what is imported and compiled writes files of its own
    with power_cuts.recorded(folder) as recording:
        assert same(work(folder), whole)
    power_cuts.after_power_cut(recording, len(recording.calls), tmp_path / "replayed", None)
    assert power_cuts.tree(tmp_path / "replayed") == power_cuts.tree(folder), "every call was recorded"
    random, ends = np.random.default_rng(seed), {}
    for number in range(count):
        target = tmp_path / f"cut{number}"
        place = int(random.integers(1, len(recording.calls) + 1))
        power_cuts.after_power_cut(recording, place, target, random)
        end, sentence = judged(work, target, whole)
        ends.setdefault(end, []).append((number, place, sentence))
    print(f"\n{work.__name__}: { ({end: len(found) for end, found in ends.items()}) } of {len(recording.calls)} calls")
    for _, place, sentence in ends.get("refused", [])[:5]:
        print(f"  call {place}: {sentence}")
    assert set(ends) <= {"identical", "refused"}, ends
    assert all(sentence and "\n" not in sentence for _, _, sentence in ends.get("refused", []))
    return {end: len(found) for end, found in ends.items()}


KINDS = {train: 110, probe: 110, ensemble: 80, save: 80, record: 60}


@pytest.mark.parametrize("work", [probe, save, record], ids=lambda work: work.__name__)
def test_some_power_cuts(tmp_path, work):
    cut(work, tmp_path, 4, seed=1)


@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("work", KINDS, ids=lambda work: work.__name__)
def test_hundreds_of_power_cuts(tmp_path, work):
    """With the sixty of tests of studies there are five hundred."""
    ends = cut(work, tmp_path, KINDS[work], seed=2)
    assert ends["identical"] >= 0.93 * KINDS[work], ends


@pytest.mark.slow
def test_without_syncing_power_cuts_are_noticed(tmp_path, monkeypatch):
    """The disk of these tests is a harsh one: a library that syncs nothing loses most of its runs."""
    for name in ("atomic_files", "lines", "point_records", "disk"):
        for function in ("sync_file", "sync_folder"):
            monkeypatch.setattr(f"tiltmeter.record.directory.{name}.{function}", lambda _: None, raising=False)
    ends = cut(train, tmp_path, 40, seed=3)
    assert ends.get("identical", 0) < 36
