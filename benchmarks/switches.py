"""File switches: how often execution passes from one source file of tiltmeter to another, in five front doors.

`python benchmarks/switches.py [NAME]` prints, for each of `advise`, `forecast`, `report`, `leaders` and `probe`
(default: all), the number of switches and the pairs of files between which most of them happen. A switch is a call of a
function from another file of tiltmeter, whatever house it stands in, directly or through other packages. The examples
are those of docs/advice.md (with all interventions of the menu) and docs/forecast.md, the report of one run of exact
theory that was loaded from a file, what is said of such a run, and one evaluation of a probe. Each runs once before it
is counted, so that imports and compiled functions are not part of the numbers.
"""

from __future__ import annotations

import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import torch

import tiltmeter as tm

PACKAGE = f"{Path(tm.__file__).parent}/"


class Switches:
    """Counts switches between files while it is entered."""

    def __init__(self) -> None:
        self.pairs: Counter[tuple[str, str]] = Counter()
        self.calls: Counter[str] = Counter()
        self._files: dict[str, str | None] = {}

    @property
    def count(self) -> int:
        return self.pairs.total()

    def __enter__(self) -> Switches:
        threading.setprofile(self._event)
        sys.setprofile(self._event)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]

    def _event(self, frame: FrameType, event: str, _: Any) -> None:
        file = self._file(frame) if event == "call" else None
        if file is None:
            return
        self.calls[f"{file}:{frame.f_code.co_qualname}"] += 1
        caller = frame.f_back
        while caller is not None and self._file(caller) is None:
            caller = caller.f_back
        before = None if caller is None else self._file(caller)
        if before is not None and before != file:
            self.pairs[before, file] += 1

    def _file(self, frame: FrameType) -> str | None:
        """The file of a frame below the package; None for other packages."""
        name = frame.f_code.co_filename
        if name not in self._files:
            self._files[name] = name.removeprefix(PACKAGE) if name.startswith(PACKAGE) else None
        return self._files[name]


def advise() -> Callable[[], object]:
    """The example of docs/advice.md."""
    rng = np.random.default_rng(0)
    label = rng.integers(0, 2, 1200)
    mark = np.where(rng.random(1200) < 0.9, label, 1 - label)
    x = rng.normal(size=(1200, 12)).astype("float32")
    x[:, 0] += 2.0 * (2 * mark - 1)
    x[:, 1:7] += 0.6 * (2 * label - 1)[:, None]
    data = tm.GroupedData(x, label, np.where(mark == label, "with the shortcut", "against it"))
    train, held_out = data.split(0.5)
    network = torch.nn.Sequential(torch.nn.Linear(12, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
    recipe = tm.Recipe(lr=0.05, steps=100, batch=32, loss=tm.Logistic())
    return lambda: tm.advise(network, train, held_out, recipe)


def forecast() -> Callable[[], object]:
    """The example of docs/forecast.md."""
    train, held_out = tm.data.digits(share=0.9, contrast=(0.2, 2.5), labels="large")
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 1))
    recipe = tm.Recipe(lr=0.006, steps=1000, batch=16, loss=tm.Square())
    return lambda: tm.forecast(model, train, held_out, recipe)


def report() -> Callable[[], object]:
    """A page about one run of exact theory, loaded from its directory."""
    folder = Path(tempfile.mkdtemp())
    tm.save(tm.predict(*tm.theory.cases.centred_crossing()), folder / "run")
    run = tm.load(folder / "run")
    return lambda: tm.report([run], folder / "page.html")


def leaders() -> Callable[[], object]:
    """What is said of one run of exact theory."""
    run = tm.predict(*tm.theory.cases.three_phases())
    return lambda: str(tm.leaders(run))


def probe() -> Callable[[], object]:
    """One evaluation of a probe in a loop of one's own."""
    _, held_out = tm.data.digits(share=0.9)
    model = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10))
    probe = tm.Probe(model, held_out, watch=tm.Watch(when=tm.record.every(1)), budget=None)
    steps = count()
    return lambda: probe(next(steps))


DOORS = {"advise": advise, "forecast": forecast, "report": report, "leaders": leaders, "probe": probe}


def main() -> None:
    for name in sys.argv[1:] or DOORS:
        work = DOORS[name]()
        work()
        with Switches() as switches:
            work()
        print(f"{name}: {switches.count:,} file switches, {switches.calls.total():,} calls")
        for (one, other), number in switches.pairs.most_common(12):
            print(f"  {number:8,}  {one} -> {other}")


if __name__ == "__main__":
    main()
