"""live: redrawn while it trains, the card at the end, the same training; one sentence where there is no notebook."""

import sys
from types import ModuleType

import numpy as np
import pytest
import torch

import tiltmeter as tm
from tiltmeter.explorer import live as module


def data(groups=("a", "<b>x</b>"), count=400):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(count, 3)).astype("float32")
    return tm.GroupedData(x, (x[:, 0] > 0).astype(int), rng.choice(groups, count))


class Handle:
    """What `display` of a notebook returns."""

    def __init__(self):
        self.shown = []

    def update(self, given, raw):
        assert raw
        self.shown.append(given["text/html"])


@pytest.fixture
def notebook(monkeypatch):
    handle, package, display = Handle(), ModuleType("IPython"), ModuleType("IPython.display")
    display.display = lambda given, raw, display_id: handle
    package.get_ipython = type("ZMQInteractiveShell", (), {})
    monkeypatch.setitem(sys.modules, "IPython", package)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    monkeypatch.setattr(module, "PAUSE", 0.0)
    return handle


def trained(watched, held_out, **settings):
    torch.manual_seed(0)
    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x, y = held_out.tensors()
    with watched(tm.Probe(model, held_out, tm.Watch(when=tm.record.every(2)), **settings, budget=None)) as probe:
        for step in range(6):
            probe(step)
            optimizer.zero_grad()
            torch.nn.functional.binary_cross_entropy_with_logits(model(x)[:, 0], y.float()).backward()
            optimizer.step()
    return probe.trajectory(), model.weight.detach().numpy().copy()


def test_every_evaluation_is_drawn_once_and_the_card_comes_last(notebook):
    run, _ = trained(tm.live, data(), settings={"steps": 6})
    assert len(notebook.shown) == 4  # steps 0, 2 and 4; then the card
    assert (
        "While it trains, 3 of 4 planned evaluations; all tested together. At most 5 of 100 such statements are wrong."
        in notebook.shown[2]
    )
    assert "Loss of each group up to step 4" in notebook.shown[2]
    assert notebook.shown[2].count("<path") == 2
    assert notebook.shown[-1].startswith(tm.leaders(run).headline._repr_html_())
    assert "Error of each group up to step 6" in notebook.shown[-1]  # the curve of the headline
    assert all("<b>x" not in html for html in notebook.shown)  # names never become markup


def test_without_a_plan_curves_are_drawn_and_nobody_is_named(notebook):
    trained(tm.live, data())
    assert "While it trains nobody is named" in notebook.shown[0]
    assert "<path" in notebook.shown[1]


def test_the_training_is_the_same_to_the_bit(notebook):
    np.testing.assert_array_equal(trained(tm.live, data())[1], trained(lambda probe: probe, data())[1])


def test_outside_a_notebook_one_sentence_says_so(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "IPython", None)
    run, _ = trained(tm.live, data())
    assert capsys.readouterr().err == "`live` draws in a notebook, and there is none here: nothing is drawn.\n"
    assert run["loss"].sizes["time"] == 4


def test_it_takes_a_probe():
    with pytest.raises(TypeError, match="`probe` should be a Probe"):
        tm.live(torch.nn.Linear(1, 1))
