"""Running experiments: kept, resumed, the same every time, refused, failed."""

import json
import math
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

import tiltmeter as tm
from tiltmeter import Trajectory, load
from tiltmeter.record import Origin
from tiltmeter_lab.catalogue import find
from tiltmeter_lab.claim import Claim
from tiltmeter_lab.kept import Kept, file_name
from tiltmeter_lab.outcome import Outcome
from tiltmeter_lab.reproduce import outcomes_in, reproduce


def test_an_outcome_says_what_was_found_and_how(toy, tmp_path):
    heard = []
    outcome = reproduce("toy", to=tmp_path, tell=heard.append)
    assert (outcome.name, outcome.scale, outcome.seeds, outcome.state) == ("toy", "quick", 3, "run")
    assert [claim.verdict for claim in outcome.claims] == ["clear", "measured"]
    assert outcome.sentence == "toy (quick, 3 seeds, 0 s): 1 clear, 1 measured."
    assert outcome.runs == ("walk-0", "walk-1", "walk-2")
    assert [line.split(":")[0] for line in heard] == ["walk 0", "walk 1", "walk 2"]
    assert isinstance(load(tmp_path / "toy" / "quick" / "walk-1"), Trajectory)
    stored = json.loads((tmp_path / "toy" / "quick" / "outcome.json").read_text())
    assert stored.pop("crc")
    assert Outcome.from_json(stored) == outcome
    assert stored["claims"][0]["verdict"] == "clear"
    assert outcomes_in(tmp_path) == [outcome]


def test_a_second_time_makes_nothing_and_finds_the_same(toy, tmp_path):
    first = reproduce("toy", to=tmp_path)
    heard = []
    assert reproduce("toy", to=tmp_path, tell=heard.append) == first
    assert toy.calls == [0, 1, 2]
    assert heard == []


def test_two_places_give_the_same_numbers(toy, tmp_path):
    first, second = (reproduce("toy", to=tmp_path / place) for place in ("a", "b"))
    assert first.claims == second.claims
    for run in first.runs:
        assert load(tmp_path / "a" / "toy" / "quick" / run) == load(tmp_path / "b" / "toy" / "quick" / run)


def test_an_interrupted_experiment_goes_on(toy, tmp_path):
    whole = reproduce("toy", to=tmp_path / "whole")
    toy.calls.clear()
    toy.fail_at, toy.error = 2, KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        reproduce("toy", to=tmp_path / "cut")
    toy.fail_at = None
    assert reproduce("toy", to=tmp_path / "cut").claims == whole.claims
    assert toy.calls == [0, 1, 2]


def test_runs_of_another_setting_are_not_mixed_in(toy, tmp_path):
    reproduce("toy", to=tmp_path)
    more = reproduce("toy", seeds=7, to=tmp_path)
    assert more.seeds == more.claims[0].seeds == 7
    assert (tmp_path / "toy" / "quick-7-seeds" / "walk-0").is_dir()
    toy.QUICK = type(toy.QUICK)(steps=5)
    with pytest.raises(ValueError, match=r"another setting \(steps = 4, now 5\): choose another --to"):
        reproduce("toy", to=tmp_path)


def test_full_is_another_setting(toy, tmp_path):
    assert reproduce("toy", "full", to=tmp_path).seeds == 5
    assert load(tmp_path / "toy" / "full" / "walk-0")["place"].sizes == {"time": 8, "seed": 5}


def test_missing_data_are_not_a_failure(toy, tmp_path, monkeypatch):
    toy.fail_at, toy.error = 1, FileNotFoundError("No CIFAR-10 here: run tiltmeter data cifar10.")
    outcome = reproduce("toy", to=tmp_path)
    assert (outcome.state, outcome.claims[0].verdict) == ("not run", "not run")
    assert outcome.reason == "No CIFAR-10 here: run tiltmeter data cifar10."
    monkeypatch.setattr(tm.data, "is_present", lambda name: name == "mnist")
    toy.NEEDS = ("mnist", "cifar10")
    reason = reproduce("toy", to=tmp_path / "other").reason
    assert reason.startswith("Needs the data of cifar10, which are not here: `tiltmeter data get cifar10` brings them")


def test_what_was_found_stays_when_the_data_are_gone(toy, tmp_path):
    found = reproduce("toy", to=tmp_path)

    def run(*_):
        raise FileNotFoundError("No data.")

    toy.run, heard = run, []
    assert reproduce("toy", to=tmp_path, tell=heard.append) == found
    assert heard == [f"No data. The outcome of {found.date} is kept."]
    assert outcomes_in(tmp_path) == [found]
    assert reproduce("toy", "full", to=tmp_path).state == "not run"


def test_seeds_reach_every_field_of_seeds(toy, tmp_path):
    @dataclass(frozen=True)
    class Two(type(toy.QUICK)):
        network_seeds: int = 8

    toy.QUICK, asked = Two(), []
    ordinary = toy.run
    toy.run = lambda setting, keep: asked.append(setting) or ordinary(setting, keep)
    reproduce("toy", seeds=4, to=tmp_path)
    assert (asked[0].seeds, asked[0].network_seeds, asked[0].steps) == (4, 4, 4)


@pytest.mark.parametrize("value", [math.inf, -math.inf])
def test_an_infinite_statistic_keeps_its_verdict_on_disk(toy, tmp_path, value):
    toy.claims = lambda _: (Claim("Never", value, "ratio", 2.0), Claim("No value", math.nan, "ratio", 2.0))
    outcome = reproduce("toy", to=tmp_path)
    (back,) = outcomes_in(tmp_path)
    assert back.claims[0] == outcome.claims[0]
    assert [claim.verdict for claim in back.claims] == ["measured", "not run"]
    assert back.claims[0].holds == (value > 0)


def test_a_strange_outcome_is_named(toy, tmp_path):
    reproduce("toy", to=tmp_path)
    file = tmp_path / "toy" / "quick" / "outcome.json"
    for text in ("{}", "[]", "torn"):
        file.write_text(text)
        with pytest.raises(ValueError, match=r"outcome\.json should be what `reproduce` wrote"):
            outcomes_in(tmp_path)


def test_a_missing_library_is_not_a_failure(toy, tmp_path):
    toy.fail_at, toy.error = 0, ModuleNotFoundError("No module named 'torch'", name="torch")
    assert reproduce("toy", to=tmp_path).reason == "Needs torch, which is not installed."


def test_a_failure_is_written_and_raised(toy, tmp_path):
    toy.fail_at = 1
    with pytest.raises(RuntimeError, match="boom"):
        reproduce("toy", to=tmp_path)
    (outcome,) = outcomes_in(tmp_path)
    assert (outcome.state, outcome.reason) == ("failed", "RuntimeError: boom")
    toy.fail_at = None
    assert reproduce("toy", to=tmp_path).state == "run"
    assert toy.calls == [0, 1, 2]


@pytest.mark.parametrize("seeds", [0, -1, True, 2.5])
def test_wrong_numbers_of_seeds_are_refused(toy, tmp_path, seeds):
    with pytest.raises(ValueError, match=r"`seeds` should be a number of them, at least 1\. Found seeds = "):
        reproduce("toy", seeds=seeds, to=tmp_path)


def test_wrong_names_and_scales_are_refused(toy, tmp_path):
    with pytest.raises(KeyError, match=r"No experiment 'toys'\. Did you mean 'toy'\? There are: .*toy"):
        reproduce("toys", to=tmp_path)
    with pytest.raises(ValueError, match="`scale` should be"):
        reproduce("toy", "huge", to=tmp_path)


def test_names_of_runs_must_differ_as_files(tmp_path):
    keep = Kept(tmp_path, find("equilibrium-bias").QUICK)
    run = Trajectory({}, "t", Origin("toy"))
    keep("lr 0.1", lambda: run)
    with pytest.raises(ValueError, match=r"kept as 'lr-0.1': 'lr 0.1' and 'lr, 0.1'"):
        keep("lr, 0.1", lambda: run)
    with pytest.raises(TypeError, match="should be a Trajectory"):
        keep("other", lambda: 3)
    with pytest.raises(ValueError, match="letters or digits"):
        file_name("//")


def test_two_processes_never_make_a_run_twice(tmp_path):
    calls, told = [], []
    began = threading.Event()

    def make():
        calls.append(1)
        began.set()
        time.sleep(0.3)
        return Trajectory({}, "t", Origin("toy"))

    first, second = (Kept(tmp_path, find("equilibrium-bias").QUICK, told.append) for _ in range(2))
    with ThreadPoolExecutor(2) as pool:
        one = pool.submit(first, "slow", make)
        began.wait()
        other = pool.submit(second, "slow", make)
        assert one.result().origin == other.result().origin
    assert calls == [1]
    assert (first.fresh, second.fresh) == (1, 0)
    assert first.seconds == second.seconds >= 0.3
    assert told[0].startswith("slow: ")
    assert str(os.getpid()) in told[0]
    assert not list((tmp_path / "work").glob("slow/*"))


def test_a_lock_inside_a_run_is_a_failure_not_a_wait(tmp_path):
    def make():
        raise BlockingIOError("another run is at it")

    keep = Kept(tmp_path, find("equilibrium-bias").QUICK)
    with pytest.raises(RuntimeError, match="'locked' of an experiment failed: another run is at it"):
        keep("locked", make)


SCRIPT = """
import sys, time
sys.path.insert(0, {folder!r})
from conftest import Toy
from tiltmeter_lab.catalogue import EXPERIMENTS
from tiltmeter_lab.reproduce import reproduce

class Slow(Toy):
    def _walk(self, setting, i):
        if i == 1 and sys.argv[2] == "hang":
            time.sleep(600)
        return super()._walk(setting, i)

toy = Slow()
sys.modules[toy.__name__] = toy
EXPERIMENTS["toy"] = "toy_of_the_tests"
print(reproduce("toy", to=sys.argv[1]).sentence, toy.calls)
"""


@pytest.mark.slow
def test_a_killed_experiment_goes_on_where_it_stopped(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(folder=str(Path(__file__).parent)))
    first = tmp_path / "runs" / "toy" / "quick" / "walk-0" / "end.json"
    process = subprocess.Popen([sys.executable, script, tmp_path / "runs", "hang"])
    try:
        for _ in range(600):
            if first.exists():
                break
            time.sleep(0.1)
    finally:
        process.kill()
        process.wait()
    written = first.stat().st_mtime_ns
    assert not first.parents[1].joinpath("walk-1").exists()
    done = subprocess.run([sys.executable, script, tmp_path / "runs", "go"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "toy (quick, 3 seeds, 0 s): 1 of 2 claims hold. [1, 2]"
    assert first.stat().st_mtime_ns == written
