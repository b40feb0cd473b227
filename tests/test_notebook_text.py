"""What notebooks show: every result as HTML that holds no markup of its names, charts as pictures, progress in
place."""

import importlib.util
import sys
import types
from pathlib import Path

import altair as alt
import numpy as np
import pytest
import xarray as xr

import tiltmeter as tm
from tiltmeter.progress import Progress, notebook_line

_spec = importlib.util.spec_from_file_location("hostile_names", Path(__file__).with_name("hostile_names.py"))
hostile = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(hostile)


def run_of(groups):
    rng = np.random.default_rng(0)
    coords = {"time": np.array([1, 5, 20, 100]), "group": list(groups)}
    loss = xr.DataArray(rng.random((4, 2)), dims=("time", "group"), coords=coords)
    return tm.Trajectory(
        {"loss": loss, "loss_se": 0 * loss + 0.001, "error": loss}, "step", tm.record.Origin("training")
    )


QUESTIONS = {
    "leaders": tm.leaders,
    "stopping": tm.fairness.stopping,
    "agreement": lambda run: tm.agreement(run, run),
    "check": lambda run: tm.GroupedData(np.zeros((60, 1)), np.zeros(60), list(run["loss"].group.values) * 30),
    "trajectory": lambda run: run,
}


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("name", hostile.NAMES[:8])
def test_names_are_text(question, name):
    shown = QUESTIONS[question](run_of((name, "b")))._repr_html_()
    assert "<script" not in shown
    assert "<img" not in shown
    assert "<svg" not in shown
    assert shown.startswith("<div>")


def test_the_words_are_those_of_the_text():
    found = tm.fairness.stopping(run_of("ab"))
    for line in str(found).splitlines():
        assert line.replace("<", "&lt;").strip() in found._repr_html_()


def test_charts_are_drawn_unless_a_renderer_was_chosen():
    chart = tm.plot.curves(run_of("ab"))
    assert list(chart._repr_mimebundle_()) == ["image/svg+xml"]
    with alt.renderers.enable("mimetype"):
        assert "image/svg+xml" not in chart._repr_mimebundle_()
    problem = tm.theory.cases.three_phases()
    panels = tm.plot.order_parameters(tm.predict(*problem, curves=("M", "R", "Q")))
    assert list(panels._repr_mimebundle_()) == ["image/svg+xml"]


def test_progress_is_one_line_that_changes(monkeypatch, capsys):
    shown = []

    class ZMQInteractiveShell:
        pass

    class Handle:
        def update(self, bundle, raw):  # noqa: ARG002
            shown.append(bundle["text/plain"])

    def display(bundle, raw, display_id):
        shown.append(bundle["text/plain"])
        return Handle()

    module = types.ModuleType("IPython")
    module.get_ipython = ZMQInteractiveShell
    inner = types.ModuleType("IPython.display")
    inner.display = display
    monkeypatch.setitem(sys.modules, "IPython", module)
    monkeypatch.setitem(sys.modules, "IPython.display", inner)
    now = [0.0]
    monkeypatch.setattr("tiltmeter.progress.time.monotonic", lambda: now[0])
    with Progress(10, lambda done: f"step {done} of 10") as tell:
        for step in range(1, 11):
            now[0] += 2.0
            tell(step)
    assert shown[0].startswith("step 2 of 10 (20%)")
    assert shown[-1] == ""
    assert capsys.readouterr() == ("", "")
    monkeypatch.delitem(sys.modules, "IPython")
    assert notebook_line() is None


def test_a_run_shows_the_headline_of_its_leaders():
    """The first line of a run in a notebook is that of `leaders`, escaped; where nothing can be said, it is absent."""
    import tiltmeter as tm

    theory = tm.predict(*tm.theory.cases.three_phases())
    line = tm.leaders(theory).headline.line
    assert f"<p>{line}</p>" in theory._repr_html_()
    alone = theory.replace({"Q": theory["Q"]})
    assert "<b>Trajectory</b>" in alone._repr_html_()
    assert line not in alone._repr_html_()
