"""A recording process is killed at random instants; nothing it was told is recorded may be lost."""

import os
import time

import numpy as np
import pytest
import xarray as xr

from tiltmeter.record import Recorder, check, load

KILLS = 30


def reading(kind, step):
    """Values that tell from which step they are."""
    if kind == "arrays":
        return {"x": xr.DataArray(np.full((30, 40), step / 7), dims=("a", "b")), "norm": step / 3}
    return {"x": xr.DataArray([step / 7, np.nan], dims="group", coords={"group": ["+", "-"]}), "norm": step / 3}


def verify(path, kind, acknowledged):
    """Everything acknowledged is there, what is there is right, and the files agree that the writer died."""
    run = load(path)
    steps = run["norm"].time.values if "norm" in run else np.zeros(0)
    assert steps.tolist() == list(range(len(steps)))
    assert len(steps) > acknowledged
    assert len(steps) <= acknowledged + 2, "an evaluation may be recorded just before its acknowledgement, no more"
    if len(steps):
        assert (run["norm"].values == steps / 3).all()
        assert run["x"].time.equals(run["norm"].time)
        assert (run["x"].values.reshape(len(steps), -1)[:, 0] == steps / 7).all()
        if kind == "arrays":
            assert (run["x"].values == (steps / 7)[:, None, None]).all()
    report = check(path)
    assert (report.ok, report.state, report.evaluations) == (True, "died", len(steps)), report
    return len(steps)


@pytest.mark.parametrize("kind", ["lines", "arrays"])
@pytest.mark.slow
def test_killed_again_and_again_it_loses_nothing(tmp_path, origin, child, kind):
    """One run, continued after every kill."""
    path = tmp_path / "run"
    random = np.random.default_rng(5 if kind == "lines" else 6)
    recorded, kills_that_mattered = 0, 0

    def train(tell):
        recorder = Recorder(path, clock="step", origin=origin, resume=True)
        for step in range(0 if recorder.last_time is None else recorder.last_time + 1, 10**9):
            recorder.append(step, reading(kind, step))
            tell(step)

    for _ in range(KILLS):
        one = child(train)
        # Some while they open the run, most while they write.
        heard = [recorded - 1]
        if random.random() < 0.8:
            heard.append(one.hear())
        time.sleep(random.uniform(0, 0.02 if kind == "lines" else 0.01))
        one.kill()
        code, said = one.wait()
        assert code == -9, said
        if not (path / "run.json").exists():
            assert not said
            continue
        now = verify(path, kind, [*heard, *said][-1])
        kills_that_mattered += now > recorded
        recorded = now
    assert kills_that_mattered > KILLS / 2
    with Recorder(path, clock="step", origin=origin, resume=True) as recorder:
        assert recorder.last_time == recorded - 1
        recorder.append(recorded, reading(kind, recorded))
    assert check(path).state == "finished"
    assert load(path)["norm"].values[-1] == recorded / 3


def test_killed_while_it_begins_or_ends_it_is_a_run_or_no_obstacle(tmp_path, origin, child):
    states = set()
    random = np.random.default_rng(7)

    def train(tell, path):
        with Recorder(path, clock="step", origin=origin) as recorder:
            tell("begun")
            recorder.append(0, reading("arrays", 0))

    for attempt in range(KILLS):
        path = tmp_path / f"run{attempt}"
        one = child(lambda tell, path=path: train(tell, path))
        if attempt % 2:
            one.hear()
        time.sleep(random.uniform(0, 0.006))
        one.kill()
        _, said = one.wait()
        begun = (path / "run.json").exists()
        assert begun or not said
        if begun:
            report = check(path)
            assert report.ok, report
            states.add(report.state)
            load(path)
        else:
            states.add("no run yet")
        with Recorder(path, clock="step", origin=origin, resume=bool(begun)) as recorder:
            recorder.append(1, reading("arrays", 1))
        assert check(path).state == "finished"
        assert load(path)["norm"].values[-1] == 1 / 3
    assert len(states) >= 2, "the kills all fell into the same instant: change the waiting times"


def test_cut_at_any_byte_it_loads_as_a_prefix(tmp_path, origin):
    path = tmp_path / "run"
    with Recorder(path, clock="step", origin=origin) as recorder:
        for step in range(34):
            late = (
                {"late é": xr.DataArray([1.5, np.nan], dims="group", coords={"group": ["+", "-"]})} if step > 28 else {}
            )
            recorder.append(step, {"loss": step / 7, **late})
            if step == 15:
                recorder.diverged(15)
    (path / "end.json").unlink()
    curves = path / "curves.jsonl"
    whole = curves.read_bytes()
    assert 2048 < len(whole) < 3500
    full = load(path)
    for length in range(len(whole), len(whole) - 2049, -1):
        os.truncate(curves, length)
        run = load(path)
        evaluations = whole[:length].count(b'"evaluation"', 0, whole.rfind(b"\n", 0, length) + 1)
        for name in run:
            assert run[name].identical(full[name][: run[name].sizes["time"]])
        assert (run["loss"].sizes["time"] if "loss" in run else 0) == evaluations
        assert ("late é" in run) == (evaluations > 29)
    assert evaluations < 15


def test_every_cut_can_be_resumed(tmp_path, origin, make_run):
    path = make_run(tmp_path / "run", evaluations=3)
    curves = path / "curves.jsonl"
    whole = curves.read_bytes()
    for length in range(0, len(whole) + 1, 7):
        curves.write_bytes(whole[:length])
        (path / "end.json").unlink(missing_ok=True)
        with Recorder(path, clock="step", origin=origin, resume=True) as recorder:
            recorder.append(99, {"after": 1.0})
        assert curves.read_bytes().startswith(whole[: whole.rfind(b"\n", 0, length) + 1])
        assert load(path)["after"].time.values.tolist() == [99]
        assert check(path).ok
