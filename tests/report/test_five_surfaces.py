"""One headline on five surfaces: report, terminal, explorer, notebook and `leaders` say the same first line."""

import json
import os
import re
from html import unescape

import numpy as np
import pytest
import torch
from torch import nn

import tiltmeter as tm
from tiltmeter.cli import main
from tiltmeter.explorer.run_judgement import run_judgement

DATA = os.environ.get("TILTMETER_DATA")


def loans(count=3000, seed=0, question=None):
    """Women repay as often and have lower incomes, so a model that sees incomes misses them."""
    rng = np.random.default_rng(seed)
    sex = np.where(rng.random(count) < 0.4, "women", "men")
    usual = np.where(sex == "women", 34.0, 40.0)
    income = rng.normal(usual, 8)
    repaid = (0.2 * (income - usual) + 0.7 * rng.logistic(size=count) > 0).astype(int)
    x = np.stack([(income - 38) / 8, rng.normal(size=count)], 1).astype("float32")
    return tm.GroupedData(x, repaid, sex, question=question).split(0.5)


def noise(groups, seed=0, count=1200):
    """Groups that are assigned by chance."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, 3)).astype("float32")
    y = (x[:, 0] + rng.normal(size=count) > 0).astype(int)
    return tm.GroupedData(x, y, rng.choice(groups, count)).split(0.5)


def trained(data, seed=0, steps=150, outputs=1):
    torch.manual_seed(seed)
    train, held_out = data
    width = train.x.shape[1]
    model = nn.Sequential(nn.Linear(width, 16), nn.ReLU(), nn.Linear(16, outputs))
    return tm.train(model, train, held_out, tm.Recipe(lr=0.1, steps=steps, batch=32), seed=seed)


def forecast_of(data):
    torch.manual_seed(0)
    recipe = tm.Recipe(lr=0.1, steps=100, batch=32, order=0)
    method = tm.methods.Rehearsal(copies=1)
    return tm.forecast(
        nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1)), *data, recipe, method=method, progress=False
    )


def ten_classes():
    data, held_out = tm.data.digits(share=0.8, labels="digit")
    return trained((data, held_out), outputs=10)


def real(name, **settings):
    if DATA is None:
        pytest.skip("TILTMETER_DATA is not set.")
    room = tm.data if name in tm.data.__all__ else pytest.importorskip("tiltmeter_lab").data
    return trained(getattr(room, name)(**settings), steps=400)


RUNS = {
    "loans": lambda: trained(loans()),
    "loans, asked": lambda: trained(loans(question=tm.Question("approved", "repaid"))),
    "loans, a burden": lambda: trained(loans(question=tm.Question("denied", "repaid", kind="burden"))),
    "digits": lambda: trained(tm.data.digits(share=0.9, labels="large")),
    "ten classes": ten_classes,
    "six seeds": lambda: tm.stack([trained(loans(), seed=seed, steps=60) for seed in range(6)]),
    "forecast": lambda: forecast_of(loans()),
    "theory": lambda: tm.predict(*tm.theory.cases.centred_crossing()),
    "random groups": lambda: trained(noise(["a", "b"])),
    "random groups, five": lambda: trained(noise(list("abcde"), seed=1)),
    "COMPAS": lambda: real("compas"),
    "Adult by sex": lambda: real("adult", group="sex"),
    "Adult by race": lambda: real("adult", group="race"),
    "German credit": lambda: real("german"),
}
SLOW = ("COMPAS", "Adult by sex", "Adult by race", "German credit")


def text_of(markup):
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", "", markup)).replace("\N{NARROW NO-BREAK SPACE}", " "))


def surfaces(run, folder, capsys):
    """The first line of each surface."""
    tm.save(run, folder / "run")
    page = tm.report([run], folder / "page.html").read_text(encoding="utf-8")
    capsys.readouterr()
    assert main(["show", str(folder / "run")]) == 0
    shown = capsys.readouterr().out
    told = run_judgement(str(folder), ["run"], "")["sentence"]
    return {
        "report": text_of(re.search(r"<h1[^>]*>(.*?)</h1>", page, re.S)[1]).strip(),
        "terminal": " ".join(shown.split("\n\n")[0].split()),
        "explorer": told.splitlines()[0],
        "notebook": text_of(run._repr_html_()),
    }


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow if n in SLOW else ()) for n in RUNS])
@pytest.mark.filterwarnings("ignore")
def test_the_first_line_is_the_same_everywhere(tmp_path, capsys, name):
    run = RUNS[name]()
    judged = tm.leaders(run)
    headline = judged.headline
    found = surfaces(run, tmp_path, capsys)
    assert found["report"] == headline.claim, found
    for surface in ("terminal", "explorer", "notebook"):
        assert " ".join(headline.line.split()) in found[surface], (surface, found[surface], headline.line)
    # It calls nobody worse off whose difference is not clear at the end.
    if headline.clear:
        assert judged.chosen.lower[-1] > 0 or judged.chosen.upper[-1] < 0
    if name.startswith("random groups"):
        assert not headline.clear
    print(json.dumps({"run": name, "headline": headline.line}))


ASKED = {
    "a benefit": lambda: loans(question=tm.Question("approved", "repaid")),
    "a burden": lambda: loans(question=tm.Question("denied", "repaid", kind="burden")),
    "COMPAS": lambda: tm.data.compas(),
}


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow if n == "COMPAS" else ()) for n in ASKED])
@pytest.mark.filterwarnings("ignore")
def test_forecast_and_training_answer_the_question_of_the_task_first(name):
    """The same network and batches: the forecast is about the rate that was asked for, as the training is."""
    if name == "COMPAS" and DATA is None:
        pytest.skip("TILTMETER_DATA is not set.")
    train, held_out = ASKED[name]()
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(train.x.shape[1], 8), nn.ReLU(), nn.Linear(8, 1))
    recipe = tm.Recipe(lr=0.1, steps=200, batch=32, order=0, loss=tm.Logistic())
    ahead = tm.forecast(model, train, held_out, recipe, method=tm.methods.Rehearsal(copies=1), progress=False)
    before, after = (tm.leaders(run).headline for run in (ahead, tm.train(model, train, held_out, recipe)))
    assert before.curve == after.curve == train.question.asked
    assert before.pair == after.pair
    assert before.leader == after.leader


def test_a_question_whose_rate_is_not_clear_is_answered_first():
    run = trained(loans(question=tm.Question(curve="error")))
    headline = tm.leaders(run).headline
    assert re.match(r"Women have an error of \d+ %, men of \d+ %\.", headline.claim)
    assert headline.gap.endswith(" points: not clear.")
    assert re.match(r"The true positive rates differ: \d+ % of women, \d+ % of men\.", headline.also)
    assert headline.leader == ""


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_of_two_hundred_runs_with_random_groups_few_have_a_headline(tmp_path):
    """A true 5 % exceeds 16 of 200 in 2 % of cases. Seeds were fixed before, and the runs were made once."""
    named = []
    for seed in range(30_000, 30_200):
        groups = list("abcdefgh")[: 2 + seed % 4]
        judged = tm.leaders(trained(noise(groups, seed, 800), seed, steps=40))
        named += [seed] if judged.headline.leader != "" else []
    print(f"{len(named)} of 200 runs with random groups have a headline")
    assert len(named) <= 16
