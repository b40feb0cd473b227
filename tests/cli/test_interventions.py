"""Interventions on the command line and in a TOML file."""

import json

import pytest

import tiltmeter as tm
from tiltmeter.theory.cli.options import intervention_from_text

PROBLEM = ["rho=0.75, variance=(0.5, 1.5), overlap=0.7", "--lr", "0.2", "--until", "20"]


def test_a_law_is_applied_and_kept(run):
    code, out, _ = run(
        "predict", *PROBLEM, "--intervention", "GroupDRO(rate=5, by='draws')", "--to", "steered", "--json"
    )
    assert code == 0
    assert "timescales" not in json.loads(out)
    kept = tm.SGD.from_json(tm.load("steered").origin.settings["sgd"])
    assert kept.law == tm.interventions.GroupDRO(5, by="draws")


def test_a_law_in_a_file(run, in_a_folder):
    text = """
[problem]
rho = 0.75
variance = [0.5, 1.5]
overlap = 0.7
[sgd]
lr = 0.2
[[sgd.interventions]]
kind = "DualAscent"
rate = 1.0
bound = {"+" = inf, "-" = 0.33}
[times]
until = 20.0
evaluations = 20
"""
    (in_a_folder / "law.toml").write_text(text, encoding="utf-8")
    code, out, _ = run("predict", "--config", "law.toml")
    assert code == 0
    assert "has the lower loss" in out


def test_simulated_beside_the_theory(run):
    law = "Tilted(2.0, every=5)"
    code, out, _ = run(
        "simulate",
        *PROBLEM,
        "--d",
        "200",
        "--seeds",
        "4",
        "--evaluations",
        "4",
        "--since",
        "1",
        "--intervention",
        law,
        "--against",
        "theory",
    )
    assert code == 0
    assert "theory" in out


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("GrupDRO", "There is no intervention 'GrupDRO'. Did you mean GroupDRO?"),
        ("UPGrad", "`predict` has no exact solution with UPGrad"),
        ("GroupDRO(speed=3)", "GroupDRO has no field 'speed'"),
        ("GroupDRO(rate=__import__('os'))", "An intervention should be written as"),
        ("GroupDRO(1) or 2", "An intervention should be written as"),
        ("GroupDRO(rate=-1)", "`rate` should be at least 0"),
    ],
)
def test_bad_laws_are_one_sentence(run, text, message):
    code, out, err = run("predict", *PROBLEM, "--intervention", text)
    assert code == 2
    assert message in err
    assert out == ""


def test_names_by_hyphen_and_numbers_by_group():
    assert intervention_from_text("dual-ascent({'+': 0.2, '-': 0.3}, rate=2)") == tm.interventions.DualAscent(
        {"+": 0.2, "-": 0.3}, 2
    )
