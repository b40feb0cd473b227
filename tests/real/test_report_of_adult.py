"""The report of a network on census incomes: the first paragraph holds both facts, and the reason that they differ."""

import os
from pathlib import Path

import numpy as np
import pytest

import tiltmeter as tm
from tiltmeter.report.answers import disagree, reason
from tiltmeter.report.findings import findings
from tiltmeter.report.first_screen import in_words

torch = pytest.importorskip("torch")


def adult(points, seed):
    place = os.environ.get("TILTMETER_DATA")
    if not place or not (Path(place) / "adult").is_dir():
        pytest.skip("Set TILTMETER_DATA to a folder with adult to run this test.")
    parts = tm.data.adult("sex")
    rng = np.random.default_rng(seed)
    return [part.take(np.sort(rng.choice(len(part), points, replace=False))) for part in parts]


@pytest.mark.slow
def test_the_first_paragraph_holds_both_facts_and_the_reason(tmp_path):
    train, held_out = adult(6000, 0)
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(train.x.shape[1], 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
    run = tm.train(model, train, held_out, tm.Recipe(lr=0.03, steps=600, batch=64, loss=tm.Logistic()))
    benefit = tm.Question(kind="benefit")
    found = findings(run, "adult", benefit)
    tpr = run["tpr"].isel(time=-1)
    rates = [f"{100 * tpr.sel(group=g).item():.0f} %" for g in ("Female", "Male")]
    line = found.judged.headline.claim
    assert line.startswith(f"Group Female has the lower true positive rate, {rates[0]} against {rates[1]}")
    assert disagree(found)
    assert "But all wrong decisions together are more frequent for " in in_words(found)
    share = {g: rates[1.0] for g, rates in held_out.label_rates.items()}
    facts = f"{100 * share['Female']:.0f} % of Female and {100 * share['Male']:.0f} % of Male are positive in the data"
    assert f"The groups differ to begin with: {facts}." in reason(found)
    assert tm.report([run], tmp_path / "adult.html", question=benefit).stat().st_size < 200_000
