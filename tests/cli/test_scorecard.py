"""tiltmeter scorecard: sentences, a table, JSON, pictures and refusals."""

import json

import pytest

import tiltmeter as tm


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("runs")
    problem = tm.teacher_mixture(rho=0.75, variance=(0.5, 1.5), overlap=0.7)
    for name, law in {"plain": (), "balanced": (tm.interventions.Balanced(by="draws"),)}.items():
        tm.save(tm.predict(problem, tm.SGD(lr=0.2, interventions=law), [0.0, 1.0, 5.0, 20.0, 60.0]), place / name)
    return place


def test_sentences_and_a_table(run, folder):
    code, out, _ = run("scorecard", str(folder / "plain"), str(folder / "balanced"))
    assert code == 0
    assert "paid by + by 0.0505" in " ".join(out.split())
    assert "Judged at the last evaluation" in out


def test_json_and_every_picture(run, folder, tmp_path):
    for picture in ("plane", "paid", "areas", "pulls"):
        path = tmp_path / f"{picture}.svg"
        given = ("--picture", picture, "--save", str(path), "--json")
        code, out, _ = run("scorecard", str(folder / "plain"), str(folder / "balanced"), *given)
        assert code == 0
        assert path.read_text().startswith("<svg")
        found = json.loads(out)
        assert round(found["runs"][1]["worst"]["value"], 4) == 0.2888
        assert found["runs"][1]["paid"][0]["group"] == "+"


def test_refusals_are_sentences(run, folder):
    for given, sentence in (
        ([str(folder / "plain")], "at least two runs"),
        ([str(folder / "plain")] * 2, "named once"),
        ([str(folder / "plain"), str(folder / "balanced"), "--curve", "M"], "lower is better"),
    ):
        code, _, err = run("scorecard", *given)
        assert code == 2
        assert sentence in err or "neither better" in err
