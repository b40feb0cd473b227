import dataclasses
import json
import os
import socket
import sys
import time
from pathlib import Path

import pytest

from tiltmeter.record.directory.lock import Process

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks /proc")


def test_this_process_lives_and_survives_json():
    this = Process.this()
    assert this.pid == os.getpid()
    assert this.alive()
    assert Process.from_json(json.loads(json.dumps(this.to_json()))) == this


def test_an_ended_process_is_dead(child):
    one = child(lambda _: None)
    one.wait()
    assert not Process(one.pid, socket.gethostname(), None).alive()


@linux
def test_a_zombie_is_dead(child):
    one = child(lambda _: None)
    for _ in range(500):
        if Path(f"/proc/{one.pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
            break
        time.sleep(0.01)
    assert not Process(one.pid, socket.gethostname(), None).alive()


@linux
def test_a_later_process_with_the_same_pid_is_another():
    this = Process.this()
    assert this.started
    assert not dataclasses.replace(this, started="earlier").alive()
    assert dataclasses.replace(this, started=None).alive()


def test_one_on_another_host_counts_as_alive():
    assert Process(2**30, "elsewhere", None).alive()


def test_someone_elses_process_is_alive():
    assert Process(1, socket.gethostname(), None).alive()


def test_it_is_named():
    here = socket.gethostname()
    assert str(Process.this()) == f"this very process (pid {os.getpid()})"
    assert str(Process(1, here, None)) == "process 1"
    assert str(Process(5, "elsewhere", None)) == "process 5 on elsewhere"


@pytest.mark.parametrize("pid", [0, -1, 2**40, "5", None])
def test_impossible_pids_are_refused(pid):
    with pytest.raises(ValueError, match="should have a pid"):
        Process.from_json({"pid": pid, "host": "a", "started": None})
