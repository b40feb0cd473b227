import contextlib
import json
import os
import socket
import threading
import time

import pytest

from tiltmeter.record.directory.lock import Lock, Process, writer


@pytest.fixture
def path(tmp_path):
    return tmp_path / "lock"


def test_it_names_its_writer_and_goes(path):
    lock = Lock(path)
    assert writer(path) == Process.this()
    assert lock.mine
    lock.release()
    assert not path.exists()
    lock.release()


def test_a_second_live_writer_is_told_the_pid(path, child):
    def hold(tell):
        Lock(path)
        tell("held")
        time.sleep(60)

    holder = child(hold)
    holder.hear()
    with pytest.raises(BlockingIOError) as caught:
        Lock(path)
    assert f"{path.parent} is being recorded by process {holder.pid}. One run has one writer" in str(caught.value)
    assert f"delete {path}" in str(caught.value)


def test_one_process_does_not_lock_twice(path):
    lock = Lock(path)
    with pytest.raises(BlockingIOError, match=r"by this very process \(pid"):
        Lock(path)
    lock.release()
    Lock(path).release()


def test_a_dead_writers_lock_is_taken_over(path, child):
    holder = child(lambda _: Lock(path))
    holder.wait()
    assert writer(path).pid == holder.pid
    lock = Lock(path)
    assert writer(path) == Process.this()
    lock.release()


def test_a_reused_pid_is_not_mistaken_for_the_writer(path):
    if Process.this().started is None:
        pytest.skip("the start of a process is not told here")
    path.write_text(json.dumps({**Process.this().to_json(), "started": "long ago", "token": "x"}))
    Lock(path).release()


def test_a_writer_on_another_host_keeps_its_lock(path):
    path.write_text(json.dumps({"pid": 5, "host": "elsewhere", "started": None, "token": "x"}))
    with pytest.raises(BlockingIOError, match="by process 5 on elsewhere"):
        Lock(path)


@pytest.mark.parametrize(
    "content", ["", "nonsense", "[1]", '{"pid": 1}', '{"pid": 0, "host": "x", "started": null}', "[" * 10**5]
)
def test_a_lock_that_names_nobody_is_free(path, content):
    path.write_text(content)
    assert writer(path) is None
    Lock(path).release()


def test_a_forked_child_neither_holds_nor_releases(path, child):
    lock = Lock(path)

    def leave(tell):
        tell(lock.mine)
        lock.release()

    code, said = child(leave).wait()
    assert (code, said) == (0, [False])
    assert writer(path) == Process.this()
    lock.release()


def test_a_child_that_outlives_the_writer_does_not_keep_the_lock(path, child):
    def hold(tell):
        lock = Lock(path)
        grandchild = os.fork()
        if grandchild == 0:
            time.sleep(60)
        tell(grandchild)
        os._exit(0 if lock.mine else 1)

    holder = child(hold)
    grandchild = holder.hear()
    try:
        os.waitpid(holder.pid, 0)
        holder.running = False
        Lock(path).release()
    finally:
        os.kill(grandchild, 9)


def test_release_leaves_another_writers_lock_alone(path):
    first = Lock(path)
    path.unlink()
    second = Lock(path)
    first.release()
    assert writer(path) == Process.this()
    second.release()
    assert not path.exists()


@pytest.mark.parametrize("stale", [False, True])
def test_of_racing_processes_exactly_one_wins(path, child, stale):
    for _ in range(8):
        if stale:
            path.write_text(json.dumps({"pid": 2**22 + 1, "host": socket.gethostname(), "started": None, "token": "x"}))
        read, write = os.pipe()

        def race(tell, read=read, write=write):
            os.close(write)
            os.read(read, 1)  # returns when the starter closes the pipe
            try:
                Lock(path)
            except BlockingIOError:
                tell("refused")
            else:
                tell("won")
            time.sleep(60)

        racers = [child(race) for _ in range(5)]
        os.close(write)
        said = sorted(racer.hear() for racer in racers)
        os.close(read)
        assert said == ["refused"] * 4 + ["won"]
        for racer in racers:
            racer.kill()
            racer.wait()
        path.unlink(missing_ok=True)


def test_of_racing_threads_exactly_one_wins(path):
    for _ in range(20):
        barrier, won, refused = threading.Barrier(6), [], []

        def race(barrier=barrier, won=won, refused=refused):
            barrier.wait()
            try:
                won.append(Lock(path))
            except BlockingIOError as error:
                refused.append(error)

        threads = [threading.Thread(target=race) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (len(won), len(refused)) == (1, 5)
        won[0].release()


def test_taking_and_releasing_in_a_hurry_never_gives_two_owners(path, child):
    sentinel = path.with_name("inside")

    def hurry(tell):
        taken, until = 0, time.monotonic() + 1
        while time.monotonic() < until:
            with contextlib.suppress(BlockingIOError):
                lock = Lock(path)
                os.close(os.open(sentinel, os.O_CREAT | os.O_EXCL))  # fails if anyone else is inside
                sentinel.unlink()
                lock.release()
                taken += 1
        tell(taken)

    ends = [one.wait() for one in [child(hurry) for _ in range(4)]]
    assert [code for code, _ in ends] == [0] * 4, ends
    assert sum(said[0] for _, said in ends) > 20
    assert not path.exists()
