"""`tiltmeter data`: what is here, what was fetched, what is wrong."""

import json
from dataclasses import replace

import pytest

from data_sources import home_of
from tiltmeter.cli import main
from tiltmeter_lab.data import sources


@pytest.fixture(autouse=True)
def german(tmp_path, monkeypatch):
    """A folder that holds German credit, small."""
    monkeypatch.setenv("TILTMETER_DATA", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "160")
    source = home_of("german")["german"]
    monkeypatch.setitem(home_of("german"), "german", replace(source, files=(sources.File("german.data"),)))
    (tmp_path / "german").mkdir()
    line = "A11 6 A34 A43 1169 A65 A75 4 A93 A101 4 A121 67 A143 A152 2 A173 1 A192 A201 1\n"
    (tmp_path / "german" / "german.data").write_text(line * 60)
    return tmp_path / "german" / "german.data"


def test_list(run):
    code, out, _ = run("data", "list")
    assert code == 0
    assert out.startswith("1 of 10 data sets are in ")
    code, out, _ = run("data", "list", "--json")
    sets = {one["name"]: one for one in json.loads(out)["sets"]}
    assert [name for name, one in sets.items() if one["present"]] == ["german"]
    assert all(one["licence"] for one in sets.values())


def test_check(run, german):
    code, out, err = run("data", "check")
    assert code == 0
    assert "german: present. 60 points." in out
    assert "mnist: absent." in out
    code, out, err = run("data", "check", "german", "mnist")
    assert code == 2
    assert err == "tiltmeter: Missing or not as published: mnist.\n"
    german.write_text("A11 6\n")
    code, out, err = run("data", "check", "--json")
    assert code == 2
    assert [one["state"] for one in json.loads(out)].count("wrong") == 1


def test_get_keeps_what_is_here(run):
    code, out, err = run("data", "get", "german", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)[0]["state"] == "present"


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["get"], "Name at least one data set. There are: adult, compas"),
        (["get", "imagenet"], "No data set 'imagenet'. There are: adult"),
        (["check", "imagenet"], "No data set 'imagenet'. There are: adult"),
        (["get", "celeba"], "Data set 'celeba' cannot be downloaded for you"),
    ],
)
def test_sentences(run, argv, sentence):
    code, out, err = run("data", *argv)
    assert (code, out) == (2, "")
    assert err.startswith(f"tiltmeter: {sentence}")
    assert err.count("\n") == 1


class TestTrain:
    """[data] source of `tiltmeter train`."""

    def test_a_table(self, capsys, tmp_path):
        pytest.importorskip("torch")
        lines = [
            f"A11 6 A34 A43 {i} A65 A75 4 {'A92' if i % 2 else 'A93'} A101 4 A121 67 A143 A152 2 A173 1 A192 A201 {1 + i % 3 // 2}"
            for i in range(240)
        ]
        (tmp_path / "german" / "german.data").write_text("\n".join(lines))
        (tmp_path / "a.toml").write_text('[data]\nsource = "german"\n[training]\nlr = 0.1\nsteps = 3\n')
        assert main(["train", str(tmp_path / "a.toml")]) == 0
        assert "female" in capsys.readouterr().out

    def test_pictures_need_classes_and_the_data(self, capsys, tmp_path):
        pytest.importorskip("torch")
        text = '[data]\nsource = "mnist"\n{}\n[training]\nlr = 0.1\nsteps = 3\n'
        (tmp_path / "a.toml").write_text(text.format(""))
        assert main(["train", str(tmp_path / "a.toml")]) == 2
        assert "[data] of mnist needs `classes`, such as { a = " in capsys.readouterr().err
        (tmp_path / "a.toml").write_text(text.format('classes = { a = [["1"], ["2"]], b = [["3"], ["4"]] }'))
        assert main(["train", str(tmp_path / "a.toml")]) == 2
        assert "`tiltmeter data get mnist` downloads it" in capsys.readouterr().err
