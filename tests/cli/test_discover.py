"""discover: the groups of a run in a terminal, as JSON, in a file and in a report."""

import json
from pathlib import Path

import pandas as pd
import pytest

import tiltmeter as tm
from discovered_runs import made_run, margins, people

TABLE = people()


@pytest.fixture(autouse=True)
def saved(in_a_folder):
    tm.save(made_run(margins(2000, late=TABLE["job"] == "cook", hard=TABLE["age"] > 67)), "mine")
    pd.DataFrame(TABLE).assign(label=["yes", "no"] * 1000).to_csv("people.csv", index=False)


def test_the_sentence_comes_first_and_then_a_table(run):
    code, out, _ = run("discover", "mine", "--table", "people.csv", "--without", "label")
    assert code == 0
    expected = tm.discover(tm.load("mine"), TABLE)
    assert out.startswith(str(expected))
    for group in expected.groups:
        assert group.name in out
    assert "clear: worse at the end" in out


def test_json_is_the_discovery(run):
    code, out, _ = run("discover", "mine", "--table", "people.csv", "--without", "label", "--json")
    assert code == 0
    assert tm.results.Discovery.from_json(json.loads(out)) == tm.discover(tm.load("mine"), TABLE)


def test_groups_are_written_and_a_report_shows_them(run):
    code, out, _ = run(
        "discover",
        "mine",
        "--table",
        "people.csv",
        "--without",
        "label",
        "--to",
        "groups.json",
        "--run-to",
        "regrouped",
    )
    assert code == 0
    assert "groups.json" in out
    assert set(tm.load("regrouped")["loss"].coords["group"].values) <= set(tm.discover(tm.load("mine"), TABLE).parts)
    code, out, err = run("report", "regrouped", "--groups", "groups.json", "--out", "page.html")
    assert code == 0, err
    page = Path("page.html").read_text(encoding="utf-8")
    assert '<section id="discovered"><h2>Groups nobody named</h2>' in page
    assert "job = cook" in page
    assert run("discover", "mine", "--table", "people.csv", "--to", "groups.json")[0] == 2
    code, _, err = run("report", "regrouped", "--groups", "people.csv", "--out", "page.html")
    assert code == 2
    assert "people.csv should be a file that `tiltmeter discover --to` wrote" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("mine", "--table", "people.csv"), "Found the label in column 'label': leave it out."),
        (("mine", "--table", "none.csv"), "No file none.csv."),
        (("mine", "--table", "people.csv", "--without", "size"), "`--without`: no column 'size'."),
        (("nothing", "--table", "people.csv"), "nothing"),
        (("mine", "--table", "people.csv", "--without", "label", "--depth", "7"), "`depth` should be 1, 2 or 3"),
    ],
)
def test_bad_input_is_one_sentence(run, arguments, message):
    code, out, err = run("discover", *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_the_table_that_was_trained_on_needs_no_preparation(run):
    """The run knows which rows were held out, also where rows with missing values were dropped."""
    pytest.importorskip("torch")
    table = pd.DataFrame(people(2400)).assign(label=["yes", "no"] * 1200, sex=["f", "m", "m"] * 800)
    table.loc[:40, "age"] = None
    table.to_csv("all.csv", index=False)
    Path("all.toml").write_text(
        '[data]\nsource = "all.csv"\nlabel = "label"\ngroup = "sex"\nheld_out = 0.4\n[training]\nlr = 0.1\nsteps = 20\n'
    )
    code, _, err = run("train", "all.toml", "--to", "trained")
    assert code == 0, err
    rows = tm.load("trained").points["row"].values[0]
    kept = table[table["age"].notna()]
    assert set(rows) <= set(kept.index)
    assert (tm.load("trained").points["loss"].coords["group"].values == table["sex"].to_numpy()[rows]).all()
    code, whole, err = run("discover", "trained", "--table", "all.csv", "--json")
    assert code == 0, err
    table.drop(columns="label").iloc[rows].to_csv("held_out.csv", index=False)
    code, held_out, err = run("discover", "trained", "--table", "held_out.csv", "--json")
    assert code == 0, err
    assert json.loads(whole).pop("left_out")["label"] == "the label"
    assert json.loads(whole)["groups"] == json.loads(held_out)["groups"]
    table[:500].to_csv("other.csv", index=False)
    code, _, err = run("discover", "trained", "--table", "other.csv")
    assert code == 2
    assert f"every held-out point of the run, {len(rows)}, or the 2,400 rows of the table" in err
