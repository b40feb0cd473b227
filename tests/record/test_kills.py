"""Hundreds of kills over everything that writes run directories, with threads, points and large arrays."""

import threading
import time

import numpy as np
import pytest
import xarray as xr

from tiltmeter.record import Recorder, Trajectory, check, load, save

POINTS = 50


def evaluate(step, large):
    values = {"norm": step / 3}
    if large:
        values["x"] = xr.DataArray(np.full(1100, step / 7), dims="k")
    losses = xr.DataArray(np.full(POINTS, step, "float32"), dims="point")
    return values, {"loss": losses, "odd": xr.DataArray(np.full(POINTS, step % 2 == 1), dims="point")}


def train(path, origin, threads, large, tell):
    """Appends from several threads, each acknowledged; times are given out under a lock, so that none is refused."""
    recorder = Recorder(path, clock="step", origin=origin, resume=True)
    turn, following = threading.Lock(), [0 if recorder.last_time is None else recorder.last_time + 1]

    def work():
        while True:
            with turn:
                step = following[0]
                following[0] += 1
                values, points = evaluate(step, large)
                recorder.append(step, values, points=points)
            tell(step)

    helpers = [threading.Thread(target=work, daemon=True) for _ in range(threads - 1)]
    for helper in helpers:
        helper.start()
    work()


def verify(path, acknowledged, threads):
    run, report = load(path), check(path)
    assert (report.ok, report.state) == (True, "died"), report
    steps = run["norm"].time.values if "norm" in run else np.zeros(0)
    assert steps.tolist() == list(range(len(steps)))
    assert len(steps) > acknowledged
    if len(steps):
        assert (run["norm"].values == steps / 3).all()
        assert (run.points["loss"].values == steps[:, None]).all()
        assert (run.points["odd"].values == (steps[:, None] % 2 == 1)).all()
        assert run.points["loss"].sizes["time"] == len(steps)
    return len(steps)


def kill_again_and_again(path, origin, child, kills, threads, large, seed):
    random = np.random.default_rng(seed)
    recorded, mattered = 0, 0
    for _ in range(kills):
        one = child(lambda tell: train(path, origin, threads, large, tell))
        heard = [recorded - 1]
        if random.random() < 0.8:
            heard.append(one.hear())
        time.sleep(random.uniform(0, 0.015))
        one.kill()
        code, said = one.wait()
        assert code == -9, said
        if not (path / "run.json").exists():
            assert not said
            continue
        now = verify(path, max([*heard, *said]), threads)
        mattered += now > recorded
        recorded = now
    assert mattered > kills / 2
    with Recorder(path, clock="step", origin=origin, resume=True) as recorder:
        values, points = evaluate(recorded, large)
        recorder.append(recorded, values, points=points)
    assert check(path).state == "finished"


def save_and_be_killed(tmp_path, child, origin, kills, seed):
    """`save` is whole or absent; what is left beside it is never in the way."""
    steps = np.arange(40)
    curve = xr.DataArray(np.ones((40, 200)), dims=("time", "k"), coords={"time": steps})
    points = xr.DataArray(np.ones((40, 500), "float32"), dims=("time", "point"), coords={"time": steps})
    run = Trajectory({"x": curve, "y": curve}, "step", origin, points={"loss": points})
    random = np.random.default_rng(seed)
    there, begun = 0, time.perf_counter()
    for k in range(3):
        save(run, tmp_path / f"first{k}")
    longest = 2 * (time.perf_counter() - begun) / 3
    for k in range(kills):
        path = tmp_path / f"run{k}"

        def write(tell, path=path):
            tell("begun")
            save(run, path)
            tell("saved")

        one = child(write)
        one.hear()
        time.sleep(random.uniform(0, longest))
        one.kill()
        _, said = one.wait()
        assert path.exists() or not said
        if path.exists():
            there += 1
            assert check(path).ok
            assert load(path) == run
            assert load(path).points == run.points
        else:
            save(run, path)
    assert 0 < there < kills, "the kills all fell into the same instant: change the waiting times"


@pytest.mark.parametrize("threads", [1, 3])
def test_some_kills(tmp_path, origin, child, threads):
    kill_again_and_again(tmp_path / "run", origin, child, 8, threads, large=False, seed=threads)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("large", [False, True], ids=["lines", "arrays"])
@pytest.mark.parametrize("threads", [1, 4])
def test_two_hundred_and_forty_kills_while_recording(tmp_path, origin, child, threads, large):
    kill_again_and_again(tmp_path / "run", origin, child, 60, threads, large, seed=10 + threads + large)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_sixty_kills_while_saving(tmp_path, origin, child):
    save_and_be_killed(tmp_path, child, origin, 60, seed=20)
