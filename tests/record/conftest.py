"""What the tests of recording share: small readings, and children that may be killed."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

from tiltmeter.record import Origin, Recorder, Trajectory
from tiltmeter.record.directory.atomic_files import sealed_line


class Child:
    """A forked process that runs one function, which may tell things line by line, and never comes back."""

    def __init__(self, work: Callable[[Callable[[Any], None]], object]) -> None:
        self._read, write = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self._read)
            try:
                work(lambda said: os.write(write, json.dumps(said).encode() + b"\n") and None)
                os._exit(0)
            except BaseException as error:
                os.write(write, json.dumps(f"{type(error).__name__}: {error}").encode() + b"\n")
                os._exit(1)
        os.close(write)
        self._buffer = b""
        self.running = True

    def hear(self) -> Any:
        """The next thing said."""
        while b"\n" not in self._buffer:
            more = os.read(self._read, 65536)
            assert more, "the child ended without saying anything more"
            self._buffer += more
        line, _, self._buffer = self._buffer.partition(b"\n")
        return json.loads(line)

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> tuple[int, list[Any]]:
        """Wait for the end: exit code and everything said that was not heard yet."""
        while more := os.read(self._read, 65536):
            self._buffer += more
        _, status = os.waitpid(self.pid, 0)
        self.running = False
        *said, _ = self._buffer.split(b"\n")
        return os.waitstatus_to_exitcode(status), [json.loads(line) for line in said]

    def close(self) -> None:
        if self.running:
            with contextlib.suppress(ProcessLookupError):
                self.kill()
            os.waitpid(self.pid, 0)
        os.close(self._read)


@pytest.fixture
def child() -> Iterator[Callable[[Callable[[Callable[[Any], None]], object]], Child]]:
    """Starts children; none outlives its test."""
    if not hasattr(os, "fork"):
        pytest.skip("needs fork")
    started: list[Child] = []

    def start(work: Callable[[Callable[[Any], None]], object]) -> Child:
        started.append(Child(work))
        return started[-1]

    yield start
    for one in started:
        one.close()


@pytest.fixture
def origin() -> Origin:
    return Origin("example", problem={"rho": 0.8}, settings={"lr": 0.1}, seeds=(3,))


@pytest.fixture
def by_group() -> Callable[..., xr.DataArray]:
    """A reading with one value for each group."""

    def make(*values: float, groups: tuple[object, ...] = ("+", "-"), **attrs: object) -> xr.DataArray:
        labels = np.empty(len(groups), dtype=object)
        labels[:] = groups
        return xr.DataArray(list(values), dims="group", coords={"group": labels}, attrs=attrs)

    return make


@pytest.fixture
def make_run(origin: Origin, by_group: Callable[..., xr.DataArray]) -> Callable[..., Path]:
    """A small finished run directory: three curves, one of them rare."""

    def make(path: Path, evaluations: int = 6) -> Path:
        with Recorder(path, clock="step", origin=origin) as recorder:
            for step in range(0, 10 * evaluations, 10):
                evaluation: dict[str, Any] = {"loss": by_group(1 / (1 + step), 0.5, units="nats"), "norm": step / 3}
                if step % 20 == 0:
                    evaluation["kernel"] = xr.DataArray(np.arange(1500.0) + step, dims="k")
                recorder.append(step, evaluation)
        return path

    return make


def sealed(entry: Any) -> bytes:
    """A line as a recorder writes it, whatever it says."""
    if not isinstance(entry, dict):
        return json.dumps(entry).encode() + b"\n"
    text = {key: part for key, part in entry.items() if key != "crc"} or {"x": 1}
    return sealed_line(json.dumps(text).encode())


@pytest.fixture
def rewrite() -> Callable[..., None]:
    """Changes lines of a run and seals them again, so that only what they say is wrong."""

    def change(curves: Path, lines: dict[int, Any], more: tuple[Any, ...] = ()) -> None:
        text = curves.read_bytes().splitlines(keepends=True)
        for number, entry in lines.items():
            text[number] = sealed(entry)
        curves.write_bytes(b"".join(text) + b"".join(sealed(entry) for entry in more))

    return change


@pytest.fixture
def same() -> Callable[[Trajectory, Trajectory], None]:
    """Equal, and equal also in what `==` of trajectories does not look at: types and attributes."""

    def compare(a: Trajectory, b: Trajectory) -> None:
        assert a == b
        for name in a:
            xr.testing.assert_identical(a[name], b[name])
            assert a[name].dtype == b[name].dtype

    return compare
