"""Odd values at the front doors: one sentence in the house form, never a traceback from inside."""

import re

import numpy as np
import pandas as pd
import pytest
import torch
import xarray as xr
from torch import nn

import tiltmeter as tm
from tiltmeter.record import Origin, Recorder

lab = pytest.importorskip("tiltmeter_lab")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 3)).astype("float32")
Y, G = (X[:, 0] > 0).astype(int), np.where(X[:, 1] > 0, "a", "b")
RECIPE = tm.Recipe(lr=0.1, steps=4, batch=8, loss=tm.Logistic())
PROBLEM = tm.teacher_mixture(rho=0.8)


def parts(group=G):
    return tm.GroupedData(X, Y, group).split(0.5)


def trained(group=G):
    return tm.train(nn.Linear(3, 1), *parts(group), RECIPE)


def empty():
    recorder = Recorder(None, clock="step", origin=Origin("training"))
    recorder.close()
    return recorder.trajectory()


def frame(**more):
    return pd.DataFrame({"p": X[:, 0], "q": X[:, 1], "y": Y, "g": G, **more})


def two_alike():
    return frame().rename(columns={"q": "p"})


CALLS = {
    "one group": (lambda _: str(tm.leaders(trained(["a"] * 200))), "There is one group only"),
    "report of one group": (lambda p: tm.report([trained(["a"] * 200)], p / "a.html"), "nothing to report"),
    "a feature twice": (
        lambda _: tm.GroupedData.from_frame(frame(), label="y", group="g", features=["p", "p"]),
        "`features` should name every column once. Found 'p' twice.",
    ),
    "two columns of one name": (
        lambda _: tm.GroupedData.from_frame(two_alike(), label="y", group="g"),
        "`frame` should name every column once. Found 'p' twice.",
    ),
    "two columns of one name in a table": (
        lambda _: tm.GroupedData(two_alike(), "y", "g"),
        "`x` should name every column once. Found 'p' twice.",
    ),
    "an empty batch": (
        lambda _: tm.Steering(tm.interventions.GroupDRO(0.1), parts()[0])(torch.zeros(0), torch.zeros(0).long()),
        "`losses` should have at least one point. Found an empty batch.",
    ),
    "a function in train": (lambda _: tm.train(len, *parts(), RECIPE), "`model` should be a torch.nn.Module. Found"),
    "a function in measure": (lambda _: lab.measure("weight-rank", len, parts()[0]), "`model` should be a torch.nn"),
    "no evaluations: agreement": (lambda _: tm.agreement(empty(), trained()), "share no curve"),
    "no evaluations: leaders": (lambda _: tm.leaders(empty()), "There is none of the curves"),
    "no evaluations: why": (lambda _: tm.fairness.why(empty()), "A run should have evaluations of `loss` or `error`"),
    "no evaluations: report": (lambda p: tm.report([empty()], p / "a.html"), "nothing to report"),
    "infinitely seldom": (lambda _: tm.record.every(float("inf")), "`n` should be an integer. Found n = inf."),
    "an infinite pause": (lambda _: tm.interventions.GroupDRO(0.1, every=float("inf")), "Found every = inf."),
    "an infinite scout": (lambda _: tm.interventions.JTT(times=10, scout=float("inf")), "Found scout = inf."),
    "a tensor without values": (
        lambda _: tm.GroupedData(torch.zeros(200, 3, device="meta"), Y, G),
        "`x` should be a dense tensor with values. Found one without values, on the meta device.",
    ),
    "a sparse tensor": (
        lambda _: tm.GroupedData(torch.zeros(200, 3).to_sparse(), Y, G),
        "`x` should be a dense tensor with values. Found one of layout torch.sparse_coo.",
    ),
    "labels without values": (
        lambda _: tm.GroupedData(X, torch.zeros(200, device="meta"), G),
        "`y` should be a dense tensor with values. Found one without values, on the meta device.",
    ),
    "sparse groups": (
        lambda _: tm.GroupedData(X, Y, torch.zeros(200).to_sparse()),
        "`group` should be a dense tensor with values. Found one of layout torch.sparse_coo.",
    ),
    "weights without values": (
        lambda _: tm.GroupedData(X, Y, G, torch.zeros(200, device="meta")),
        "`weights` should be a dense tensor with values. Found one without values, on the meta device.",
    ),
    "crossings of one group": (
        lambda _: tm.theory.crossing_count(trained(["a"] * 200)),
        "This compares two groups; there is one: 'a'.",
    ),
    "no evaluations: crossings": (lambda _: tm.theory.crossing_count(empty()), "No curve 'loss'. There are: none."),
    "timescales of a recipe": (
        lambda _: tm.timescales(PROBLEM, RECIPE),
        "`sgd` should be an SGD(lr=...). Found Recipe.",
    ),
    "closed form without SGD": (
        lambda _: tm.theory.closed_form(PROBLEM, 0.1, [1.0]),
        "`sgd` should be an SGD(lr=...). Found float.",
    ),
    "closed form of a recipe": (
        lambda _: tm.theory.closed_form(PROBLEM, RECIPE, [1.0]),
        "`sgd` should be an SGD(lr=...). Found Recipe.",
    ),
    "predict without SGD": (lambda _: tm.predict(PROBLEM, 0.1, [1.0]), "`sgd` should be an SGD(lr=...). Found float."),
    "drivers without SGD": (lambda _: tm.drivers(PROBLEM, 0.1, [1.0]), "`sgd` should be an SGD(lr=...). Found float."),
    "timescales without SGD": (lambda _: tm.timescales(PROBLEM, 0.1), "`sgd` should be an SGD(lr=...). Found float."),
    "a study of text": (lambda p: lab.Study("no:cell", {"a": [1]}, to=p / "s"), "`cell` should be a function."),
}


@pytest.mark.parametrize("name", CALLS)
def test_one_sentence(name, tmp_path):
    work, sentence = CALLS[name]
    with pytest.raises((ValueError, TypeError, KeyError), match=re.escape(sentence)) as caught:
        work(tmp_path)
    assert "\n" not in str(caught.value)


def test_check_never_raises(tmp_path):
    """Names that no file can have, and files of other kinds."""
    for path in ("a" * 5000, "\0", "", tmp_path, __file__, "/dev/null"):
        assert not tm.record.check(path).ok


@pytest.mark.filterwarnings("ignore")
def test_a_report_about_many_groups_of_one_size(tmp_path):
    """From 51 groups on, every group has less than a fiftieth of the points."""
    group = np.arange(60 * 50) % 60
    x = np.random.default_rng(0).normal(size=(len(group), 3)).astype("float32")
    train, held_out = tm.GroupedData(x, (x[:, 0] > 0).astype(int), group).split(0.5)
    run = tm.train(nn.Linear(3, 1), train, held_out, RECIPE)
    assert tm.report([run], tmp_path / "many.html").exists()
    assert "## Bias during training" in tm.results.to_model_card(run) if hasattr(tm, "to_model_card") else True


def test_files_are_written_aside(tmp_path, monkeypatch):
    """A full disk leaves the file that was there."""
    resource = pytest.importorskip("resource")
    from tiltmeter import export

    run = trained()
    writers = {
        "page.html": lambda path: tm.report([run], path),
        "run.csv": lambda path: export.write(run, path),
        "run.tex": lambda path: export.write(run, path),
        "run.parquet": lambda path: export.write(run, path),
    }
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    for name, write in writers.items():
        (tmp_path / name).write_text("earlier")
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
        try:
            with pytest.raises(OSError, match="File too large"):
                write(tmp_path / name)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert (tmp_path / name).read_text() == "earlier"
        write(tmp_path / name)
        assert (tmp_path / name).read_bytes() != b"earlier"
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(writers)


def test_rates_that_are_no_shares_are_not_infinite():
    """A damaged or crafted file may hold such numbers: a hundred times them is infinite."""
    recorder = Recorder(None, clock="step", origin=Origin("training"))
    for step in range(3):
        values = xr.DataArray([4e307, 0.2], dims="group", coords={"group": ["a", "b"]})
        recorder.append(step, {"loss": values, "error": values})
    text = str(tm.leaders(recorder.trajectory(), "error"))
    assert "4e+307" in text
    assert "inf" not in text
