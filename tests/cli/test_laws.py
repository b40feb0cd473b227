"""Laws on the command line and in a TOML file."""

import json

import pytest

import tiltmeter as tm
from tiltmeter.cli.law_text import law_from_text

PROBLEM = ["--rho", "0.75", "--variance", "0.5", "1.5", "--overlap", "0.7", "--lr", "0.2", "--until", "20"]


def test_a_law_is_applied_and_kept(run):
    code, out, _ = run("predict", *PROBLEM, "--law", "GroupDRO(rate=5, by='draws')", "--to", "steered", "--json")
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
law = "DualAscent"
rate = 1.0
bound = {"+" = inf, "-" = 0.33}
[times]
until = 20.0
looks = 20
"""
    (in_a_folder / "law.toml").write_text(text, encoding="utf-8")
    code, out, _ = run("predict", "--config", "law.toml")
    assert code == 0
    assert "leads" in out


def test_simulated_beside_the_theory(run):
    law = "Tilted(2.0, every=5)"
    code, out, _ = run(
        "simulate",
        *PROBLEM,
        "--d",
        "200",
        "--seeds",
        "4",
        "--looks",
        "4",
        "--since",
        "1",
        "--law",
        law,
        "--against",
        "theory",
    )
    assert code == 0
    assert "theory" in out


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("GrupDRO", "There is no law 'GrupDRO'. Did you mean GroupDRO?"),
        ("UPGrad", "`predict` has no exact solution with UPGrad"),
        ("GroupDRO(speed=3)", "GroupDRO has no field 'speed'"),
        ("GroupDRO(rate=__import__('os'))", "A law should be written as"),
        ("GroupDRO(1) or 2", "A law should be written as"),
        ("GroupDRO(rate=-1)", "`rate` should be at least 0"),
    ],
)
def test_bad_laws_are_one_sentence(run, text, message):
    code, out, err = run("predict", *PROBLEM, "--law", text)
    assert code == 2
    assert message in err
    assert out == ""


def test_names_by_hyphen_and_numbers_by_group():
    assert law_from_text("dual-ascent({'+': 0.2, '-': 0.3}, rate=2)") == tm.interventions.DualAscent(
        {"+": 0.2, "-": 0.3}, 2
    )
