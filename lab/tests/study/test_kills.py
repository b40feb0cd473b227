"""Sixty kills at random moments, on processes and on a Dask scheduler with two workers."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import cells_for_tests as cells
import numpy as np
import pytest

from tiltmeter_lab.study import Study

FOLDER = str(Path(__file__).parent)
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join([*filter(None, sys.path), FOLDER]), "OMP_NUM_THREADS": "1"}
DRIVER = """
import sys
from tiltmeter_lab.study import Study
place, address = sys.argv[1:]
executor = None
if address:
    from distributed import Client
    executor = Client(address, timeout=10)
print(Study.load(place).run(executor, progress=False, jobs=None if address else 2), flush=True)
"""


class Ledger:
    """What was complete when: a complete cell must stay as it is and never begin again."""

    def __init__(self, study, log):
        self.study, self.log = study, log
        self.seen, self.begins = {}, 0

    def check(self):
        found = {}
        for key in os.listdir(self.study.places.root / "cells"):
            path = self.study.places.result(key) / "cell.json"
            found[key] = path.stat().st_ino, path.stat().st_mtime_ns
        for key, was in self.seen.items():
            assert found.get(key) == was, "a finished cell was lost or computed again"
        lines = self.log.read_text().split()
        names = {f"{cell.settings['a']}-{cell.settings['seed']}": cell.key for cell in self.study.all_cells}
        fresh = [names[line] for line in lines[self.begins :]]
        again = [key for key in fresh if key in self.seen]
        assert not again, "a finished cell began again"
        self.seen, self.begins = found, len(lines)


def make(tmp_path, count, pause):
    log = tmp_path / "log"
    factors = {"a": list(range(count)), "log": [str(log)], "pause": [pause]}
    # Many tries: here every death is the test's doing.
    study = Study(cells.logged, factors, to=tmp_path / "study", tries=50)
    with ThreadPoolExecutor(1) as pool:
        study.run(pool, progress=False, only={"a": 0})
    return study, Ledger(study, log)


def start_driver(study, address=""):
    return subprocess.Popen(
        [sys.executable, "-c", DRIVER, str(study.to), address],
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def computing(study):
    """The processes that compute a cell now."""
    found = []
    for lock in (study.places.root / "work").glob("*.lock"):
        with contextlib.suppress(OSError, ValueError, KeyError):
            found.append(json.loads(lock.read_text())["pid"])
    return found


def wait_for(condition, seconds=90.0):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it took too long"
        time.sleep(0.05)


def same_as_undisturbed(study, tmp_path):
    """The table of the killed study is, to the bit, that of one that nothing happened to."""
    quiet = Study(cells.numbers, {"a": study.factors["a"]}, to=tmp_path / "quiet")
    with ThreadPoolExecutor(1) as pool:
        quiet.run(pool, progress=False)
    mine = study.table().squeeze(("log", "pause"), drop=True)
    assert mine.identical(quiet.table())
    assert [name for name in os.listdir(study.places.root / "work") if not name.endswith(".lock")] == []


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_thirty_kills_of_drivers_and_processes(tmp_path):
    study, ledger = make(tmp_path, 90, 0.3)
    random = np.random.default_rng(0)
    driver = start_driver(study)
    kills = 0
    while kills < 30:
        begun = ledger.log.read_text().count("\n")
        alive = driver.poll
        wait_for(lambda begun=begun, alive=alive: ledger.log.read_text().count("\n") > begun or alive() is not None)
        if driver.poll() is not None:
            break
        time.sleep(random.uniform(0, 0.4))
        workers = computing(study)
        if workers and random.random() < 0.6:
            with contextlib.suppress(ProcessLookupError):
                os.kill(workers[int(random.integers(len(workers)))], signal.SIGKILL)
        else:
            driver.kill()
            driver.wait()
            ledger.check()
            driver = start_driver(study)
        kills += 1
        ledger.check()
    assert kills == 30, "the study was over before the kills were: give it more cells"
    said, _ = driver.communicate(timeout=600)
    assert "90 of 90 cells done, 0 failed" in said
    ledger.check()
    same_as_undisturbed(study, tmp_path)


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Cluster:
    """A scheduler and two workers, each a process that may be killed and is then replaced."""

    def __init__(self, folder):
        self.folder, self.port = folder, free_port()
        self.address = f"tcp://127.0.0.1:{self.port}"
        self.parts = {name: self.start(name) for name in ("scheduler", "worker 0", "worker 1")}

    def start(self, name):
        common = [
            sys.executable,
            "-m",
            "distributed.cli.dask_scheduler",
            "--host",
            "127.0.0.1",
            "--port",
            str(self.port),
        ]
        words = (
            [*common, "--no-dashboard"]
            if name == "scheduler"
            else [sys.executable, "-m", "distributed.cli.dask_worker", self.address, "--nthreads", "1", "--no-nanny",
                  "--no-dashboard", "--local-directory", str(self.folder / name.replace(" ", "")), "--death-timeout", "300"]
        )  # fmt: skip
        return subprocess.Popen(words, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def kill(self, name):
        self.parts[name].kill()
        self.parts[name].wait()
        self.parts[name] = self.start(name)

    def replace_the_dead(self):
        for name, part in self.parts.items():
            if part.poll() is not None:
                self.parts[name] = self.start(name)

    def close(self):
        for part in self.parts.values():
            part.kill()
            part.wait()


@pytest.mark.slow
@pytest.mark.timeout(2400)
def test_thirty_kills_of_driver_workers_and_scheduler_on_dask(tmp_path):
    pytest.importorskip("distributed")
    study, ledger = make(tmp_path, 90, 0.3)
    random = np.random.default_rng(1)
    cluster = Cluster(tmp_path)
    driver = start_driver(study, cluster.address)
    killed = {"driver": 0, "scheduler": 0, "worker 0": 0, "worker 1": 0}
    try:
        while sum(killed.values()) < 30:
            begun = ledger.log.read_text().count("\n")

            def moved(begun=begun):
                cluster.replace_the_dead()
                nonlocal driver
                # A driver that found no scheduler, or lost it, has ended with a sentence: repeat the command.
                if driver.poll() is not None and driver.returncode != 0:
                    driver = start_driver(study, cluster.address)
                return ledger.log.read_text().count("\n") > begun or driver.poll() == 0

            wait_for(moved, 180)
            if driver.poll() == 0:
                break
            time.sleep(random.uniform(0, 0.4))
            victim = str(random.choice(list(killed), p=[0.4, 0.2, 0.2, 0.2]))
            killed[victim] += 1
            if victim == "driver":
                driver.kill()
                driver.wait()
                driver = start_driver(study, cluster.address)
            else:
                cluster.kill(victim)
            ledger.check()
        assert sum(killed.values()) == 30, "the study was over before the kills were: give it more cells"
        assert all(killed.values()), killed
        while True:
            cluster.replace_the_dead()
            try:
                said, _ = driver.communicate(timeout=120)
            except subprocess.TimeoutExpired:
                driver.kill()
                driver.wait()
                said = ""
            if "90 of 90 cells done, 0 failed" in said:
                break
            driver = start_driver(study, cluster.address)
    finally:
        driver.kill()
        cluster.close()
    ledger.check()
    same_as_undisturbed(study, tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_dask_gives_the_same_table_and_knows_all_troubles(tmp_path):
    distributed = pytest.importorskip("distributed")
    cluster = Cluster(tmp_path)
    try:
        with distributed.Client(cluster.address, timeout=60) as client:
            study = Study(cells.numbers, {"a": [0.25, 0.5, 1]}, seeds=2, to=tmp_path / "dask")
            assert study.run(client, progress=False).complete
            with ThreadPoolExecutor(1) as pool:
                same = Study(cells.numbers, {"a": [0.25, 0.5, 1]}, seeds=2, to=tmp_path / "threads")
                same.run(pool, progress=False)
            assert study.table()["y"].values.tobytes() == same.table()["y"].values.tobytes()
            kinds = {"trouble": ["none", "raises", "dies", "hangs"], "log": [str(tmp_path / "log")]}
            troubled = Study(cells.troubled, kinds, to=tmp_path / "troubled", tries=2, limit=3.0)
            status = troubled.run(client, progress=False)
            assert (status.done, status.failed, status.left) == (1, 3, 0)
    finally:
        cluster.close()
