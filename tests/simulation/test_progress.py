"""Progress speaks on stderr, late and seldom, and never on stdout."""

import io

import pytest

from tiltmeter import SGD, simulate, teacher_mixture
from tiltmeter.simulation import progress
from tiltmeter.simulation.progress import Progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def clock(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def test_a_short_run_says_nothing(clock, capsys):
    with Progress(100, 10) as tell:
        for step in range(1, 101):
            clock[0] += 0.01
            tell(step)
    assert capsys.readouterr() == ("", "")


def test_a_long_run_tells_how_far_it_is_and_how_long_it_takes(clock, capsys):
    with Progress(100, 10) as tell:
        for step in range(1, 101):
            clock[0] += 1.0
            tell(step)
    out, err = capsys.readouterr()
    assert out == ""
    lines = err.splitlines()
    assert lines[0] == "t = 0.3 of 10 (3%), 97 s left".replace("97 s", "2 min")
    assert len(lines) == 4  # every half minute


def test_on_a_terminal_the_line_is_rewritten_and_cleared(clock, monkeypatch):
    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    with Progress(100, 10) as tell:
        for step in range(1, 100):
            clock[0] += 1.0
            tell(step)
    assert "\n" not in screen.getvalue()
    assert screen.getvalue().count("left") > 50
    assert screen.getvalue().endswith("\r")


def test_it_can_be_switched_off(monkeypatch, capsys):
    monkeypatch.setattr(progress.Progress, "__call__", lambda *_: pytest.fail("spoke"))
    simulate(teacher_mixture(), SGD(lr=0.1), [1.0], d=20, progress=False)
    assert capsys.readouterr() == ("", "")
