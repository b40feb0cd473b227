"""The loop that hands out cells, with engines that only pretend."""

from concurrent.futures import Future
from pathlib import Path

import pytest

from tiltmeter_lab.study.compute import Answer, Task
from tiltmeter_lab.study.folder import Places
from tiltmeter_lab.study.function_reference import FunctionReference
from tiltmeter_lab.study.status import ProgressLine, seconds_left
from tiltmeter_lab.study.study import LOST, FailFast, drive


class Pretending:
    """Answers every task at once, by a function of its key and of how often it was asked for."""

    width, workers = 3, 1

    def __init__(self, answer, alive=True):
        self.answer, self.alive, self.asked, self.closed = answer, alive, [], False

    def submit(self, task):
        self.asked.append(task.key)
        future = Future()
        future.set_result(self.answer(task.key, self.asked.count(task.key)))
        return future

    def check(self):
        if not self.alive:
            raise ConnectionError("gone")

    def close(self):
        self.closed = True


def tasks(count):
    place = FunctionReference("math", "hypot", None)
    return [Task("nowhere", f"k{number}", {"a": number}, place, "", 3, None) for number in range(count)]


def driven(tmp_path, engine, count=5, **settings):
    places = Places(Path(tmp_path))
    places.make()
    drive(tasks(count), places, engine, ProgressLine(count, 0, False), **settings)


def test_a_lost_answer_is_asked_for_again(tmp_path):
    engine = Pretending(lambda key, times: Answer("lost" if times == 1 else "done"))
    driven(tmp_path, engine)
    assert sorted(engine.asked) == sorted([f"k{number}" for number in range(5)] * 2)
    assert engine.closed


def test_a_cluster_that_never_answers_is_given_up(tmp_path):
    engine = Pretending(lambda key, times: Answer("lost", error="no worker"))
    with pytest.raises(ConnectionError, match=f"{LOST + 1} tasks in a row got no answer .no worker."):
        driven(tmp_path, engine)
    assert engine.closed


def test_a_scheduler_that_is_gone_ends_the_driver(tmp_path):
    with pytest.raises(ConnectionError, match="gone"):
        driven(tmp_path, Pretending(lambda key, times: Answer("done"), alive=False))


def test_a_result_that_cannot_be_written_stops_the_study(tmp_path):
    engine = Pretending(lambda key, times: Answer("storage", error="The disk is full."))
    with pytest.raises(OSError, match=r"The study stopped. The disk is full. Complete cells are kept"):
        driven(tmp_path, engine)


def test_cells_of_another_driver_are_waited_for_and_not_computed(tmp_path):
    """k1 is busy twice; then the other driver has completed it."""

    def answer(key, times):
        if key == "k1" and times == 2:
            Places(Path(tmp_path)).result("k1").mkdir()
        return Answer("busy" if key == "k1" else "done")

    engine = Pretending(answer)
    driven(tmp_path, engine, count=3)
    assert engine.asked.count("k1") == 2


def test_fail_fast_stops_at_the_first_failure(tmp_path):
    engine = Pretending(lambda key, times: Answer("failed", error="bad"))
    with pytest.raises(FailFast, match="bad"):
        driven(tmp_path, engine, count=50, fail_fast=True)
    assert len(engine.asked) < 10


def test_the_estimate_knows_that_cells_differ():
    """Wide networks take ten times as long; only they are left."""
    done = [({"width": width, "depth": depth}, width * depth) for width in (1, 10) for depth in (1, 2)]
    left = [{"width": 10, "depth": depth} for depth in (1, 2)]
    assert seconds_left(done, left) == pytest.approx(30, rel=0.02)
    assert seconds_left(done, [{"width": 99, "depth": 1}]) == pytest.approx(10**0.5, rel=0.1)
    assert seconds_left([], left) == 0.0
