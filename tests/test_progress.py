"""Progress speaks on stderr, late and seldom, and never on stdout."""

import io

import numpy as np
import pytest

import tiltmeter as tm
from tiltmeter import SGD, GroupedData, forecast, progress, simulate, tangent, teacher_mixture
from tiltmeter.forecast.methods import Kernel
from tiltmeter.losses import Square
from tiltmeter.progress import Progress
from tiltmeter.recipe import Recipe


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def clock(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def test_a_short_run_says_nothing(clock, capsys):
    with Progress(100, lambda done: f"step {done} of 100") as tell:
        for step in range(1, 101):
            clock[0] += 0.01
            tell(step)
    assert capsys.readouterr() == ("", "")


def test_a_long_run_tells_how_far_it_is_and_how_long_it_takes(clock, capsys):
    with Progress(100, lambda done: f"step {done} of 100") as tell:
        for step in range(1, 101):
            clock[0] += 1.0
            tell(step)
    out, err = capsys.readouterr()
    assert out == ""
    lines = err.splitlines()
    assert lines[0] == "step 3 of 100 (3%), 2 min left"
    assert len(lines) == 4  # every half minute


def test_on_a_terminal_the_line_is_rewritten_and_cleared(clock, monkeypatch):
    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    with Progress(100, lambda done: f"step {done} of 100") as tell:
        for step in range(1, 100):
            clock[0] += 1.0
            tell(step)
    assert "\n" not in screen.getvalue()
    assert screen.getvalue().count("left") > 50
    assert screen.getvalue().endswith("\r")


def test_it_can_be_switched_off(monkeypatch, capsys):
    monkeypatch.setattr(progress.Progress, "__call__", lambda *_: pytest.fail("spoke"))
    simulate(teacher_mixture(), SGD(lr=0.1), [1.0], d=20, method=tm.theory.Chain(progress=False))
    assert capsys.readouterr() == ("", "")


def test_kernels_and_initialisations_tell_too(monkeypatch, capsys):
    torch = pytest.importorskip("torch")
    now = [0.0]

    def later():
        now[0] += 1.5
        return now[0]

    monkeypatch.setattr(progress.time, "monotonic", later)
    rng = np.random.default_rng(0)
    data = GroupedData(rng.normal(size=(1500, 3)), rng.choice([-1, 1], 1500), np.arange(1500) % 2).split()
    tangent(torch.nn.Linear(3, 1), *data)
    assert "Kernel of 1200 and 300 points (" in capsys.readouterr().err
    forecast(
        lambda: torch.nn.Linear(3, 1),
        *data,
        Recipe(lr=0.1, steps=10, batch=None, loss=Square()),
        method=Kernel(sample=50),
        seeds=4,
    )
    out, err = capsys.readouterr()
    assert out == ""
    assert "Initial weights 2 of 4 (50%)" in err
    assert "Kernel" not in err
    tangent(torch.nn.Linear(3, 1), *data, progress=False)
    line = torch.nn.Linear(3, 1)
    forecast(line, *data, Recipe(lr=0.1, steps=10, batch=None, loss=Square()), method=Kernel(), progress=False)
    assert capsys.readouterr() == ("", "")
