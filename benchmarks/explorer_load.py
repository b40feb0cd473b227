"""Thirty clients while a large run is looked at and a long table is previewed: how long other answers take.

    python benchmarks/explorer_load.py

First one client alone asks for rows, a small run and the theory (idle); then thirty do, while others ask about a run of
136 MB and the columns of a table of a million rows. The median of other answers should be at most three times the idle
one. Memory is that of the server and its processes together; after Ctrl-C nothing of them may be left.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import numpy as np
import xarray as xr

import tiltmeter as tm

SECONDS, CLIENTS = 40.0, 30


def made(folder: Path) -> None:
    """A small run, one of 136 MB, and a table of a million rows."""
    groups = xr.DataArray([0.1, 0.2], dims="group", coords={"group": ["a", "b"]})
    names = [f"curve{k}" for k in range(8)]
    for name, steps in (("small", 50), ("large", 230_000)):
        with tm.record.Recorder(folder / name, clock="step", origin=tm.record.Origin("training")) as recorder:
            for step in range(steps):
                value = groups + 1.0 / (3 + step)
                recorder.append(step, {"loss": value, "error": value, **dict.fromkeys(names, value)})
    size = (folder / "large" / "curves.jsonl").stat().st_size
    print(f"large run: {size / 1e6:.0f} MB")
    rng = np.random.default_rng(0)
    columns = np.round(rng.normal(size=(1_000_000, 3)), 3)
    labels = rng.integers(0, 2, 1_000_000)
    with (folder / "table.csv").open("w") as file:
        file.write("sex,repaid,a,b,c\n")
        for start in range(0, 1_000_000, 100_000):
            rows = zip(labels[start : start + 100_000], columns[start : start + 100_000].tolist(), strict=True)
            file.writelines(f"{'fm'[k % 2]},{y},{a},{b},{c}\n" for k, (y, (a, b, c)) in enumerate(rows))


def processes(parent: int) -> list[int]:
    """A process and all below it."""
    below = defaultdict(list)
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                below[int(fields[1])].append(int(entry.name))
            except OSError:
                continue
    found, todo = [], [parent]
    while todo:
        one = todo.pop()
        found.append(one)
        todo += below[one]
    return found


def memory(numbers: list[int]) -> float:
    """Resident megabytes of these processes."""
    total = 0
    for number in numbers:
        try:
            total += int(Path(f"/proc/{number}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        except OSError:
            continue
    return total / 2**20


def ask(address: str, path: str) -> tuple[float, int]:
    begun = time.perf_counter()
    try:
        with urlopen(f"{address}{path}", timeout=120) as answer:
            answer.read()
            return time.perf_counter() - begun, answer.status
    except HTTPError as error:
        return time.perf_counter() - begun, error.code


LIGHT = ["/api/runs", "/api/curves?run=small&curve=loss", "/api/theory?page=theory"]
HEAVY = ["/api/curves?run=large&curve=loss", "/api/judgement?run=large&curve=loss", "/api/columns?table=table.csv"]


def clients(address: str, count: int, paths: list[str], seconds: float, pause: float) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {path: [] for path in paths}
    until = time.monotonic() + seconds

    def work(number: int) -> None:
        turn = number
        while time.monotonic() < until:
            path = paths[turn % len(paths)]
            turn += 1
            taken, _ = ask(address, path)
            found[path].append(taken)
            time.sleep(pause)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        made(folder)
        command = [sys.executable, "-m", "tiltmeter", "explore", str(folder), "--port", "8931", "--quiet"]
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        address = "http://127.0.0.1:8931"
        try:
            for _ in range(200):
                try:
                    ask(address, "/")
                    break
                except OSError:
                    time.sleep(0.1)
            for path in LIGHT:
                ask(address, path)
            # The same thirty clients without the heavy questions: what they wait for one another is not our question.
            idle = clients(address, CLIENTS, LIGHT, SECONDS / 2, 0.5)
            heavy: list[tuple[str, float, int]] = []
            stop = threading.Event()

            def look() -> None:
                turn = 0
                while not stop.is_set():
                    path = HEAVY[turn % len(HEAVY)]
                    turn += 1
                    heavy.append((path, *ask(address, path)))

            lookers = [threading.Thread(target=look) for _ in range(3)]
            for one in lookers:
                one.start()
            busy = clients(address, CLIENTS, LIGHT, SECONDS, 0.5)
            everything = processes(server.pid)
            print(f"memory of {len(everything)} processes: {memory(everything):.0f} MB")
            stop.set()
            for one in lookers:
                one.join()
            for path in LIGHT:
                before, after = float(np.median(idle[path])), float(np.median(busy[path]))
                verdict = "holds" if after <= 3 * before else "MISSED"
                times = f"{1e3 * before:>7.0f} ms idle  {1e3 * after:>7.0f} ms"
                print(f"{path:<36} {len(busy[path]):>5} answers  {times}  {verdict}")
            for path in HEAVY:
                taken = [f"{seconds:.1f} s ({status})" for one, seconds, status in heavy if one == path]
                print(f"{path:<40} {', '.join(taken[:6])}")
        finally:
            everything = processes(server.pid)
            server.send_signal(signal.SIGINT)
            server.wait(timeout=30)
            time.sleep(1.0)
            left = [number for number in everything if Path(f"/proc/{number}").exists()]
            print(f"left after Ctrl-C: {len(left)} of {len(everything)} processes")


if __name__ == "__main__":
    main()
